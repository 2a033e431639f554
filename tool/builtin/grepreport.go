package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/tool"
)

// Limits of what the result of a search shows.
const (
	maxMatchLine  = 500   // characters of a line
	maxGrepResult = 20000 // bytes of the result
)

// grepReport turns what was found into the text for the model.
type grepReport struct {
	w       *Workspace
	dir     string // as shown
	mode    string
	numbers bool
	context bool
	offset  int
	limit   int // 0: none
	found   hits
}

// grepTwin is the structured twin (facts: sdk-contract §4.1).
type grepTwin struct {
	Mode          string   `json:"mode"`
	NumFiles      int      `json:"numFiles"`
	Filenames     []string `json:"filenames"`
	Content       *string  `json:"content,omitempty"`
	NumLines      *int     `json:"numLines,omitempty"`
	NumMatches    *int     `json:"numMatches,omitempty"`
	AppliedLimit  int      `json:"appliedLimit,omitempty"`
	AppliedOffset int      `json:"appliedOffset,omitempty"`
}

func newGrepReport(w *Workspace, dir string, in grepInput, q query, found hits) grepReport {
	return grepReport{
		w: w, dir: dir, mode: q.mode, numbers: in.Numbers == nil || *in.Numbers, context: q.before > 0 || q.after > 0,
		offset: max(0, toInt(in.Offset)), limit: max(0, toInt(in.HeadLimit)), found: found,
	}
}

func (r grepReport) result() tool.Result {
	twin := grepTwin{Mode: r.mode, Filenames: []string{}, AppliedLimit: r.limit, AppliedOffset: r.offset}
	if len(r.found.files) == 0 {
		text := "No matches found"
		if r.mode == modeFiles {
			text = "No files found"
		}
		return withTwin(text, twin)
	}
	var entries []string
	switch r.mode {
	case modeContent:
		entries = r.lines()
	case modeCount:
		entries = r.counts()
	default:
		entries = r.files()
	}
	all := len(entries)
	entries, note := r.page(entries)
	twin.NumFiles = len(r.found.files)
	for _, f := range r.found.files {
		twin.Filenames = append(twin.Filenames, r.path(f))
	}
	text := strings.Join(entries, "\n")
	switch r.mode {
	case modeContent:
		content, n := text, len(entries)
		twin.Content, twin.NumLines = &content, &n
	case modeCount:
		content, total := text, r.total()
		twin.Content, twin.NumMatches = &content, &total
		note = sentences(note, fmt.Sprintf("[%d in %d %s]", total, all, plural(all, "file", "files")))
	default:
		twin.Filenames, twin.NumFiles = entries, len(entries)
		text = fmt.Sprintf("Found %d %s\n%s", all, plural(all, "file", "files"), text)
	}
	if r.found.cut {
		note = sentences(note, "[The search was ended early: there is far too much to find. Narrow it down.]")
	}
	if note != "" {
		text += "\n" + note
	}
	return withTwin(text, twin)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (r grepReport) path(f fileHits) string {
	return r.w.brief(filepath.Join(r.dir, filepath.FromSlash(f.rel)))
}

// lines shows matches as path:number:text, and lines around them with dashes.
// Two dashes stand where lines are left out.
func (r grepReport) lines() []string {
	var out []string
	for _, f := range r.found.files {
		path, last := r.path(f), -1
		for _, line := range f.lines {
			if r.context && len(out) > 0 && line.number != last+1 {
				out = append(out, "--")
			}
			last = line.number
			sign := "-"
			if line.match {
				sign = ":"
			}
			entry := path + sign
			if r.numbers {
				entry += strconv.Itoa(line.number) + sign
			}
			text := strings.ToValidUTF8(strings.TrimSuffix(line.text, "\r"), "\uFFFD")
			out = append(out, entry+cutLine(text, len(text), maxMatchLine))
		}
	}
	return out
}

func (r grepReport) counts() []string {
	var out []string
	for _, f := range r.found.files {
		out = append(out, r.path(f)+":"+strconv.Itoa(f.count))
	}
	return out
}

func (r grepReport) total() (n int) {
	for _, f := range r.found.files {
		n += f.count
	}
	return n
}

// files lists the paths, those changed last first.
func (r grepReport) files() []string {
	dated := make([]datedFile, 0, len(r.found.files))
	for _, f := range r.found.files {
		entry := datedFile{rel: r.path(f)}
		if info, err := os.Stat(filepath.Join(r.dir, filepath.FromSlash(f.rel))); err == nil {
			entry.modified = info.ModTime()
		}
		dated = append(dated, entry)
	}
	newestFirst(dated)
	out := make([]string, len(dated))
	for i, f := range dated {
		out[i] = f.rel
	}
	return out
}

// page cuts the result to the part that was asked for, and to a bearable length.
func (r grepReport) page(entries []string) (part []string, note string) {
	all := len(entries)
	if r.offset >= all {
		return []string{}, fmt.Sprintf("[There are only %d; offset %d is beyond the end.]", all, r.offset)
	}
	part = entries[r.offset:]
	if r.limit > 0 && len(part) > r.limit {
		part = part[:r.limit]
	}
	size := 0
	for i, entry := range part {
		size += len(entry) + 1
		if size > maxGrepResult && i > 0 {
			part = part[:i]
			break
		}
	}
	if end := r.offset + len(part); len(part) < all {
		note = fmt.Sprintf("[Shown: %d to %d of %d.", r.offset+1, end, all)
		if end < all {
			note += fmt.Sprintf(" Narrow the search, or continue with offset %d.", end)
		}
		note += "]"
	}
	return part, note
}
