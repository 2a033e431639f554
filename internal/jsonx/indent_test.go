package jsonx_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

func value(depth int) *rapid.Generator[any] {
	text := rapid.SampledFrom([]string{"", "a", `"`, `\`, "a\nb", "{,", "]: ", "é\u2028"})
	leaves := []*rapid.Generator[any]{
		rapid.Map(text, func(s string) any { return s }), rapid.Just[any](nil), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves,
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(text, value(depth-1), 0, 3), func(m map[string]any) any { return m }))...)
}

func TestIndentIsThatOfEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flat := jsonx.MustMarshal(value(5).Draw(t, "value"))
		var want, got, again bytes.Buffer
		if err := json.Indent(&want, flat, "  ", "  "); err != nil {
			t.Fatal(err)
		}
		jsonx.Indent(&got, flat, "  ", "  ")
		jsonx.Indent(&again, want.Bytes(), "  ", "  ")
		if got.String() != want.String() || again.String() != want.String() {
			t.Fatalf("%s is indented as\n%s\nand again as\n%s\nwant\n%s", flat, got.String(), again.String(), want.String())
		}
	})
}

// A text of brackets must not become one of blanks.
func TestIndentOfDeepNesting(t *testing.T) {
	for _, flat := range []string{
		strings.Repeat("[", 9000) + "1,2" + strings.Repeat("]", 9000),
		strings.Repeat(`{"a":`, 9000) + "[]" + strings.Repeat("}", 9000),
		strings.Repeat("[", 30) + strings.Repeat("[1],", 9000) + "{}" + strings.Repeat("]", 30),
	} {
		var got, back bytes.Buffer
		jsonx.Indent(&got, []byte(flat), "", "  ")
		if got.Len() > 2*len(flat)+10_000 {
			t.Errorf("%d bytes became %d", len(flat), got.Len())
		}
		if err := json.Compact(&back, got.Bytes()); err != nil || back.String() != flat {
			t.Errorf("it says something else now (%v)", err)
		}
	}
}
