package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadNumbersLines(t *testing.T) {
	d := newDesk(t)
	path := d.put("a.txt", "one\n\ttwo\r\n\nlast")
	want := "     1\tone\n     2\t\ttwo\n     3\t\n     4\tlast"
	if diff := cmp.Diff(want, d.ok("Read", args{"file_path": path})); diff != "" {
		t.Errorf("by absolute path (-want +got):\n%s", diff)
	}
	if got := d.ok("Read", args{"file_path": "a.txt"}); got != want {
		t.Errorf("by relative path: %q", got)
	}
	r := d.call("Read", args{"file_path": path, "offset": 2, "limit": 2})
	if want := "     2\t\ttwo\n     3\t\n[Lines 2 to 3 of 4. Read on with offset 4.]"; r.Text != want {
		t.Errorf("a part: %q", r.Text)
	}
	twin := `{"type":"text","file":{"filePath":` + fmt.Sprintf("%q", path) + `,"content":"\ttwo\n","numLines":2,"startLine":2,"totalLines":4}}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
}

func TestReadLimits(t *testing.T) {
	d := newDesk(t)
	d.put("long", strings.Repeat("x\n", 2500))
	if got := d.ok("Read", args{"file_path": "long"}); !strings.HasSuffix(got, "  2000\tx\n[Lines 1 to 2000 of 2500. Read on with offset 2001.]") {
		t.Errorf("ends with %q", got[len(got)-100:])
	}
	d.put("wide", strings.Repeat("é", 3000)+"\n"+strings.Repeat("y", 2000)+"\n"+strings.Repeat("z", 1_000_000))
	got := strings.Split(d.ok("Read", args{"file_path": "wide"}), "\n")
	want := []string{
		"     1\t" + strings.Repeat("é", 2000) + " [… line cut: it has 6000 bytes]",
		"     2\t" + strings.Repeat("y", 2000),
		"     3\t" + strings.Repeat("z", 2000) + " [… line cut: it has 1000000 bytes]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wide lines (-want +got):\n%s", diff)
	}
	d.put("both", strings.Repeat(strings.Repeat("w", 1000)+"\n", 1000))
	text := d.ok("Read", args{"file_path": "both"})
	if len(text) > 110<<10 || !strings.Contains(text, "[Lines 1 to 101 of 1000. Read on with offset 102.]") {
		t.Errorf("%d bytes, ends with %q", len(text), text[len(text)-100:])
	}
	if got := d.ok("Read", args{"file_path": "long", "offset": 9999}); got != "[The file has only 2500 lines; line 9999 is beyond its end.]" {
		t.Errorf("beyond the end: %q", got)
	}
	if got := d.ok("Read", args{"file_path": "long", "offset": -5, "limit": "1"}); !strings.HasPrefix(got, "     1\tx\n[Lines 1 to 1 of") {
		t.Errorf("odd numbers: %q", got)
	}
}

func TestReadOddFiles(t *testing.T) {
	d := newDesk(t)
	d.put("empty", "")
	if got := d.ok("Read", args{"file_path": "empty"}); got != "[The file exists, but it is empty.]" {
		t.Errorf("empty: %q", got)
	}
	d.put("latin1", "caf\xe9\n")
	if got := d.ok("Read", args{"file_path": "latin1"}); !strings.HasPrefix(got, "     1\tcaf\uFFFD\n[The file is not valid UTF-8") {
		t.Errorf("Latin-1: %q", got)
	}
	d.put("bom", "\xef\xbb\xbfhello\n")
	d.put("utf16", "\xff\xfeh\x00i\x00\n\x00")
	for name, want := range map[string]string{"bom": "     1\thello", "utf16": "     1\thi"} {
		if got := d.ok("Read", args{"file_path": name}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	d.put("binary", "ELF\x00\x01")
	d.refused("Read", args{"file_path": "binary"}, "binary file of 5 bytes", "xxd")
	d.put("doc.pdf", "%PDF-1.7 x")
	d.refused("Read", args{"file_path": "doc.pdf", "pages": "1-2"}, "PDF", "pdftotext")
	d.put("src/main.go", "")
	d.put("src/pkg/x", "")
	d.refused("Read", args{"file_path": "src"}, "is a folder", "main.go, pkg"+string(os.PathSeparator)+".")
	d.refused("Read", args{"file_path": ""}, "empty")
	link(t, "loop", d.path("loop"))
	d.refused("Read", args{"file_path": "loop"}, "circle")
}

func TestReadMissing(t *testing.T) {
	d := newDesk(t)
	d.put("config.yaml", "")
	d.put("README.md", "")
	d.put("src/util.ts", "")
	d.refused("Read", args{"file_path": d.path("config.yml")}, "File does not exist", "Did you mean "+d.path("config.yaml")+"?")
	d.refused("Read", args{"file_path": d.path("readme.md")}, d.path("README.md"))
	d.refused("Read", args{"file_path": "src/utli.ts"}, d.path("src/util.ts"))
	d.refused("Read", args{"file_path": "/wrong/place/config.yaml"}, d.path("config.yaml"))
	d.refused("Read", args{"file_path": "nothing-like-it"}, "The working folder is "+d.dir)
	d.refused("Read", args{"file_path": "README.md/x"}, "does not exist")
}

func TestReadImage(t *testing.T) {
	d := newDesk(t)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100)
	d.put("p.bin", png) // known by its content
	r := d.call("Read", args{"file_path": "p.bin"})
	if r.IsError || len(r.Blocks) != 1 {
		t.Fatalf("%+v", r)
	}
	var block struct {
		Type   string
		Source struct {
			Type, Data string
			MediaType  string `json:"media_type"`
		}
	}
	wire, err := json.Marshal(r.Blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(wire, &block); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(block.Source.Data)
	if err != nil || string(data) != png || block.Type != "image" || block.Source.Type != "base64" || block.Source.MediaType != "image/png" {
		t.Errorf("%v %+v", err, block)
	}
	for start, media := range map[string]string{"\xff\xd8\xff\xe0": "image/jpeg", "GIF89a": "image/gif", "RIFFxxxxWEBP": "image/webp", "RIFFxxxxWAVE": ""} {
		if got := imageType([]byte(start)); got != media {
			t.Errorf("%q is %q", start, got)
		}
	}
	d.put("big.gif", "GIF89a"+strings.Repeat("\x00", maxImage))
	d.refused("Read", args{"file_path": "big.gif"}, "at most", "smaller copy")
}

func TestParallelReads(t *testing.T) {
	d := newDesk(t)
	var all sync.WaitGroup
	for i := range 200 {
		name := fmt.Sprintf("f%d", i%20)
		if i < 20 {
			d.put(name, strings.Repeat(name+"\n", 100))
		}
	}
	for i := range 200 {
		all.Go(func() {
			name := fmt.Sprintf("f%d", i%20)
			if r := d.call("Read", args{"file_path": name}); r.IsError || !strings.Contains(r.Text, "100\t"+name) {
				t.Errorf("%s: %s", name, r.Text)
			}
		})
	}
	all.Wait()
}

func BenchmarkRead(b *testing.B) {
	d := newDesk(b)
	d.put("f", strings.Repeat("some line of code\n", 1000))
	for b.Loop() {
		d.call("Read", args{"file_path": "f"})
	}
}
