package builtin

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	tests := map[string]string{
		"a\tb\nc": "a\tb\nc",
		"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[K": "red x",
		"\x1b]0;title\aafter":                          "after",
		"\x1b]52;c;aGFjaw==\x1b\\after":                "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ end": "link end",
		"\x1bPq#0;2;0;0;0\n#0~~\x1b\\sixel":            "sixel",
		"\x1b(B\x1b=\x1b>\x1b7\x1b8\x1bcx":             "x",
		"\u009b31mred\u009d0;t\ax":                     "redx",
		"10%\r50%\r100%\ndone\r\n":                     "100%\ndone\n",
		"kept\r":                                       "kept",
		"longer text\rshort":                           "short",
		"abc\b\bX":                                     "aX",
		"a\x00b\x07c\x7fd\x0b":                         "abcd",
		"bad \xff utf-8":                               "bad \uFFFD utf-8",
		"\x1b[31":                                      "",
		"\x1b":                                         "",
		"\x1b]0;no end\nnext line":                     "0;no end\nnext line",
		"\x1b[3\nx":                                    "\nx",
		"\x1b[0;1\x1b[2mx":                             "x",
		"日本語 é 𝄞":                                      "日本語 é 𝄞",
	}
	for in, want := range tests {
		if got := plain([]byte(in)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestPlainOfACutOutput(t *testing.T) {
	if got := plainUpTo([]byte("seen\x1b]52;c;aGFj"), true); got != "seen" {
		t.Errorf("got %q", got)
	}
}

// TestPlainIsFast takes the input that is worst for skipping strings.
func TestPlainIsFast(t *testing.T) {
	for _, bomb := range []string{strings.Repeat("\x1b]", 1<<16), strings.Repeat("\x1b[", 1<<16), strings.Repeat("\x1bP", 1<<16) + "\a", strings.Repeat("x\r", 1<<16)} {
		if got := plain([]byte(bomb)); len(got) > len(bomb) {
			t.Errorf("%d bytes became %d", len(bomb), len(got))
		}
	}
}

func TestMiddleOut(t *testing.T) {
	if head, tail := middleOut("short", 5); head != "short" || tail != "" {
		t.Errorf("%q %q", head, tail)
	}
	head, tail := middleOut(strings.Repeat("é", 101), 20)
	if head != strings.Repeat("é", 10) || tail != strings.Repeat("é", 10) {
		t.Errorf("%q %q", head, tail)
	}
	head, tail = middleOut(strings.Repeat("123456789\n", 100), 105)
	if head != strings.TrimSuffix(strings.Repeat("123456789\n", 5), "\n") || tail != strings.Repeat("123456789\n", 5) {
		t.Errorf("%q %q", head, tail)
	}
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"\x1b[31mx\x1b[0m", "\x1b]0;t\x07\r\n\b", "\xc2\x9b1m\xff", "\x1bP\x1b\\\x1b", "a\rb\x1b[K\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := plain(raw)
		if !utf8.ValidString(got) {
			t.Fatalf("%q became %q, which is not UTF-8", raw, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q became %q, which has %q", raw, got, r)
			}
		}
		if again := plain([]byte(got)); again != got {
			t.Fatalf("%q became %q and then %q", raw, got, again)
		}
	})
}
