package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// age sets the time of a file's last change, in hours before now.
func (d *desk) age(name string, hours int) {
	d.t.Helper()
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(d.path(name), at, at); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) under(names ...string) string {
	for i, name := range names {
		names[i] = d.path(name)
	}
	return strings.Join(names, "\n")
}

func TestGlob(t *testing.T) {
	d := newDesk(t)
	for i, name := range []string{"top.go", "src/a.go", "src/deep/b.go", "src/deep/c.ts", "src/.hidden.go", "vendor/v.go", ".git/config.go"} {
		d.put(name, "")
		if name != ".git/config.go" {
			d.age(name, i)
		}
	}
	tests := []struct {
		in   args
		want string
	}{
		{args{"pattern": "*.go"}, d.under("top.go")},
		{args{"pattern": "**/*.go"}, d.under("top.go", "src/a.go", "src/deep/b.go", "src/.hidden.go", "vendor/v.go")},
		{args{"pattern": "src/**/*.{ts,go}"}, d.under("src/a.go", "src/deep/b.go", "src/deep/c.ts", "src/.hidden.go")},
		{args{"pattern": "*.go", "path": "src"}, d.under("src/a.go", "src/.hidden.go")},
		{args{"pattern": d.path("src/deep/*")}, d.under("src/deep/b.go", "src/deep/c.ts")},
		{args{"pattern": "../src/*/b.??", "path": "vendor"}, d.under("src/deep/b.go")},
		{args{"pattern": "src/a.go"}, d.under("src/a.go")},
		{args{"pattern": "{top,src/a}.go"}, d.under("top.go", "src/a.go")},
		{args{"pattern": "*.rs"}, "No files found"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, d.ok("Glob", tt.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.in, diff)
		}
	}
	d.refused("Glob", args{"pattern": "src/[a"}, "not valid")
	d.refused("Glob", args{"pattern": "*", "path": "scr"}, "Folder does not exist", "Did you mean "+d.path("src"))
	d.refused("Glob", args{"pattern": "*", "path": "top.go"}, "is a file")
}

func TestGlobLeavesOutWhatIsIgnored(t *testing.T) {
	d := newDesk(t)
	d.put(".git/HEAD", "")
	d.put(".gitignore", "node_modules/\n*.log\n!keep.log\n")
	for i, name := range []string{"a.js", "keep.log", "x.log", "node_modules/m/a.js"} {
		d.put(name, "")
		d.age(name, i)
	}
	if got, want := d.ok("Glob", args{"pattern": "**/*.{js,log}"}), d.under("a.js", "keep.log"); got != want {
		t.Errorf("got %s", got)
	}
	if got := d.ok("Glob", args{"pattern": "node_modules/**/*.js"}); got != d.under("node_modules/m/a.js") {
		t.Errorf("asked for by name: %s", got)
	}
	if got := d.ok("Glob", args{"pattern": "**/x.*"}); got != d.under("x.log")+"\n[All of these are excluded by .gitignore.]" {
		t.Errorf("nothing else: %s", got)
	}
}

func TestGlobLinksAndLimits(t *testing.T) {
	d := newDesk(t)
	d.put("dir/f", "")
	link(t, "dir", d.path("linked"))
	link(t, "dir/f", d.path("flink"))
	link(t, "gone", d.path("broken"))
	d.age("dir/f", 1)
	if got := d.ok("Glob", args{"pattern": "**"}); got != d.under("dir/f", "flink") {
		t.Errorf("got %s", got)
	}
	for i := range 150 {
		d.put(fmt.Sprintf("many/f%03d", i), "")
		d.age(fmt.Sprintf("many/f%03d", i), i)
	}
	r := d.call("Glob", args{"pattern": "many/*"})
	got := strings.Split(r.Text, "\n")
	if len(got) != 101 || got[0] != d.path("many/f000") || got[99] != d.path("many/f099") || !strings.HasPrefix(got[100], "[150 files match; these are the 100 changed last.") {
		t.Errorf("%d lines, the last is %s", len(got), got[len(got)-1])
	}
	if twin := string(r.Structured); !strings.Contains(twin, `"numFiles":100,`) || !strings.HasSuffix(twin, `"truncated":true}`) {
		t.Errorf("twin is %s", twin)
	}
}

