package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// insert adds a value at a JSON pointer, on a line of its own where its neighbours
// have one.
func insert(tree *hujson.Value, pointer string, value any) error {
	parent := tree
	if dir := path.Dir(pointer); dir != "/" {
		parent = tree.Find(dir)
	}
	before, comma := indentation(parent), hasTrailingComma(parent)
	flat, err := jsonx.Marshal(value)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if before == "" {
		text.Write(flat)
	} else if err := json.Indent(&text, flat, before[1:], unit(before)); err != nil {
		return err
	}
	patch := fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, pointer, text.Bytes())
	if err := tree.Patch([]byte(patch)); err != nil {
		return err
	}
	if last := lastValue(parent); comma {
		last.AfterExtra = hujson.Extra{}
	}
	added := addedExtra(parent)
	if added == nil {
		return nil
	}
	// A comment behind the former last value stays behind it, and ends before the
	// new one.
	comment := bytes.TrimRight(*added, " \t\r\n")
	if before == "" {
		before = " "
		if len(comment) > 0 {
			before = "\n"
		}
	}
	*added = append(comment[:len(comment):len(comment)], before...)
	return nil
}

// lastValue is the last value in parent, or nil.
func lastValue(parent *hujson.Value) *hujson.Value {
	switch parent := parent.Value.(type) {
	case *hujson.Array:
		if n := len(parent.Elements); n > 0 {
			return &parent.Elements[n-1]
		}
	case *hujson.Object:
		if n := len(parent.Members); n > 0 {
			return &parent.Members[n-1].Value
		}
	}
	return nil
}

func hasTrailingComma(parent *hujson.Value) bool {
	last := lastValue(parent)
	return last != nil && last.AfterExtra != nil
}

// addedExtra is the text before the last of at least two values.
func addedExtra(parent *hujson.Value) *hujson.Extra {
	switch parent := parent.Value.(type) {
	case *hujson.Array:
		if n := len(parent.Elements); n > 1 {
			return &parent.Elements[n-1].BeforeExtra
		}
	case *hujson.Object:
		if n := len(parent.Members); n > 0 {
			parent.Members[n-1].Value.BeforeExtra = hujson.Extra(" ")
			if n > 1 {
				return &parent.Members[n-1].Name.BeforeExtra
			}
		}
	}
	return nil
}

// indentation is the line break and white space before the first value in
// parent, or "" when that is on the line of the bracket.
func indentation(parent *hujson.Value) string {
	var extra hujson.Extra
	switch parent := parent.Value.(type) {
	case *hujson.Array:
		if len(parent.Elements) > 0 {
			extra = parent.Elements[0].BeforeExtra
		}
	case *hujson.Object:
		if len(parent.Members) > 0 {
			extra = parent.Members[0].Name.BeforeExtra
		}
	}
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 || len(bytes.TrimSpace(extra[i:])) > 0 {
		return ""
	}
	return string(extra[i:])
}

// unit is one step of the indentation that before shows.
func unit(before string) string {
	if strings.Contains(before, "\t") {
		return "\t"
	}
	return "  "
}
