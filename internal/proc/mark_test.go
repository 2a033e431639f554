package proc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithMark(t *testing.T) {
	env := []string{"A=1", markName + "=outer", "B=2"}
	if diff := cmp.Diff([]string{"A=1", "B=2", markName + "=outer mine"}, withMark(env, "mine")); diff != "" {
		t.Errorf("a run within a run (-want +got):\n%s", diff)
	}
	if env[1] != markName+"=outer" {
		t.Error("the given environment was changed")
	}
	if diff := cmp.Diff([]string{markName + "=mine"}, withMark([]string{}, "mine")); diff != "" {
		t.Errorf("an empty environment (-want +got):\n%s", diff)
	}
}

// TestIsMark: what is not ours must never be looked for in environments. An empty
// text would stand in all of them.
func TestIsMark(t *testing.T) {
	base := strings.Repeat("0a", baseLength/2)
	if mark := markOf(base, 17); !isMark(mark) {
		t.Errorf("%q is a mark", mark)
	}
	for _, text := range []string{"", ".", "..", base, base + ".", base + "..", base + ".1", base + ".1.2.", base[1:] + ".1.", base + ".x.", strings.ToUpper(base) + ".1."} {
		if isMark(text) {
			t.Errorf("%q is no mark", text)
		}
	}
}