// meadow is a tree with everything that makes searching hard.
func meadow(t testing.TB) *desk {
	d := newDesk(t)
	files := map[string]string{
		".git/config":        "needle in git\n",
		".git/info/exclude":  "excluded.txt\n",
		".gitignore":         "# comment\n\nbuild/\n*.log\n!important.log\n/rooted.txt\ndocs/*.tmp\ntrailing.txt  \n**/deep/never.txt\nnested/**\n{a,b}.txt\n\\!bang.txt\n",
		"sub/.gitignore":     "*.md\n!keep.md\nimportant.log\n",
		"main.go":            "package main\n\n// needle one\nfunc main() {\n\tneedle()\n}\n\nfunc needle() {}\n",
		"util.go":            "package main\nvar x = 1\n",
		"crlf.go":            "first\r\nneedle crlf\r\nlast needle\r\n",
		"noend.txt":          "x\nneedle at the end",
		"Needle.md":          "Needle With Capitals\nNEEDLE\n",
		"build/out.go":       "needle\n",
		"app.log":            "needle\n",
		"important.log":      "needle\n",
		"rooted.txt":         "needle\n",
		"sub/rooted.txt":     "needle\n",
		"docs/x.tmp":         "needle\n",
		"docs/more/x.tmp":    "needle\n",
		"trailing.txt":       "needle\n",
		"a/b/deep/never.txt": "needle\n",
		"nested/x.txt":       "needle\n",
		"{a,b}.txt":          "needle\n",
		"a.txt":              "needle\n",
		"!bang.txt":          "needle\n",
		"excluded.txt":       "needle\n",
		"sub/readme.md":      "needle\n",
		"sub/keep.md":        "needle\n",
		"sub/important.log":  "needle\n",
		".hidden/h.txt":      "needle\n",
		".ignore":            "util.go\nmain.go\n",
		"binary.bin":         "needle\x00needle\n",
		"latin1.txt":         "caf\xe9 needle\n",
		"utf16.txt":          string(encode("a\nneedle sixteen é\n", utf16LE)),
		"bom.txt":            "\xef\xbb\xbfneedle first\n",
		"empty.txt":          "",
		"with space.txt":     "needle: a:b-c\n-- needle\n",
		"-dash.txt":          "needle\n",
		"web/app.ts":         "const needle = 1\nfoo(\n  bar,\n  needle)\n",
		"web/app.test.ts":    "needle\n",
		"web/style.css":      "needle\n",
		"inner/.git/HEAD":    "",
		"inner/.gitignore":   "skip.txt\n",
		"inner/skip.txt":     "needle\n",
		"inner/app.log":      "needle: the outer rules end here\n",
		"context.txt":        "1\n2 needle\n3\n4\n5\n6\n7 needle\n8\n9 needle\n10\n11\n12\n13\n14\n15\n",
		"blank.txt":          "\n\nneedle\n\n\n",
		"dup.txt":            "needle needle needle\n",
		"long.txt":           strings.Repeat("x", 3000) + "needle" + strings.Repeat("y", 3000) + "\n",
		"multi.txt":          "begin {\n  one\n  two\n}\nbegin {\n}\n",
	}
	if runtime.GOOS == "windows" {
		t.Skip("names that this system does not take")
	}
	for name, content := range files {
		d.put(name, content)
	}
	link(t, "../main.go", d.path("web/link.go"))
	link(t, "..", d.path("web/up"))
	return d
}

