package ids

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	if a, b := WordsOf("x"), WordsOf("x"); a != b || strings.Count(a, "-") != 2 {
		t.Errorf("a seed's name: %q, then %q", a, b)
	}
	seen := map[string]bool{}
	for range 50 {
		seen[Words()] = true
	}
	if len(seen) < 45 {
		t.Errorf("50 random names are only %d", len(seen))
	}
}
