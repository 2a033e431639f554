package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
)

type read struct{ w *Workspace }

const readDescription = `Shows a file of this machine. Use it for every file that you want to read or change; do not use cat, head, tail or sed in Bash for that.

- file_path should be an absolute path; a relative one starts at the working folder.
- Without offset and limit it shows up to 2000 lines from the start. When more follows, the end of the result says with which offset to continue. Use offset (the first line, counted from 1) and limit only for files that are too long to read whole; otherwise read the whole file, so that your decisions rest on all of it.
- Every line starts with its number and a tab. Neither belongs to the file: leave them out when you quote from it in Edit.
- Lines over 2000 characters are cut, and very long results end early; both say so.
- Images (PNG, JPEG, GIF, WebP) are shown as images. Other binary files and PDF are not shown: inspect them with a program in Bash (file, xxd, pdftotext).
- For a folder you get the names in it. To find files by name use Glob, by content use Grep.
- Read several files with several calls in one reply, which is faster than one after the other. When you are not sure which of a few files you need, read them all at once.
- A file must have been read with this tool before Edit or Write may change it, and again when somebody else has changed it since.`

const readSchema = `{"type":"object","properties":{` +
	`"file_path":{"type":"string","description":"Path of the file, absolute if possible"},` +
	`"offset":{"type":"number","description":"First line to show, counted from 1. Only for files that are too long to be read at once"},` +
	`"limit":{"type":"number","description":"How many lines to show. Only for files that are too long to be read at once"},` +
	`"pages":{"type":"string","description":"Pages of a PDF; PDF files are not supported here"}` +
	`},"required":["file_path"],"additionalProperties":false}`

var readSpec = tool.Spec{
	Name: "Read", Description: readDescription, Schema: tool.NewSchema(readSchema),
	Parallel: true, ReadOnly: true, Reads: true,
}

func (read) Spec() tool.Spec { return readSpec }

type readInput struct {
	FilePath string  `json:"file_path"`
	Offset   float64 `json:"offset"`
	Limit    float64 `json:"limit"`
}

func (t read) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[readInput](call)
	if failed != nil {
		return tool.Access{}
	}
	shown, real := t.w.locate(in.FilePath)
	return tool.Access{Read: []string{real}, Named: []string{shown}}
}

func (t read) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[readInput](call)
	if failed != nil {
		return *failed
	}
	if in.FilePath == "" {
		return tool.UseError("file_path is empty.")
	}
	shown, real := t.w.locate(in.FilePath)
	moment := t.w.ledger.now() // before the file is read
	file, info, err := openRegular(real)
	if err != nil {
		return t.refuse(shown, real, err)
	}
	defer file.Close()
	start := make([]byte, sniff)
	n, err := file.ReadAt(start, 0)
	if n == 0 && err != nil && info.Size() > 0 {
		return tool.UseError(fmt.Sprintf("Read %s: %v.", shown, err))
	}
	if media := imageType(start[:n]); media != "" {
		return readImage(shown, media, file, info)
	}
	if strings.HasPrefix(string(start[:n]), "%PDF-") {
		return tool.UseError(shown + " is a PDF file, which this tool does not show. If pdftotext is installed, run it with Bash: pdftotext -layout FILE -")
	}
	if isBinary(start[:n]) {
		return tool.UseError(fmt.Sprintf("%s is a binary file of %d bytes and cannot be shown as text. Inspect it with a program in Bash, such as file, xxd or strings.", shown, info.Size()))
	}
	part, err := readPart(ctx, file, info, max(1, toInt(in.Offset)), lineLimit(in.Limit))
	if err != nil {
		return tool.UseError(fmt.Sprintf("Read %s: %v.", shown, err))
	}
	part.sight.moment = moment
	t.w.saw(real, part.sight)
	return part.result(shown)
}

// lineLimit is how many lines are shown when a model asks for limit.
func lineLimit(limit float64) int {
	const usual = 2000
	if n := toInt(limit); n > 0 {
		return n
	}
	return usual
}

// Errors of opening something that is not a regular file.
var (
	errFolder  = errors.New("is a folder")
	errSpecial = errors.New("is a device, a pipe or a socket, not a file")
)

// openRegular opens a regular file for reading, and nothing that could block or has
// no end.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, info, errFolder
	}
	if !info.Mode().IsRegular() {
		return nil, info, errSpecial
	}
	file, err := os.Open(path)
	return file, info, err
}

// refuse explains why nothing can be read there, and what to try instead.
func (t read) refuse(shown, real string, err error) tool.Result {
	switch {
	case isMissing(err):
		text := "File does not exist: " + shown + "."
		if near := similarFiles(shown, t.w.Dir()); near != nil {
			text += " Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			text += " The working folder is " + t.w.Dir() + "; find files with Glob."
		}
		return tool.UseError(text)
	case errors.Is(err, errFolder):
		return tool.UseError(shown + " is a folder, not a file. It contains: " + folderNames(real) + ". Read one of them, or search with Glob.")
	case errors.Is(err, fs.ErrPermission):
		return tool.UseError(shown + " cannot be read: the permissions of the file or of a folder above it do not allow it.")
	case errors.Is(err, syscall.ELOOP):
		return tool.UseError(shown + " cannot be read: its symbolic links form a circle.")
	default:
		return tool.UseError(fmt.Sprintf("Read %s: %v.", shown, err))
	}
}

// folderNames lists what is in a folder, in a line.
func folderNames(path string) string {
	const most = 50
	entries, err := os.ReadDir(path)
	if err != nil {
		return "(cannot be listed: " + err.Error() + ")"
	}
	if len(entries) == 0 {
		return "(nothing)"
	}
	var names []string
	for _, e := range entries[:min(len(entries), most)] {
		name := e.Name()
		if e.IsDir() {
			name += string(filepath.Separator)
		}
		names = append(names, name)
	}
	if more := len(entries) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// result shows the part with line numbers.
func (p *filePart) result(shown string) tool.Result {
	var b strings.Builder
	for i, line := range p.lines {
		numberLine(&b, p.first+i, line)
	}
	switch {
	case p.total == 0:
		b.WriteString("[The file exists, but it is empty.]\n")
	case len(p.lines) == 0:
		fmt.Fprintf(&b, "[The file has only %d lines; line %d is beyond its end.]\n", p.total, p.first)
	case p.last() < p.total:
		fmt.Fprintf(&b, "[Lines %d to %d of %d. Read on with offset %d.]\n", p.first, p.last(), p.total, p.last()+1)
	}
	if p.invalid {
		b.WriteString("[The file is not valid UTF-8: bytes that are no characters are shown as \uFFFD. Edit keeps them, but cannot match them.]\n")
	}
	result := tool.Text(strings.TrimSuffix(b.String(), "\n"))
	result.Structured = jsonx.MustMarshal(readTwin{Type: "text", File: textTwin{
		FilePath: shown, Content: strings.Join(p.lines, "\n"), NumLines: len(p.lines), StartLine: p.first, TotalLines: p.total,
	}})
	return result
}

// readTwin is the structured twin of a result (facts: sdk-contract §4.1).
type readTwin struct {
	Type string `json:"type"`
	File any    `json:"file"`
}

type textTwin struct {
	FilePath   string `json:"filePath"`
	Content    string `json:"content"`
	NumLines   int    `json:"numLines"`
	StartLine  int    `json:"startLine"`
	TotalLines int    `json:"totalLines"`
}
