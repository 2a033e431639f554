package builtin

import (
	"context"

	"github.com/cadre-dev/cadre/tool"
)

type write struct{ w *Workspace }

const writeDescription = `Writes a whole file: creates a new one, with the folders above it, or replaces the content of an existing one.

- To change part of an existing file use Edit: it is shorter, shows what changes, and cannot lose the rest.
- An existing file must have been read with Read in this conversation, and must not have been changed by anybody else since; otherwise the call is refused and nothing is written.
- content is the complete file, exactly as it is to be, including the newline at its end. Do not leave anything out with a remark such as "rest unchanged".
- The file is replaced atomically: nobody ever sees a half-written one. Its permissions stay; a symbolic link stays a link, and its target is written.
- Create new files only when the work needs them. Do not add documentation, notes or summaries that nobody asked for.
- Do not write files with echo or here-documents in Bash.`

const writeSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file, absolute if possible"},` +
	`"content":{"type":"string","description":"Everything that is to be in the file"}` +
	`},"required":["file_path","content"],"additionalProperties":false}`

var writeSpec = tool.Spec{Name: "Write", Description: writeDescription, Schema: tool.NewSchema(writeSchema), Writes: true}

func (write) Spec() tool.Spec { return writeSpec }

type writeInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

func (t write) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[writeInput](call)
	if failed != nil {
		return tool.Access{}
	}
	shown, real := t.w.locate(in.FilePath)
	return tool.Access{Write: []string{real}, Named: []string{shown}}
}

func (t write) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[writeInput](call)
	if failed != nil {
		return *failed
	}
	if in.FilePath == "" {
		return tool.UseError("file_path is empty.")
	}
	return t.w.change(ctx, in.FilePath, func(at changing) tool.Result { return t.write(ctx, in, at) })
}

func (t write) write(ctx context.Context, in writeInput, at changing) tool.Result {
	shown, old := at.shown, at.old
	if err := t.w.keep(ctx, at, []byte(in.Content)); err != nil {
		return refuseChange(shown, err)
	}
	twin := writeTwin{Type: "create", FilePath: shown, Content: in.Content, StructuredPatch: []hunk{}}
	text := "File created successfully at: " + shown
	if old.info != nil {
		before := string(old.content)
		twin.Type, twin.StructuredPatch, twin.OriginalFile = "update", patchOf(before, in.Content), original(old, before)
		text = "File updated successfully at: " + shown
	}
	return withTwin(text, twin)
}
