package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
)

// maxChanged is the largest file that Edit and Write read in order to change it.
const maxChanged = 64 << 20

// existing is a file before it is changed.
type existing struct {
	info    os.FileInfo // nil: there is no such file
	content []byte
}

// loadExisting reads a file that is about to be changed. A missing file is not an
// error.
func loadExisting(real string) (existing, error) {
	file, info, err := openRegular(real)
	if err != nil {
		if isMissing(err) {
			return existing{}, nil
		}
		return existing{}, err
	}
	defer file.Close()
	if info.Size() > maxChanged {
		return existing{}, fmt.Errorf("has %d bytes, more than the %d that can be changed here; use a program in Bash", info.Size(), maxChanged)
	}
	content, err := io.ReadAll(file)
	return existing{info, content}, err
}

// changing is a file that is being changed: its path as people write it, the path
// behind symbolic links, and the file before the change.
type changing struct {
	shown, real string
	old         existing
}

// change runs fn on a file that the session may change, and that no other session of
// this runtime changes at the same time.
func (w *Workspace) change(ctx context.Context, path string, fn func(changing) tool.Result) tool.Result {
	shown, real := w.locate(path)
	end, err := w.ledger.begin(ctx, real)
	if err != nil {
		return refuseChange(shown, err)
	}
	defer end()
	old, err := loadExisting(real)
	if err != nil {
		return refuseChange(shown, err)
	}
	if old.info != nil {
		if refusal := w.mayChange(ctx, real, old.content, old.info); refusal != "" {
			return tool.UseError(refusal)
		}
	}
	return fn(changing{shown, real, old})
}

// keep stores new content for the file and remembers it as seen: the session
// knows what it wrote itself.
func (w *Workspace) keep(ctx context.Context, at changing, content []byte) error {
	if err := replaceFile(at.real, at.old.info, content); err != nil {
		return err
	}
	moment := w.ledger.note(tool.CallerFrom(ctx), at.real)
	info, err := os.Stat(at.real)
	if err != nil {
		return nil // it was written; somebody has removed it since
	}
	w.saw(at.real, sightOf(content, info, moment))
	return nil
}

// replaceFile replaces the content of the file atomically: a reader sees the old or
// the new, and a crash leaves one of them. An existing file keeps its mode; a
// read-only one is refused although its folder would allow replacing it. A file with
// several names, or of another user, is written in place: a new file would lose them.
func replaceFile(path string, old os.FileInfo, content []byte) error {
	mode := os.FileMode(0o666) // the system's mask applies
	if old != nil {
		probe, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		probe.Close()
		if !replaceable(old) {
			return overwrite(path, content)
		}
		mode = old.Mode().Perm()
	} else if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+ids.Hex(8)+".tmp")
	if len(filepath.Base(temp)) > 255 {
		temp = filepath.Join(filepath.Dir(path), "."+ids.Hex(16)+".tmp")
	}
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if old != nil && errors.Is(err, fs.ErrPermission) {
		return overwrite(path, content) // no new file can be made in the folder
	}
	if err != nil {
		return err
	}
	err = fill(file, content, old, mode)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

func fill(file *os.File, content []byte, old os.FileInfo, mode os.FileMode) error {
	_, err := file.Write(content)
	if err == nil && old != nil {
		err = file.Chmod(mode) // exactly, whatever the mask
	}
	return errors.Join(err, file.Close())
}

// overwrite writes a file in place.
func overwrite(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// refuseChange says why a file cannot be changed.
func refuseChange(shown string, err error) tool.Result {
	switch {
	case errors.Is(err, errFolder), errors.Is(err, errSpecial):
		return tool.UseError(shown + " " + err.Error() + ".")
	case errors.Is(err, fs.ErrPermission):
		return tool.UseError(shown + " cannot be changed: the permissions of the file or of its folder do not allow it. Nothing was written.")
	default:
		return tool.UseError(fmt.Sprintf("Change %s: %v. Nothing was written.", shown, err))
	}
}

// hunk is one hunk of the structuredPatch of Write and Edit (facts:
// sdk-contract §4.1).
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// maxPatched is the largest file for which the structured result has the old text
// and the difference to the new.
const maxPatched = 1 << 20

// patchOf is the difference between two texts with three lines of context;
// never nil.
func patchOf(before, after string) []hunk {
	hunks := []hunk{}
	if len(before) > maxPatched || len(after) > maxPatched {
		return hunks
	}
	diff, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return hunks // impossible: the edits are of this very text
	}
	for _, h := range diff.Hunks {
		out := hunk{OldStart: h.FromLine, NewStart: h.ToLine}
		for _, line := range h.Lines {
			sign := " "
			switch line.Kind {
			case udiff.Delete:
				sign = "-"
				out.OldLines++
			case udiff.Insert:
				sign = "+"
				out.NewLines++
			default:
				out.OldLines++
				out.NewLines++
			}
			text, ended := strings.CutSuffix(line.Content, "\n")
			out.Lines = append(out.Lines, sign+text)
			if !ended {
				out.Lines = append(out.Lines, `\ No newline at end of file`)
			}
		}
		hunks = append(hunks, out)
	}
	return hunks
}

// original is the old text for the structured twin; null when there was no
// file, or too much in it.
func original(old existing, text string) *string {
	if old.info == nil || len(text) > maxPatched {
		return nil
	}
	return &text
}

// writeTwin and editTwin are the structured twins (facts: sdk-contract §4.1;
// golden t6, t8).
type writeTwin struct {
	Type            string  `json:"type"` // create or update
	FilePath        string  `json:"filePath"`
	Content         string  `json:"content"`
	StructuredPatch []hunk  `json:"structuredPatch"`
	OriginalFile    *string `json:"originalFile"`
}

type editTwin struct {
	FilePath        string  `json:"filePath"`
	OldString       string  `json:"oldString"`
	NewString       string  `json:"newString"`
	OriginalFile    *string `json:"originalFile"`
	StructuredPatch []hunk  `json:"structuredPatch"`
	UserModified    bool    `json:"userModified"`
	ReplaceAll      bool    `json:"replaceAll"`
}

// withTwin is a result with its structured twin.
func withTwin(text string, twin any) tool.Result {
	r := tool.Text(text)
	r.Structured = jsonx.MustMarshal(twin)
	return r
}
