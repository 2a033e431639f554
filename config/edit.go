package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// maxTries is how often an edit starts again because somebody else wrote the
// file meanwhile.
const maxTries = 5

// AddRule adds a permission rule to the settings file, whose path must be
// absolute, under allow, ask or deny. The file is replaced whole, with its
// comments, order and unknown keys; it is made when it is missing. A rule that
// is there already is no error. A file that cannot be parsed is left alone.
func AddRule(file, behavior, rule string) error {
	switch behavior {
	case "allow", "ask", "deny":
	default:
		return fmt.Errorf("add rule %s to %s: %q is none of allow, ask and deny", rule, file, behavior)
	}
	target := file
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		target = resolved
	}
	for try := 1; ; try++ {
		err := addRule(target, behavior, rule)
		if err == nil {
			return nil
		}
		if try == maxTries || !errors.Is(err, fsx.ErrChanging) {
			return fmt.Errorf("add rule %s to %s: %w", rule, file, err)
		}
	}
}

func addRule(file, behavior, rule string) error {
	text, info, err := fsx.ReadFile(fsx.OS, file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, fsx.MkdirAll(fsx.OS, filepath.Dir(file), layout.DirMode)
	}
	if err != nil {
		return err
	}
	changed, err := withRule(text, behavior, rule)
	if err != nil || changed == nil {
		return err
	}
	read := fsx.KeyOf(info)
	options := fsx.WriteOptions{Mode: layout.FileMode, Ready: func() error {
		now, err := fsx.KeyAt(fsx.OS, file)
		if err == nil && now != read {
			err = fsx.ErrChanging
		}
		return err
	}}
	if info != nil {
		options.Mode = info.Mode().Perm()
	}
	_, err = fsx.WriteAtomic(fsx.OS, file, changed, options)
	return err
}

// withRule is the text of a settings file with one rule more, or nil when the
// rule is there already.
func withRule(text []byte, behavior, rule string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	p, bad := parse(text)
	if bad != nil {
		return nil, fmt.Errorf("line %d: %s", bad.line, bad.text)
	}
	list := "/permissions/" + behavior
	pointer, value := list+"/-", any(rule)
	permissions, found := p.tree.Find("/permissions"), p.tree.Find(list)
	switch {
	case permissions == nil || permissions.Value.Kind() == 'n':
		pointer, value = "/permissions", map[string][]string{behavior: {rule}}
	case found == nil || found.Value.Kind() == 'n':
		pointer, value = list, []string{rule}
	case contains(found, rule):
		return nil, nil
	}
	if len(p.raw.Keys()) == 0 && !bytes.Contains(text, []byte("/")) { // nothing whose place could be kept
		p.raw.Set("permissions", value)
		pretty, err := jsonx.MarshalIndent(p.raw)
		return append(pretty, '\n'), err
	}
	if err := insert(&p.tree, pointer, value); err != nil {
		return nil, err
	}
	return p.tree.Pack(), nil
}

func contains(list *hujson.Value, rule string) bool {
	array, ok := list.Value.(*hujson.Array)
	if !ok {
		return false
	}
	for _, element := range array.Elements {
		if literal, ok := element.Value.(hujson.Literal); ok && literal.Kind() == '"' && literal.String() == rule {
			return true
		}
	}
	return false
}

// insert adds a value at a JSON pointer, on lines of its own where its
// neighbours stand on lines of their own.
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

// addedExtra is what stands before the last of at least two values.
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
// parent, or "" when it stands on the line of the bracket.
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
