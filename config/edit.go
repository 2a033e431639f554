package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// maxTries is how often an edit starts again because somebody else wrote the
// file meanwhile.
const maxTries = 5

// Edit is one change of the permissions that a settings file holds: of a list, or
// of the mode.
type Edit struct {
	List string // AllowList, AskList, DenyList or FolderList; "" with Mode
	Mode string // the new permissions.defaultMode

	Clear  bool     // removes everything that is not in Add
	Remove []string // removes these
	Add    []string // appends those that are missing
}

// The lists of permissions in a settings file.
const (
	AllowList  = "allow"
	AskList    = "ask"
	DenyList   = "deny"
	FolderList = "additionalDirectories"
)

// EditFile changes the permissions in the settings file at this absolute path. The
// file is replaced as a whole, with its comments, order and unknown keys; it is created
// when it is missing and something is to be added. An edit that changes nothing is no
// error. A file that cannot be parsed is left alone. A symbolic link is followed:
// people keep their settings in a folder of dotfiles.
func EditFile(file string, edits ...Edit) error {
	target := file
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		target = resolved
	}
	for try := 1; ; try++ {
		err := editFile(target, edits)
		if err == nil {
			return nil
		}
		if try == maxTries || !errors.Is(err, fsx.ErrChanging) {
			return fmt.Errorf("change the permissions in %s: %w", file, err)
		}
	}
}

func editFile(file string, edits []Edit) error {
	text, info, err := fsx.ReadFile(fsx.OS, file, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed, err := edited(text, edits)
	if err != nil || bytes.Equal(changed, text) {
		return err
	}
	if err := fsx.MkdirAll(fsx.OS, filepath.Dir(file), layout.DirMode); err != nil {
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

// edited is the text of a settings file after these edits; the same text when
// nothing had to be changed.
func edited(text []byte, edits []Edit) ([]byte, error) {
	for _, e := range edits {
		var err error
		if text, err = e.apply(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (e Edit) apply(text []byte) ([]byte, error) {
	if e.List == "" {
		return withMode(text, e.Mode)
	}
	if !slices.Contains([]string{AllowList, AskList, DenyList, FolderList}, e.List) {
		return nil, fmt.Errorf("there is no list %q of permissions", e.List)
	}
	text, err := without(text, e.List, func(value string) bool {
		return slices.Contains(e.Remove, value) || e.Clear && !slices.Contains(e.Add, value)
	})
	for _, value := range e.Add {
		if err == nil {
			text, err = with(text, e.List, value)
		}
	}
	return text, err
}

// with is the text of a settings file with a value appended to a list, unless the list
// has it.
func with(text []byte, list, value string) ([]byte, error) {
	p, err := parseForEdit(text)
	if err != nil {
		return nil, err
	}
	found := p.tree.Find("/permissions/" + list)
	switch {
	case found == nil || found.Value.Kind() == 'n':
		return p.withPermission(list, []string{value})
	case slices.Contains(values(found), value):
		return text, nil
	}
	if err := insert(&p.tree, "/permissions/"+list+"/-", value); err != nil {
		return nil, err
	}
	return p.tree.Pack(), nil
}

// withMode is the text of a settings file with this defaultMode.
func withMode(text []byte, mode string) ([]byte, error) {
	p, err := parseForEdit(text)
	if err != nil {
		return nil, err
	}
	found := p.tree.Find("/permissions/defaultMode")
	switch {
	case found == nil:
		return p.withPermission("defaultMode", mode)
	case p.Permissions.DefaultMode != nil && *p.Permissions.DefaultMode == mode:
		return text, nil
	}
	found.Value = hujson.String(mode)
	return p.tree.Pack(), nil
}

// withPermission is the text of the file with a key of its permissions that is not
// there, or null.
func (p *parsed) withPermission(key string, value any) ([]byte, error) {
	pointer := "/permissions/" + key
	if permissions := p.tree.Find("/permissions"); permissions == nil || permissions.Value.Kind() == 'n' {
		pointer, value = "/permissions", map[string]any{key: value}
	}
	if len(p.raw.Keys()) == 0 && !bytes.Contains(p.text, []byte("/")) { // there is no order or comment to keep
		p.raw.Set("permissions", value)
		pretty, err := jsonx.MarshalIndent(p.raw)
		return append(pretty, '\n'), err
	}
	if err := insert(&p.tree, pointer, value); err != nil {
		return nil, err
	}
	return p.tree.Pack(), nil
}

// without is the text of a settings file without these values of a list.
func without(text []byte, list string, goes func(value string) bool) ([]byte, error) {
	p, err := parseForEdit(text)
	if err != nil {
		return nil, err
	}
	found := p.tree.Find("/permissions/" + list)
	if found == nil || !slices.ContainsFunc(values(found), goes) {
		return text, nil
	}
	for i, value := range slices.Backward(values(found)) {
		if goes(value) {
			remove(found.Value.(*hujson.Array), i)
		}
	}
	return p.tree.Pack(), nil
}

// remove removes an element of a list, with its comment.
func remove(array *hujson.Array, i int) {
	gone := array.Elements[i]
	array.Elements = slices.Delete(array.Elements, i, i+1)
	if i < len(array.Elements) {
		next := &array.Elements[i]
		next.BeforeExtra = closeGap(gone.BeforeExtra, next.BeforeExtra)
		return
	}
	array.AfterExtra = closeGap(gone.BeforeExtra, array.AfterExtra)
	if i > 0 { // the text before it may end in a comma
		array.Elements[i-1].AfterExtra = gone.AfterExtra
	}
}

// closeGap is what replaces the text around a removed value: without the comment
// behind it, with the one behind its predecessor.
func closeGap(before, behind hujson.Extra) hujson.Extra {
	if bytes.Contains(before, []byte("/*")) || bytes.Contains(behind, []byte("/*")) {
		return slices.Concat(before, behind)
	}
	head, _, onLines := bytes.Cut(before, []byte("\n"))
	if !onLines {
		return behind
	}
	_, rest, _ := bytes.Cut(behind, []byte("\n"))
	return slices.Concat(head, []byte("\n"), rest)
}

func parseForEdit(text []byte) (*parsed, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	p, bad := parse(text)
	if bad != nil {
		return nil, fmt.Errorf("line %d: %s", bad.line, bad.text)
	}
	return p, nil
}

// values are the strings of a list; "" for what is not a string.
func values(list *hujson.Value) []string {
	array, ok := list.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	texts := make([]string, len(array.Elements))
	for i, element := range array.Elements {
		if literal, ok := element.Value.(hujson.Literal); ok && literal.Kind() == '"' {
			texts[i] = literal.String()
		}
	}
	return texts
}
