package builtin

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/cadre-dev/cadre/tool"
)

type glob struct{ w *Workspace }

const globDescription = `Finds files by their names. Use it instead of find or ls in Bash.

- pattern: * matches anything within one name, ** for any folders in between, ? for one character, {a,b} for either, [abc] for one of these. "*.go" matches only directly in the folder, "**/*.go" in all folders below it too, "src/**/*_test.{ts,tsx}" below src.
- path is the folder to start from; by default the working folder. Omit it rather than giving an empty string.
- The result lists at most 100 paths, the most recently changed first. When there are more it says so: use a narrower pattern.
- Hidden files are found. What .gitignore excludes (such as node_modules or build results) is found only when nothing else matches, and the result then says so. Folders themselves are not listed.
- To find files by their content use Grep. For open-ended searches that need several rounds, consider an agent.
- Try several patterns with several calls in one reply.`

const globSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"What the names look like, for example **/*.go"},` +
	`"path":{"type":"string","description":"Folder to search in; by default the working folder"}` +
	`},"required":["pattern"],"additionalProperties":false}`

var globSpec = tool.Spec{
	Name: "Glob", Description: globDescription, Schema: tool.NewSchema(globSchema),
	Parallel: true, ReadOnly: true, Reads: true,
}

func (glob) Spec() tool.Spec { return globSpec }

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// start splits the input into the folder to start from and the pattern below
// it: the parts of a pattern without wildcards belong to the folder.
func (t glob) start(in globInput) (shown, real, pattern string) {
	base, pattern := doublestar.SplitPattern(filepath.ToSlash(in.Pattern))
	base = filepath.FromSlash(base)
	if in.Path != "" && !filepath.IsAbs(base) && !strings.HasPrefix(base, "~") {
		base = in.Path + string(filepath.Separator) + base
	}
	shown, real = t.w.locate(base)
	return shown, real, pattern
}

func (t glob) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[globInput](call)
	if failed != nil {
		return tool.Access{}
	}
	shown, real, _ := t.start(in)
	return tool.Access{Read: []string{real}, Named: []string{shown}}
}

// maxListed is how many files a result lists.
const maxListed = 100

func (t glob) Run(ctx context.Context, call tool.Call) tool.Result {
	began := time.Now()
	in, failed := parseInput[globInput](call)
	if failed != nil {
		return *failed
	}
	shown, real, pattern := t.start(in)
	if !doublestar.ValidatePattern(pattern) {
		return tool.UseError(fmt.Sprintf("The pattern %q is not valid: check its brackets and braces.", in.Pattern))
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return t.w.refuseFolder(shown, err)
	}
	found, err := filesLike(ctx, real, pattern, true)
	onlyIgnored := false
	if err == nil && len(found) == 0 {
		found, err = filesLike(ctx, real, pattern, false)
		onlyIgnored = true
	}
	if err != nil {
		return tool.UseError(fmt.Sprintf("Search %s: %v.", shown, err))
	}
	found = slices.DeleteFunc(found, func(f datedFile) bool { return t.w.closed(filepath.Join(real, filepath.FromSlash(f.rel))) })
	if len(found) == 0 {
		return withTwin("No files found", globTwin{DurationMs: time.Since(began).Milliseconds(), Filenames: []string{}})
	}
	all := len(found)
	twin := globTwin{Truncated: all > maxListed}
	for _, f := range found[:min(all, maxListed)] {
		twin.Filenames = append(twin.Filenames, filepath.Join(shown, filepath.FromSlash(f.rel)))
	}
	text := strings.Join(twin.Filenames, "\n")
	if twin.Truncated {
		text += fmt.Sprintf("\n[%d files match; these are the %d changed last. Use a narrower pattern or path to see others.]", all, maxListed)
	}
	if onlyIgnored {
		text += "\n[All of these are excluded by .gitignore.]"
	}
	twin.NumFiles, twin.DurationMs = len(twin.Filenames), time.Since(began).Milliseconds()
	return withTwin(text, twin)
}

// globTwin is the structured twin (facts: sdk-contract §4.1).
type globTwin struct {
	DurationMs int64    `json:"durationMs"`
	NumFiles   int      `json:"numFiles"`
	Filenames  []string `json:"filenames"`
	Truncated  bool     `json:"truncated"`
}

// datedFile is a file with the time of its last change.
type datedFile struct {
	rel      string
	modified time.Time
}

// newestFirst sorts by time, and by name where times are the same.
func newestFirst(files []datedFile) {
	slices.SortFunc(files, func(a, b datedFile) int {
		return cmp.Or(b.modified.Compare(a.modified), strings.Compare(a.rel, b.rel))
	})
}

// filesLike finds the files below root whose path matches, newest first.
func filesLike(ctx context.Context, root, pattern string, ignoring bool) ([]datedFile, error) {
	w := newWalker(root, nil, ignoring)
	if !strings.Contains(pattern, "**") && !strings.Contains(pattern, "{") { // braces may hold slashes
		w.depth = strings.Count(pattern, "/") + 1
	}
	var found []datedFile
	err := w.walk(ctx, func(rel string, _ fs.DirEntry) error {
		if !doublestar.MatchUnvalidated(pattern, rel) {
			return nil
		}
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(rel))) // of what a link points to
		if err == nil && !info.IsDir() {
			found = append(found, datedFile{rel, info.ModTime()})
		}
		return nil
	})
	newestFirst(found)
	return found, err
}

// refuseFolder says why there is nothing to search in.
func (w *Workspace) refuseFolder(shown string, err error) tool.Result {
	if err == nil {
		return tool.UseError(shown + " is a file, not a folder.")
	}
	if !isMissing(err) {
		return tool.UseError(fmt.Sprintf("Search %s: %v.", shown, err))
	}
	text := "Folder does not exist: " + shown + "."
	if near := similarFiles(shown, w.Dir()); near != nil {
		return tool.UseError(text + " Did you mean " + strings.Join(near, " or ") + "?")
	}
	return tool.UseError(text + " The working folder is " + w.Dir() + ".")
}
