package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/tool"
)

type grep struct{ w *Workspace }

const grepDescription = `Searches the contents of files with a regular expression. Use it instead of grep or rg in Bash.

- pattern has the syntax of ripgrep: "log.*Error", "func\s+\w+", "\bTODO\b". To find characters such as ( ) { } [ ] . * + ? literally, put a backslash before them: "interface\{\}".
- path is a file, or a folder that is searched with everything below it; by default the working folder.
- glob ("*.ts", "src/**/*.go", "!*_test.go", "*.{js,jsx}"; several separated by spaces) or type ("go", "py", "ts") restricts which files are searched. When both are given, glob counts.
- output_mode: "files_with_matches" (default) lists the paths, the most recently changed first: best to find out where something is. "content" shows the lines, with file and line number; -A, -B and -C (or context) add lines after, before and around each. "count" gives the number of matching lines per file.
- -i ignores case. multiline lets a match go over several lines, and . match a newline; otherwise each line is searched separately.
- head_limit shows only the first N lines or files, offset skips the first N: together they page through a long result. Long results are cut and say so; narrow the search rather than reading all of it.
- Hidden files are searched; binary files and what .gitignore excludes are not, unless path is exactly that file.
- No match is an answer, not an error. To find files by name use Glob. Make independent searches with several calls in one reply.`

const grepSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"The regular expression to search for"},` +
	`"path":{"type":"string","description":"File or folder to search; by default the working folder"},` +
	`"glob":{"type":"string","description":"Which files to search, for example *.ts or **/*.{yml,yaml}"},` +
	`"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"What to show; files_with_matches by default"},` +
	`"-B":{"type":"number","description":"Lines to show before each match; content only"},` +
	`"-A":{"type":"number","description":"Lines to show after each match; content only"},` +
	`"-C":{"type":"number","description":"Lines to show before and after each match; content only"},` +
	`"context":{"type":"number","description":"Same as -C"},` +
	`"-n":{"type":"boolean","description":"Show line numbers, the default; content only"},` +
	`"-i":{"type":"boolean","description":"Ignore case"},` +
	`"type":{"type":"string","description":"Kind of files to search: go, js, ts, py, rust, java, md and so on"},` +
	`"head_limit":{"type":"number","description":"Show only the first N lines or files; 0 for all"},` +
	`"offset":{"type":"number","description":"Skip the first N lines or files"},` +
	`"multiline":{"type":"boolean","description":"Let matches span several lines"}` +
	`},"required":["pattern"],"additionalProperties":false}`

var grepSpec = tool.Spec{
	Name: "Grep", Description: grepDescription, Schema: tool.NewSchema(grepSchema),
	Parallel: true, ReadOnly: true, Reads: true,
}

func (grep) Spec() tool.Spec { return grepSpec }

type grepInput struct {
	Pattern     string  `json:"pattern"`
	Path        string  `json:"path"`
	Glob        string  `json:"glob"`
	Mode        string  `json:"output_mode"`
	Before      float64 `json:"-B"`
	After       float64 `json:"-A"`
	Around      float64 `json:"-C"`
	Context     float64 `json:"context"`
	Numbers     *bool   `json:"-n"`
	Insensitive bool    `json:"-i"`
	Type        string  `json:"type"`
	HeadLimit   float64 `json:"head_limit"`
	Offset      float64 `json:"offset"`
	Multiline   bool    `json:"multiline"`
}

// The output modes.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

// query is a search in the form that both engines use.
type query struct {
	pattern     string
	dir         string // absolute: where to start
	file        string // only this file in dir; "" for all
	globs       []string
	kind        string // type of files; "" for all
	mode        string
	before      int
	after       int
	insensitive bool
	multiline   bool
}

// fileHits is what was found in one file. Lines are there in content mode only.
type fileHits struct {
	rel   string // relative to the query's dir, with slashes
	count int
	lines []hitLine
}

// hitLine is a line to show: a match, or one near it.
type hitLine struct {
	number int
	text   string
	match  bool
}

// hits is all that was found, in the order of paths.
type hits struct {
	files []fileHits
	cut   bool // there are more than these
}

