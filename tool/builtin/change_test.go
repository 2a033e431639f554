package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/tool"
)

func TestWriteCreates(t *testing.T) {
	d := newDesk(t)
	path := d.path("new/deep/f.txt")
	r := d.call("Write", args{"file_path": path, "content": "x <&> é"})
	if r.IsError || r.Text != "File created successfully at: "+path {
		t.Errorf("%+v", r)
	}
	twin := fmt.Sprintf(`{"type":"create","filePath":%q,"content":"x <&> é","structuredPatch":[],"originalFile":null}`, path)
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	d.has("new/deep/f.txt", "x <&> é")
	d.ok("Write", args{"file_path": path, "content": "again"}) // what it wrote itself it has seen
	d.ok("Edit", args{"file_path": path, "old_string": "again", "new_string": "and again"})
	d.has("new/deep/f.txt", "and again")
	if left, _ := filepath.Glob(filepath.Join(d.dir, "new/deep/.*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteReplacesOnlyWhatWasRead(t *testing.T) {
	d := newDesk(t)
	path := d.put("f.txt", "a\nb\nc\n")
	d.refused("Write", args{"file_path": path, "content": "x"}, "f.txt has not been read yet")
	d.has("f.txt", "a\nb\nc\n")
	d.ok("Read", args{"file_path": path})
	r := d.call("Write", args{"file_path": path, "content": "a\nB\nc\n"})
	if r.Text != "File updated successfully at: "+path {
		t.Errorf("%+v", r)
	}
	var twin writeTwin
	if err := json.Unmarshal(r.Structured, &twin); err != nil {
		t.Fatal(err)
	}
	before := "a\nb\nc\n"
	want := writeTwin{Type: "update", FilePath: path, Content: "a\nB\nc\n", OriginalFile: &before, StructuredPatch: []hunk{
		{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Lines: []string{" a", "-b", "+B", " c"}},
	}}
	if diff := cmp.Diff(want, twin); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	d.put("f.txt", "somebody else")
	d.refused("Write", args{"file_path": path, "content": "x"}, "f.txt was changed since you read it", "read it again")
	d.refused("Write", args{"file_path": d.dir, "content": "x"}, "is a folder")
	d.refused("Write", args{"file_path": path + "/below", "content": "x"}, "Nothing was written")
}

func TestPatchOf(t *testing.T) {
	var long []string
	for i := range 30 {
		long = append(long, fmt.Sprint("l", i))
	}
	changed := append([]string{}, long...)
	changed[2], changed[25] = "X", "Y"
	got := patchOf(strings.Join(long, "\n"), strings.Join(changed, "\n")+"\n")
	want := []hunk{
		{1, 6, 1, 6, []string{" l0", " l1", "-l2", "+X", " l3", " l4", " l5"}},
		{23, 8, 23, 8, []string{" l22", " l23", " l24", "-l25", "+Y", " l26", " l27", " l28", "-l29", `\ No newline at end of file`, "+l29"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if got := patchOf("", "a\n"); len(got) != 1 || got[0].OldLines != 0 || got[0].NewLines != 1 {
		t.Errorf("from nothing: %+v", got)
	}
}

func TestWriteKeepsWhatTheFileIs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	d := newDesk(t)
	path := d.put("run.sh", "#!/bin/sh\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	target := d.put("real/target.txt", "t")
	link(t, "real/target.txt", d.path("link.txt"))
	hard := d.path("hard.txt")
	if err := os.Link(target, hard); err != nil {
		t.Fatal(err)
	}
	d.ok("Read", args{"file_path": path})
	d.ok("Write", args{"file_path": path, "content": "#!/bin/sh\nexit\n"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	d.ok("Read", args{"file_path": "link.txt"})
	d.ok("Write", args{"file_path": "link.txt", "content": "through the link"})
	d.has("real/target.txt", "through the link")
	d.has("hard.txt", "through the link")
	if info, err := os.Lstat(d.path("link.txt")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v %v", info.Mode(), err)
	}
	d.ok("Read", args{"file_path": "real/target.txt"}) // the same file by another name
	d.ok("Edit", args{"file_path": "link.txt", "old_string": "through", "new_string": "by"})

	d.put("ro.txt", "r")
	d.ok("Read", args{"file_path": "ro.txt"})
	if err := os.Chmod(d.path("ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		d.refused("Write", args{"file_path": "ro.txt", "content": "w"}, "permissions")
		d.has("ro.txt", "r")
	}
}

func TestWriteThroughDanglingLink(t *testing.T) {
	d := newDesk(t)
	outside := t.TempDir()
	link(t, filepath.Join(outside, "missing", "x"), d.path("out"))
	real, err := filepath.EvalSymlinks(outside)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(real, "missing", "x", "new")
	if got := d.access("Write", args{"file_path": "out/new", "content": ""}).Write; len(got) != 1 || got[0] != want {
		t.Errorf("access says %v, want %s", got, want)
	}
	d.ok("Write", args{"file_path": "out/new", "content": "c"}) // a permission to write there was given
	if got, err := os.ReadFile(want); err != nil || string(got) != "c" {
		t.Errorf("%q %v", got, err)
	}
}

func TestEditTellsWhoChangedTheFile(t *testing.T) {
	d := newDesk(t)
	d.as = tool.Caller{SessionID: "s1", AgentName: "team-lead", Team: "alpha"}
	bob := d.colleague(tool.Caller{SessionID: "s1", AgentID: "a000001", AgentName: "bob", Team: "alpha"})
	helper := d.colleague(tool.Caller{SessionID: "s1", AgentID: "a000002", AgentName: "Explore", Depth: 1})
	path := d.put("src/x.go", "package x\n")
	edit := args{"file_path": path, "old_string": "package x", "new_string": "package y"}

	d.refused("Edit", edit, "src/x.go has not been read yet")
	d.ok("Read", args{"file_path": path})
	bob.ok("Read", args{"file_path": path})
	bob.ok("Edit", args{"file_path": "src/x.go", "old_string": "package x\n", "new_string": "package x // bob\n"})
	r := d.call("Edit", edit)
	if want := `<tool_use_error>src/x.go was changed by teammate "bob" after you read it: read it again.</tool_use_error>`; r.Text != want {
		t.Errorf("got %q", r.Text)
	}
	d.ok("Read", args{"file_path": path})
	d.ok("Edit", edit)
	d.has("src/x.go", "package y // bob\n")

	bob.refused("Edit", edit, `by teammate "team-lead" after you read it`)
	helper.ok("Read", args{"file_path": path})
	helper.ok("Write", args{"file_path": path, "content": "package z\n"})
	d.refused("Edit", edit, `by agent "Explore" after you read it`)
	d.ok("Read", args{"file_path": path})
	d.put("src/x.go", "package w\n") // bob is long done: it was not he
	d.refused("Edit", edit, "since you read it, by a command, by the person, or by another program")
}

func TestEditAcceptsAFileThatWasOnlyTouched(t *testing.T) {
	d := newDesk(t)
	path := d.put("f", "a b")
	d.ok("Read", args{"file_path": path})
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	d.ok("Edit", args{"file_path": path, "old_string": "a", "new_string": "c"})
	d.has("f", "c b")
}

func TestEdit(t *testing.T) {
	d := newDesk(t)
	path := d.put("f.go", "one\ntwo\nthree\ntwo\n")
	d.ok("Read", args{"file_path": path})
	d.refused("Edit", args{"file_path": path, "old_string": "two", "new_string": "2"}, "stands 2 times", "lines 2, 4", "replace_all")
	d.refused("Edit", args{"file_path": path, "old_string": "two", "new_string": "two"}, "the same")
	d.refused("Edit", args{"file_path": path, "old_string": "", "new_string": "x"}, "old_string is empty")
	d.refused("Edit", args{"file_path": d.path("g.go"), "old_string": "x", "new_string": "y"}, "does not exist", "f.go")
	d.has("f.go", "one\ntwo\nthree\ntwo\n")

	r := d.call("Edit", args{"file_path": path, "old_string": "three\n", "new_string": "3\n3b\n"})
	want := "Edited " + path + ". The lines around the change are now:\n     1\tone\n     2\ttwo\n     3\t3\n     4\t3b\n     5\ttwo"
	if r.Text != want {
		t.Errorf("got %q", r.Text)
	}
	var twin editTwin
	if err := json.Unmarshal(r.Structured, &twin); err != nil {
		t.Fatal(err)
	}
	before := "one\ntwo\nthree\ntwo\n"
	if diff := cmp.Diff(editTwin{FilePath: path, OldString: "three\n", NewString: "3\n3b\n", OriginalFile: &before, StructuredPatch: []hunk{
		{1, 4, 1, 5, []string{" one", " two", "-three", "+3", "+3b", " two"}},
	}}, twin); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	if got := d.ok("Edit", args{"file_path": path, "old_string": "two", "new_string": "2", "replace_all": "true"}); !strings.HasPrefix(got, "Edited "+path+" in 2 places. The lines around the first are now:\n     1\tone\n     2\t2\n") {
		t.Errorf("got %q", got)
	}
	d.has("f.go", "one\n2\n3\n3b\n2\n")
	d.ok("Edit", args{"file_path": path, "old_string": "one\n2\n3\n3b\n2\n", "new_string": ""})
	d.has("f.go", "")
	d.ok("Edit", args{"file_path": path, "old_string": "", "new_string": "fresh\n"})
	d.has("f.go", "fresh\n")
	d.ok("Edit", args{"file_path": d.path("made/by/edit"), "old_string": "", "new_string": "new\n"})
	d.has("made/by/edit", "new\n")
}

func TestEditKeepsLineEndsAndEncoding(t *testing.T) {
	utf16 := func(s string) string { return string(encode(s, utf16LE)) }
	tests := []struct{ name, before, old, new, after string }{
		{"CRLF", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"},
		{"CRLF quoted as such", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"},
		{"CRLF and one line", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"},
		{"mixed", "a\r\nb\nc\r\nd\r\n", "b\nc", "B\nC", "a\r\nB\r\nC\r\nd\r\n"},
		{"LF stays LF", "a\nb\n", "a\n", "x\n", "x\nb\n"},
		{"mark", "\xef\xbb\xbfa\n", "a", "b", "\xef\xbb\xbfb\n"},
		{"UTF-16", utf16("né\r\nx\r\n"), "né\nx", "è\n𝄞", utf16("è\r\n𝄞\r\n")},
		{"Latin-1", "caf\xe9 = 1\nx = \xff2\n", "= 1", "= 3", "caf\xe9 = 3\nx = \xff2\n"},
		{"no end of line", "a\nb", "b", "c", "a\nc"},
		{"end at a CRLF", "a\r\nb\r\n", "a", "x", "x\r\nb\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("f", tt.before)
			d.ok("Read", args{"file_path": "f"})
			d.ok("Edit", args{"file_path": "f", "old_string": tt.old, "new_string": tt.new})
			d.has("f", tt.after)
		})
	}
}

func TestEditExplainsNoMatch(t *testing.T) {
	d := newDesk(t)
	path := d.put("f.go", "package f\n\nfunc Area(width, height int) int {\n\tresult := width * height\n\treturn result\n}\n\nvar done = true\n")
	d.ok("Read", args{"file_path": path})
	tests := []struct {
		old, new string
		want     []string
	}{
		{"    result := width * height\n    return result", "x", []string{"white space", "     4\t\tresult := width * height\n     5\t\treturn result"}},
		{"     4\t\tresult := width * height", "x", []string{"line number"}},
		{"var done = false", "var done = true", []string{"new_string is already there, in line 8"}},
		{"func Area(width, height int) int {\n\treturn width * height\n}", "x", []string{"not the same", "     3\tfunc Area(width, height int) int {\n     4\t\tresult := width * height\n     5\t\treturn result"}},
		{"func Area(width int, height int) float64 {", "x", []string{"not the same", "     3\tfunc Area("}},
		{"SELECT * FROM users", "x", []string{"nothing like it"}},
		{"caf\uFFFD", "x", []string{"not UTF-8"}},
	}
	for _, tt := range tests {
		d.refused("Edit", args{"file_path": path, "old_string": tt.old, "new_string": tt.new}, append(tt.want, "old_string was not found in "+path)...)
	}
	d.put("empty", "")
	d.ok("Read", args{"file_path": "empty"})
	d.refused("Edit", args{"file_path": "empty", "old_string": "x", "new_string": "y"}, "The file is empty")
	d.put("bin", "a\x00b")
	d.refused("Edit", args{"file_path": "bin", "old_string": "a", "new_string": "y"}, "has not been read yet")
}

func TestEditShowsLongReplacementsInPart(t *testing.T) {
	d := newDesk(t)
	d.put("f", "a\nb\n")
	d.ok("Read", args{"file_path": "f"})
	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "new %d\n", i)
	}
	got := d.ok("Edit", args{"file_path": "f", "old_string": "b\n", "new_string": long.String()})
	if n := strings.Count(got, "\n"); n > 45 || !strings.Contains(got, "new 0\n") || !strings.Contains(got, "new 499") || !strings.Contains(got, "   ...\t(461 lines)\n") {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

// TestEditsOfOneFileDoNotLoseEachOther: whatever two agents do at once, an edit
// that is told as made is in the file.
func TestEditsOfOneFileDoNotLoseEachOther(t *testing.T) {
	d := newDesk(t)
	d.put("list", "end\n")
	var all sync.WaitGroup
	for a := range 4 {
		agent := d.colleague(tool.Caller{SessionID: "s1", AgentID: fmt.Sprint("a", a), AgentName: fmt.Sprint("n", a), Team: "t"})
		all.Go(func() {
			for i := range 10 {
				entry := fmt.Sprintf("entry %d of %d\n", i, a)
				for {
					agent.ok("Read", args{"file_path": "list"})
					r := agent.call("Edit", args{"file_path": "list", "old_string": "end\n", "new_string": entry + "end\n"})
					if !r.IsError {
						break
					}
					if !strings.Contains(r.Text, "after you read it") {
						t.Errorf("refused with %s", r.Text)
						return
					}
				}
			}
		})
	}
	all.Wait()
	content, err := os.ReadFile(d.path("list"))
	if err != nil || strings.Count(string(content), "entry ") != 40 {
		t.Errorf("%v\n%s", err, content)
	}
}

func TestLedgerBeginEndsWithItsContext(t *testing.T) {
	l := NewLedger()
	end, err := l.begin(t.Context(), "/f")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if _, err := l.begin(ctx, "/f"); !errors.Is(err, why) {
		t.Errorf("begin ended with %v", err)
	}
	if other, err := l.begin(ctx, "/g"); err != nil {
		t.Errorf("another file: %v", err)
	} else {
		other()
	}
	end()
	again, err := l.begin(t.Context(), "/f")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAccessIsResolved(t *testing.T) {
	d := newDesk(t)
	d.put("secret/.env", "")
	link(t, "secret", d.path("innocent"))
	env := d.path("secret/.env")
	for name, got := range map[string][]string{
		"Read":  d.access("Read", args{"file_path": "innocent/.env"}).Read,
		"Write": d.access("Write", args{"file_path": "innocent/.env", "content": ""}).Write,
		"Edit":  d.access("Edit", args{"file_path": "innocent/.env", "old_string": "", "new_string": ""}).Write,
		"Grep":  d.access("Grep", args{"pattern": "x", "path": "innocent/.env"}).Read,
	} {
		if len(got) != 1 || got[0] != env {
			t.Errorf("%s touches %v, want %s", name, got, env)
		}
	}
	if got := d.access("Glob", args{"pattern": "innocent/*.go"}).Read; len(got) != 1 || got[0] != d.path("secret") {
		t.Errorf("Glob touches %v", got)
	}
	if got := d.access("Glob", args{"pattern": "../**", "path": "innocent"}).Read; len(got) != 1 || got[0] != d.dir {
		t.Errorf("Glob upwards touches %v", got)
	}
	if got := d.access("Bash", args{"command": "rm -rf x"}).Command; got != "rm -rf x" {
		t.Errorf("Bash touches %q", got)
	}
	if !d.access("AskUserQuestion", args{}).Ask {
		t.Error("AskUserQuestion does not ask")
	}
}

// FuzzReplace holds the matcher to its contract: what is replaced is what stood
// there but for the spelling of line ends, and nothing else changes.
func FuzzReplace(f *testing.F) {
	for _, seed := range [][3]string{
		{"a\r\nb\r\n", "a\nb", "x\ny"}, {"aaa", "aa", "b"}, {"\r\n\r\n", "\n", ""}, {"\r\r\n\n", "\r\n", "\r"},
		{"x\xff\r\ny", "\xff\n", "é"}, {"ab", "", "c"}, {"\n\n\n", "\n\n", "\r\n"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, text, old, with string) {
		spans := occurrences(text, old)
		flatten := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		last := 0
		for _, s := range spans {
			if s.from < last || s.to < s.from || s.to > len(text) || flatten(text[s.from:s.to]) != flatten(old) {
				t.Fatalf("%q in %q: span %v", old, text, s)
			}
			last = s.to
		}
		if old != "" && len(spans) != strings.Count(flatten(text), flatten(old)) {
			t.Fatalf("%q in %q: %d places", old, text, len(spans))
		}
		if len(spans) == 0 {
			return
		}
		after := replace(text, spans[:1], with)
		if !strings.HasPrefix(after, text[:spans[0].from]) || !strings.HasSuffix(after, text[spans[0].to:]) {
			t.Fatalf("%q for %q in %q gave %q", with, old, text, after)
		}
		middle := after[spans[0].from : len(after)-len(text)+spans[0].to]
		if flatten(middle) != flatten(with) {
			t.Fatalf("%q was put there for %q", middle, with)
		}
		explainNoMatch(text, with, old)
	})
}
