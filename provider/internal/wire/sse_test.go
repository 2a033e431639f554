package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// list writes down what a stream holds.
func list(r io.Reader) string {
	var out strings.Builder
	events := NewEvents(r)
	for events.Next() {
		ev := events.Event()
		fmt.Fprintf(&out, "%s=%q;", ev.Name, ev.Data)
	}
	if events.Err() != nil {
		fmt.Fprintf(&out, "!%v", events.Err())
	}
	return out.String()
}

func TestEvents(t *testing.T) {
	for _, c := range []struct{ name, stream, want string }{
		{"empty", "", ""},
		{"plain", "event: a\ndata: {}\n\n", `a="{}";`},
		{"two", "data: 1\n\ndata: 2\n\n", `="1";="2";`},
		{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", `a="1";="2";`},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", `a="1";="2";`},
		{"mixed", "event: a\rdata: 1\n\r\ndata: 2\r\n\n", `a="1";="2";`},
		{"lines", "data: 1\ndata:  2\ndata\ndata:\n\n", `="1\n 2\n\n";`},
		{"mark", "\xef\xbb\xbfdata: 1\n\n", `="1";`},
		{"half a mark", "\xef\xbbdata: 1\n\ndata: 2\n\n", `="2";`},
		{"comments", ": hello\n\n:\n\ndata: 1\n: x\n\n", `="1";`},
		{"no data", "event: a\n\ndata: 1\n\n", `="1";`},
		{"other fields", "id: 7\nretry: 3\nnews: x\ndata: 1\n\n", `="1";`},
		{"colons", "data: a:b: c\n\n", `="a:b: c";`},
		{"no blank line at the end", "data: {\"a\":1}\n", `="{\"a\":1}";`},
		{"no line end at the end", "data: {\"a\":1}", `="{\"a\":1}";`},
		{"done without an end", "data: [DONE]", `="[DONE]";`},
		{"cut", "data: 1\n\ndata: {\"a\":", `="1";!unexpected EOF`},
		{"cut between the lines", "data: {\"a\":\ndata: ", `!unexpected EOF`},
		{"cut in a field's name", "data: 1\n\nda", `="1";`},
		{"NUL", "data: \x00\n\n", `="\x00";`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range len(c.stream) + 1 {
				parts := io.MultiReader(strings.NewReader(c.stream[:i]), strings.NewReader(c.stream[i:]))
				if got := list(parts); got != c.want {
					t.Fatalf("split at %d: %s, want %s", i, got, c.want)
				}
			}
			if got := list(iotest.OneByteReader(strings.NewReader(c.stream))); got != c.want {
				t.Errorf("byte by byte: %s, want %s", got, c.want)
			}
			if got := list(iotest.DataErrReader(strings.NewReader(c.stream))); got != c.want {
				t.Errorf("with the error beside the last bytes: %s, want %s", got, c.want)
			}
		})
	}
}

func TestEventsOfABrokenReader(t *testing.T) {
	broken := errors.New("reset")
	got := list(io.MultiReader(strings.NewReader("data: 1\n\ndata: {}\n"), iotest.ErrReader(broken)))
	if want := `="1";!reset`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := list(stuck{}); !strings.Contains(got, io.ErrNoProgress.Error()) {
		t.Errorf("a reader without progress: %s", got)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestEndlessEvents end with an error, in bounded memory.
func TestEndlessEvents(t *testing.T) {
	for name, endless := range map[string]string{"a line": "x", "data lines": "data: " + strings.Repeat("x", 1000) + "\n"} {
		t.Run(name, func(t *testing.T) {
			source := &repeating{pattern: []byte(endless)}
			got := list(source)
			if !strings.Contains(got, errTooLong.Error()) {
				t.Errorf("%.100s", got)
			}
			if source.n > 3*MaxEvent {
				t.Errorf("%d bytes were read", source.n)
			}
			runtime.GC()
		})
	}
}

type repeating struct {
	pattern []byte
	n       int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := 0
	for n+len(r.pattern) <= len(p) {
		n += copy(p[n:], r.pattern)
	}
	if n == 0 { // a small buffer: let it be filled
		n = copy(p, r.pattern)
	}
	r.n += n
	return n, nil
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: {\"x\":1}\r\n\r\n: c\rdata: 2\n\n"), 3)
	f.Add([]byte("\xef\xbb\xbfdata\n\n\ndata: [DONE]"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, at int) {
		want := list(bytes.NewReader(stream))
		if at = max(0, at); at > len(stream) {
			at = len(stream)
		}
		if got := list(io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:]))); got != want {
			t.Errorf("split at %d: %s\nin one piece: %s", at, got, want)
		}
		if got := list(iotest.OneByteReader(bytes.NewReader(stream))); got != want {
			t.Errorf("byte by byte: %s\nin one piece: %s", got, want)
		}
	})
}