// patternError says that the regular expression is not valid.
type patternError struct{ reason string }

func (e *patternError) Error() string { return e.reason }

func (t grep) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[grepInput](call)
	if failed != nil {
		return tool.Access{}
	}
	shown, real := t.w.locate(in.Path)
	return tool.Access{Read: []string{real}, Named: []string{shown}}
}

func (t grep) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[grepInput](call)
	if failed != nil {
		return *failed
	}
	if in.Pattern == "" {
		return tool.UseError("pattern is empty: it would match every line.")
	}
	shown, real := t.w.locate(in.Path)
	q, refused := t.query(in, shown, real)
	if refused != nil {
		return *refused
	}
	found, err := search(ctx, q)
	if err != nil {
		return t.failed(shown, err)
	}
	found.files = slices.DeleteFunc(found.files, func(f fileHits) bool {
		return t.w.closed(filepath.Join(q.dir, filepath.FromSlash(f.rel)))
	})
	if q.file != "" {
		shown = filepath.Dir(shown)
	}
	return newGrepReport(t.w, shown, in, q, found).result()
}

// query checks the input and turns it into a search.
func (t grep) query(in grepInput, shown, real string) (query, *tool.Result) {
	q := query{
		pattern: in.Pattern, dir: real, globs: splitGlobs(in.Glob), kind: in.Type, mode: in.Mode,
		insensitive: in.Insensitive, multiline: in.Multiline,
	}
	if q.mode == "" {
		q.mode = modeFiles
	}
	if len(q.globs) > 0 {
		q.kind = ""
	}
	if q.mode == modeContent {
		around := toInt(max(in.Around, in.Context, 0))
		q.before, q.after = max(around, toInt(in.Before)), max(around, toInt(in.After))
	}
	info, err := os.Stat(real)
	if err != nil {
		refused := t.w.refuseFolder(shown, err)
		return q, &refused
	}
	if info.IsDir() {
		return q, nil
	}
	q.dir, q.file = filepath.Split(real)
	q.dir = filepath.Clean(q.dir)
	return q, t.refuseFile(shown, real)
}

// refuseFile keeps the engines from files that are not text.
func (t grep) refuseFile(shown, real string) *tool.Result {
	file, _, err := openRegular(real)
	if err != nil {
		refused := read{t.w}.refuse(shown, real, err)
		return &refused
	}
	defer file.Close()
	start := make([]byte, sniff)
	n, _ := file.Read(start)
	if isBinary(start[:n]) {
		refused := tool.UseError(shown + " is a binary file and cannot be searched as text.")
		return &refused
	}
	return nil
}

func (t grep) failed(shown string, err error) tool.Result {
	if _, bad := errors.AsType[*patternError](err); bad {
		return tool.UseError("The pattern is not a valid regular expression: " + err.Error() +
			"\nPut a backslash before ( ) { } [ ] . * + ? | ^ $ \\ where you mean these signs themselves.")
	}
	return tool.UseError(fmt.Sprintf("Search %s: %v.", shown, err))
}

// splitGlobs separates globs at spaces and commas, but not inside of braces.
func splitGlobs(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ' ', '\t', '\n', ',':
			return depth <= 0
		}
		return false
	})
}

// maxFound is how many bytes of lines a search collects before it stops.
const maxFound = 8 << 20

var errEnough = errors.New("enough was found")

// search uses ripgrep when it is installed, else our own engine. Their results are
// the same, except that our own reads no more than maxSearched of a file, that \w,
// \d, \s and \b of its regular expressions are ASCII only and repetitions end at
// 1000 ({1000}), and that it always treats a file with a NUL byte as binary, which
// ripgrep does not notice far inside a file.
func search(ctx context.Context, q query) (hits, error) {
	if rg := ripgrep(); rg != "" {
		return searchWithRipgrep(ctx, rg, q)
	}
	return searchByWalking(ctx, q)
}

// ripgrep is the path of the program; "" when it is not installed.
var ripgrep = sync.OnceValue(func() string {
	path, err := exec.LookPath("rg")
	if err != nil {
		return ""
	}
	return path
})