func TestBothEnginesAgree(t *testing.T) {
	rg := ripgrep()
	if rg == "" {
		t.Skip("no ripgrep here")
	}
	d := meadow(t)
	base := query{pattern: "needle", dir: d.dir, mode: modeFiles}
	var queries []query
	vary := func(change func(*query)) {
		for _, mode := range []string{modeFiles, modeContent, modeCount} {
			q := base
			q.mode = mode
			change(&q)
			if q.mode != modeContent {
				q.before, q.after = 0, 0
			}
			queries = append(queries, q)
		}
	}
	vary(func(*query) {})
	vary(func(q *query) { q.insensitive = true })
	for _, c := range [][2]int{{1, 0}, {0, 2}, {2, 2}, {100, 100}} {
		vary(func(q *query) { q.before, q.after = c[0], c[1] })
	}
	for _, pattern := range []string{`needle$`, `^needle`, `^$`, `needle\(`, `[nN]eedle \w+`, `-- needle`, `-n`, `a|needle`, `(?i)NEEDLE`, `\bneedle\b`, `x{300}n`, `é`, `needle.*needle`, `\.`, ` `} {
		vary(func(q *query) { q.pattern = pattern })
	}
	for _, globs := range [][]string{{"*.go"}, {"**/*.ts"}, {"web/**"}, {"!*.md"}, {"*.ts", "!*.test.ts"}, {"*.log"}, {"*.{ts,css}"}, {"sub/*"}, {"/web/*.ts"}, {"build/**"}, {"!web"}, {"web"}, {".hidden/*"}, {"{a,b}.txt"}, {"*"}} {
		vary(func(q *query) { q.globs = globs })
	}
	for _, kind := range []string{"go", "ts", "md", "css", "js"} {
		vary(func(q *query) { q.kind = kind })
	}
	for _, dir := range []string{"web", "sub", "build", "inner", "docs", "a/b", "nested", ".git"} {
		vary(func(q *query) { q.dir = d.path(dir) })
	}
	for _, file := range []string{"main.go", "app.log", "-dash.txt", "utf16.txt", "crlf.go", "with space.txt", "empty.txt", "util.go"} {
		vary(func(q *query) { q.file = file; q.globs = []string{"*.md"}; q.kind = "" })
	}
	for _, pattern := range []string{`begin \{.*?\}`, `foo\(.*needle`, `needle`, `one\n`, `^needle$`, `\n\n`, `needle\s+needle`, `crlf\r?\nlast`} {
		vary(func(q *query) { q.multiline = true; q.pattern = pattern; q.before = 1 })
	}
	for _, q := range queries {
		theirs, err := searchWithRipgrep(t.Context(), rg, q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		ours, err := searchByWalking(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if q.mode == modeFiles { // neither says how often
			for i := range ours.files {
				ours.files[i].count = 0
			}
		}
		if q.mode == modeContent { // ripgrep does not say it, so lines are counted
			for i, f := range ours.files {
				ours.files[i].count = 0
				for _, l := range f.lines {
					if l.match {
						ours.files[i].count++
					}
				}
			}
		}
		if diff := cmp.Diff(theirs.files, ours.files, cmp.AllowUnexported(fileHits{}, hitLine{})); diff != "" {
			t.Errorf("%+v (-ripgrep +ours):\n%s", q, diff)
		}
	}
	t.Logf("%d queries", len(queries))
}

func TestGrepShows(t *testing.T) {
	d := newDesk(t)
	d.put("a.go", "one\nneedle\nthree\nfour\nfive\nneedle\n")
	d.put("sub/b.go", "needle needle\n")
	d.put("c.txt", "nothing\n")
	d.age("a.go", 1)
	tests := []struct {
		name string
		in   args
		want string
	}{
		{"files", args{"pattern": "needle"}, "Found 2 files\nsub/b.go\na.go"},
		{"one file", args{"pattern": "needle", "glob": "a.*"}, "Found 1 file\na.go"},
		{"count", args{"pattern": "needle", "output_mode": "count"}, "a.go:2\nsub/b.go:1\n[3 in 2 files]"},
		{"content", args{"pattern": "needle", "output_mode": "content"}, "a.go:2:needle\na.go:6:needle\nsub/b.go:1:needle needle"},
		{"no numbers", args{"pattern": "needle", "output_mode": "content", "-n": false}, "a.go:needle\na.go:needle\nsub/b.go:needle needle"},
		{"around", args{"pattern": "needle", "output_mode": "content", "-C": 1}, "a.go-1-one\na.go:2:needle\na.go-3-three\n--\na.go-5-five\na.go:6:needle\n--\nsub/b.go:1:needle needle"},
		{"context", args{"pattern": "three", "output_mode": "content", "context": 1, "-A": 2}, "a.go-2-needle\na.go:3:three\na.go-4-four\na.go-5-five"},
		{"limit", args{"pattern": "needle", "output_mode": "content", "head_limit": 1}, "a.go:2:needle\n[Shown: 1 to 1 of 3. Narrow the search, or continue with offset 1.]"},
		{"offset", args{"pattern": "needle", "output_mode": "content", "offset": 1, "head_limit": 5}, "a.go:6:needle\nsub/b.go:1:needle needle\n[Shown: 2 to 3 of 3.]"},
		{"beyond", args{"pattern": "needle", "offset": 7}, "Found 2 files\n\n[There are only 2; offset 7 is beyond the end.]"},
		{"file", args{"pattern": "e", "path": "c.txt", "output_mode": "content"}, "No matches found"},
		{"in a file", args{"pattern": "not", "path": d.path("c.txt"), "output_mode": "content"}, "c.txt:1:nothing"},
		{"in a folder", args{"pattern": "needle", "path": "sub"}, "Found 1 file\nsub/b.go"},
		{"none", args{"pattern": "nowhere"}, "No files found"},
		{"case", args{"pattern": "NEEDLE", "-i": true, "type": "go"}, "Found 2 files\nsub/b.go\na.go"},
		{"lines", args{"pattern": "three.four", "multiline": true, "output_mode": "content"}, "a.go:3:three\na.go:4:four"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, d.ok("Grep", tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	r := d.call("Grep", args{"pattern": "needle", "output_mode": "content", "head_limit": 1})
	if want := `{"mode":"content","numFiles":2,"filenames":["a.go","sub/b.go"],"content":"a.go:2:needle","numLines":1,"appliedLimit":1}`; string(r.Structured) != want {
		t.Errorf("twin is %s", r.Structured)
	}
	d.put("bin", "needle\x00")
	d.refused("Grep", args{"pattern": "x", "path": "bin"}, "binary")
	d.refused("Grep", args{"pattern": ""}, "empty")
	d.refused("Grep", args{"pattern": "x", "path": "missing"}, "does not exist")
	d.refused("Grep", args{"pattern": "foo("}, "not a valid regular expression", "backslash")
}

func TestGrepCutsLongResults(t *testing.T) {
	d := newDesk(t)
	d.put("wide", "a"+strings.Repeat("é", 2000)+"\n")
	if got := d.ok("Grep", args{"pattern": "^a", "output_mode": "content"}); !strings.HasSuffix(got, "é [… line cut: it has 4001 bytes]") {
		t.Errorf("ends with %q", got[len(got)-60:])
	}
	d.put("many", strings.Repeat("needle in a line of some length\n", 5000))
	got := d.ok("Grep", args{"pattern": "needle", "output_mode": "content"})
	if len(got) > maxGrepResult+200 || !strings.Contains(got, " of 5000. Narrow the search, or continue with offset ") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-100:])
	}
}

func TestOwnEngineRefuses(t *testing.T) {
	d := newDesk(t)
	var bad *patternError
	if _, err := searchByWalking(t.Context(), query{pattern: "a(", dir: d.dir}); !errors.As(err, &bad) {
		t.Errorf("a bad pattern: %v", err)
	}
	if _, err := searchByWalking(t.Context(), query{pattern: "a", dir: d.dir, kind: "cobol"}); err == nil || !strings.Contains(err.Error(), "cobol") {
		t.Errorf("an unknown kind: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	d.put("f", "a")
	if _, err := searchByWalking(ctx, query{pattern: "a", dir: d.dir}); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	if rg := ripgrep(); rg != "" {
		if _, err := searchWithRipgrep(ctx, rg, query{pattern: "a", dir: d.dir}); !errors.Is(err, why) {
			t.Errorf("ripgrep interrupted: %v", err)
		}
	}
}

func TestSearchEndsWhenThereIsTooMuch(t *testing.T) {
	d := newDesk(t)
	for i := range 40 {
		d.put(fmt.Sprint("f", i), strings.Repeat("needle\n", 1<<16))
	}
	q := query{pattern: "needle", dir: d.dir, mode: modeContent}
	if found, err := searchByWalking(t.Context(), q); err != nil || !found.cut || len(found.files) == 0 {
		t.Errorf("ours: %v, cut: %v, %d files", err, found.cut, len(found.files))
	}
	if rg := ripgrep(); rg != "" {
		if found, err := searchWithRipgrep(t.Context(), rg, q); err != nil || !found.cut || len(found.files) == 0 {
			t.Errorf("ripgrep: %v, cut: %v, %d files", err, found.cut, len(found.files))
		}
	}
	if got := d.ok("Grep", args{"pattern": "needle", "output_mode": "content"}); !strings.HasSuffix(got, "[The search was ended early: there is far too much to find. Narrow it down.]") {
		t.Errorf("ends with %q", got[len(got)-200:])
	}
}

func TestFilesThatAreBinaryLate(t *testing.T) {
	d := newDesk(t)
	d.put("late.bin", "needle early\n"+strings.Repeat("padding line\n", 20000)+"needle\x00late\n")
	d.put("text", "needle\n")
	if got := d.ok("Grep", args{"pattern": "needle", "output_mode": "content"}); got != "text:1:needle" {
		t.Errorf("got %q", got)
	}
	if found, err := searchByWalking(t.Context(), query{pattern: "needle", dir: d.dir, mode: modeFiles}); err != nil || len(found.files) != 1 {
		t.Errorf("%+v %v", found, err)
	}
}

func TestSplitGlobs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       {},
		"*.go":                   {"*.go"},
		"*.go *.ts,!x":           {"*.go", "*.ts", "!x"},
		"*.{js,jsx} , src/{a,b}": {"*.{js,jsx}", "src/{a,b}"},
	} {
		if diff := cmp.Diff(want, splitGlobs(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	d := newDesk(b)
	for i := range 500 {
		d.put(filepath.Join(fmt.Sprint("d", i%20), fmt.Sprint("f", i, ".go")), strings.Repeat("some line of code with nothing in it\n", 200)+"needle\n")
	}
	q := query{pattern: `needle`, dir: d.dir, mode: modeFiles}
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			_, _ = searchByWalking(b.Context(), q)
		}
	})
	if rg := ripgrep(); rg != "" {
		b.Run("ripgrep", func(b *testing.B) {
			for b.Loop() {
				_, _ = searchWithRipgrep(b.Context(), rg, q)
			}
		})
	}
}
