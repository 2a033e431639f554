package cells_test

import (
	"testing"

	"github.com/cadre-dev/cadre/internal/cells"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本語": 6, "한국": 4, "🚀": 2, "…": 1, "a日": 3,
	} {
		if got := cells.Width(text); got != want {
			t.Errorf("%q takes %d, want %d", text, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"a", 0, "…"}, {"", 0, ""},
	} {
		if got := cells.Fit(tt.text, tt.columns); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
	if got := cells.Pad("日", 4) + "|" + cells.Pad("abc", 2); got != "日  |abc" {
		t.Errorf("padded: %q", got)
	}
}
