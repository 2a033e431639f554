package builtin

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cadre-dev/cadre/tool"
)

type edit struct{ w *Workspace }

const editDescription = `Changes part of a file: replaces old_string with new_string.

- Read the file first with Read. The call is refused when the file was not read in this conversation, or has been changed by somebody else since; the result then says by whom. Read it again, check whether your change still makes sense, and repeat it.
- old_string must occur in the file exactly as you give it, character for character, with its indentation (tabs are not spaces). Quote from what Read showed, without the line number and the tab in front of each line.
- old_string must occur in the file only once. Otherwise add surrounding lines until it is unique, or set replace_all to change every occurrence, for example to rename something.
- Give no more text than is needed to identify the place, usually two to four lines, and do not change unrelated lines.
- new_string is the text afterwards, with the same indentation; an empty one deletes. It must differ from old_string.
- Line ends (LF or CRLF) and the encoding of the file stay as they are: write a plain newline.
- For several places in one file make several calls one after the other, each with its own small change. To replace most of a file use Write.
- The result shows the lines around the change as they are now; there is no need to read the file again.`

const editSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file, absolute if possible"},` +
	`"old_string":{"type":"string","description":"The text to replace, exactly as it is in the file"},` +
	`"new_string":{"type":"string","description":"The text to replace it with"},` +
	`"replace_all":{"default":false,"type":"boolean","description":"Replace every occurrence of old_string, not just one"}` +
	`},"required":["file_path","old_string","new_string"],"additionalProperties":false}`

var editSpec = tool.Spec{Name: "Edit", Description: editDescription, Schema: tool.NewSchema(editSchema), Writes: true}

func (edit) Spec() tool.Spec { return editSpec }

type editInput struct {
	FilePath   string `json:"file_path"`
	Old        string `json:"old_string"`
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

func (t edit) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[editInput](call)
	if failed != nil {
		return tool.Access{}
	}
	shown, real := t.w.locate(in.FilePath)
	return tool.Access{Read: []string{real}, Write: []string{real}, Named: []string{shown}}
}

func (t edit) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[editInput](call)
	if failed != nil {
		return *failed
	}
	switch {
	case in.FilePath == "":
		return tool.UseError("file_path is empty.")
	case in.Old == in.New:
		return tool.UseError("old_string and new_string are the same: there is nothing to change.")
	}
	return t.w.change(ctx, in.FilePath, func(at changing) tool.Result { return t.edit(ctx, in, at) })
}

func (t edit) edit(ctx context.Context, in editInput, at changing) tool.Result {
	shown, old := at.shown, at.old
	if old.info == nil && in.Old != "" {
		return read{t.w}.refuse(shown, at.real, fs.ErrNotExist)
	}
	text, enc, ok := decode(old.content)
	if !ok {
		return tool.UseError(shown + " is a binary file and cannot be edited as text.")
	}
	spans := []span{{0, 0}} // an empty old_string fills an empty or new file
	if in.Old != "" {
		spans = occurrences(text, in.Old)
	} else if text != "" {
		return tool.UseError("old_string is empty, but " + shown + " is not. Give the text to replace; to replace all of it use Write.")
	}
	if len(spans) == 0 {
		return tool.UseError("old_string was not found in " + shown + ". " + explainNoMatch(text, in.Old, in.New))
	}
	if len(spans) > 1 && !in.ReplaceAll {
		return tool.UseError(ambiguous(shown, text, spans))
	}
	after := replace(text, spans, in.New)
	if err := t.w.keep(ctx, at, encode(after, enc)); err != nil {
		return refuseChange(shown, err)
	}
	twin := editTwin{
		FilePath: shown, OldString: in.Old, NewString: in.New, OriginalFile: original(old, text),
		StructuredPatch: patchOf(text, after), ReplaceAll: in.ReplaceAll,
	}
	return withTwin(edited(shown, after, spans, in.New), twin)
}

// ambiguous lists the places that old_string could mean.
func ambiguous(shown, text string, spans []span) string {
	const most = 10
	var lines []string
	for _, s := range spans[:min(len(spans), most)] {
		lines = append(lines, fmt.Sprint(lineAt(text, s.from)))
	}
	if more := len(spans) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("old_string stands %d times in %s (lines %s). Add lines around it, so that it names only one place, or set replace_all to change all of them. Nothing was written.",
		len(spans), shown, strings.Join(lines, ", "))
}

// edited tells of a successful edit, with the lines around its first place.
func edited(shown, after string, spans []span, with string) string {
	const around, most = 4, 40
	if len(after) == 0 {
		return "Edited " + shown + ". The file is empty now."
	}
	first := lineAt(after, min(spans[0].from, len(after)))
	last := first + strings.Count(with, "\n")
	lines := splitLines(after)
	from, to := max(1, first-around), min(len(lines), last+around)
	var b strings.Builder
	if len(spans) == 1 {
		fmt.Fprintf(&b, "Edited %s. The lines around the change are now:\n", shown)
	} else {
		fmt.Fprintf(&b, "Edited %s in %d places. The lines around the first are now:\n", shown, len(spans))
	}
	for n := from; n <= to; n++ {
		if to-from >= most && n == from+most/2 {
			fmt.Fprintf(&b, "   ...\t(%d lines)\n", to-from+1-most)
			n = to - most/2 + 1
		}
		numberLine(&b, n, cutLine(lines[n-1], len(lines[n-1]), 300))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
