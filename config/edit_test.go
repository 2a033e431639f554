package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/fsx"
)

func TestWith(t *testing.T) {
	tests := []struct{ name, before, after string }{
		{"nothing yet", "", "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(x)\"\n    ]\n  }\n}\n"},
		{"an empty object", "{}\n", "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(x)\"\n    ]\n  }\n}\n"},
		{"a list on lines",
			"// mine\n{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\", // all\n      \"Edit\"\n    ]\n  },\n  \"zz\": 1\n}\n",
			"// mine\n{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\", // all\n      \"Edit\",\n      \"Bash(x)\"\n    ]\n  },\n  \"zz\": 1\n}\n"},
		{"a comment behind the last rule",
			"{\"permissions\": {\"allow\": [\n  \"Read\", // a\n  \"Edit\" // b\n]}}",
			"{\"permissions\": {\"allow\": [\n  \"Read\", // a\n  \"Edit\", // b\n  \"Bash(x)\"\n]}}"},
		{"a trailing comma",
			"{\"permissions\": {\"allow\": [\n\t\"Read\",\n]}}",
			"{\"permissions\": {\"allow\": [\n\t\"Read\",\n\t\"Bash(x)\",\n]}}"},
		{"a list on one line", `{"permissions": {"allow": ["Read"]}}`, `{"permissions": {"allow": ["Read", "Bash(x)"]}}`},
		{"an empty list", `{"permissions": {"allow": []}}`, `{"permissions": {"allow": ["Bash(x)"]}}`},
		{"no list", "{\n  \"permissions\": {\n    \"deny\": [\"Read\"]\n  }\n}",
			"{\n  \"permissions\": {\n    \"deny\": [\"Read\"],\n    \"allow\": [\n      \"Bash(x)\"\n    ]\n  }\n}"},
		{"null", `{"a": 1, "permissions": null}`, `{"a": 1, "permissions": {"allow":["Bash(x)"]}}`},
		{"no permissions", "{\n\t\"model\": \"m\" // best\n}\n",
			"{\n\t\"model\": \"m\", // best\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Bash(x)\"\n\t\t]\n\t}\n}\n"},
		{"there already", `{"permissions": {"allow": ["Bash(x)"]}}`, `{"permissions": {"allow": ["Bash(x)"]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := with([]byte(tt.before), AllowList, "Bash(x)")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
	for name, text := range map[string]string{"broken": "{", "a list": "[]", "no object": `{"permissions": []}`, "no list": `{"permissions": {"allow": "x"}}`} {
		if got, err := with([]byte(text), AllowList, "Bash(x)"); err == nil {
			t.Errorf("%s was changed to %q", name, got)
		}
	}
}

func TestEditFile(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(m.Project, ".cadre", "settings.local.json")
	for _, rule := range []string{`Bash(echo "a\b" <é>)`, "Read", "Read"} {
		if err := EditFile(file, Edit{List: DenyList, Add: []string{rule}}); err != nil {
			t.Fatal(err)
		}
	}
	e := m.load()
	if diff := cmp.Diff([]string{`Bash(echo "a\b" <é>) < local`, "Read < local"}, texts(e.Permissions.Deny)); diff != "" {
		t.Errorf("deny (-want +got):\n%s", diff)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v: others may read the new file", info, err)
	}
	names, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(names) != 1 {
		t.Errorf("left beside the file: %v %v", names, err)
	}
}

func TestEditFileKeepsModeAndLink(t *testing.T) {
	m := newMachine(t)
	real := m.write("~/dotfiles/cadre.json", "{}")
	if err := os.Chmod(real, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(m.home, "settings.json")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if err := EditFile(link, Edit{List: AskList, Add: []string{"Bash"}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode: %v %v", info, err)
	}
	if text, err := os.ReadFile(real); err != nil || !strings.Contains(string(text), `"Bash"`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestEditFileRefuses(t *testing.T) {
	m := newMachine(t)
	file := m.write("~/.cadre/settings.json", "{\n\"model\": ")
	err := EditFile(file, Edit{List: AllowList, Add: []string{"Read"}})
	if err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "{\n\"model\": " {
		t.Errorf("the broken file was changed to %q", text)
	}
	if err := EditFile(file, Edit{List: "permit", Add: []string{"Read"}}); err == nil {
		t.Error("an unknown list was accepted")
	}
	if err := EditFile(m.Project, Edit{List: AllowList, Add: []string{"Read"}}); !errors.Is(err, fsx.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestEdits(t *testing.T) {
	const rules = "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"A\", // a\n      \"B\",\n      \"C\" // c\n    ],\n    \"zz\": 1\n  }\n}\n"
	for _, tt := range []struct {
		name, before string
		edit         Edit
		after        string
	}{
		{"one goes", rules, Edit{List: AllowList, Remove: []string{"B"}}, strings.Replace(rules, "\n      \"B\",", "", 1)},
		{"the last goes", `{"permissions":{"deny":["A","B"],}}`, Edit{List: DenyList, Remove: []string{"B"}}, `{"permissions":{"deny":["A"],}}`},
		{"the last goes from a list on lines", rules, Edit{List: AllowList, Remove: []string{"C"}}, strings.Replace(rules, ",\n      \"C\" // c", "", 1)},
		{"the first goes with its comment", rules, Edit{List: AllowList, Remove: []string{"A"}}, strings.Replace(rules, "\n      \"A\", // a", "", 1)},
		{"the last goes, with a comma at the end", `{"permissions":{"deny":["A","B",]}}`, Edit{List: DenyList, Remove: []string{"B"}}, `{"permissions":{"deny":["A",]}}`},
		{"all go", `{"permissions":{"deny":["A","B"]},"x":1}`, Edit{List: DenyList, Remove: []string{"A", "B"}}, `{"permissions":{"deny":[]},"x":1}`},
		{"of two equal ones both go", `{"permissions":{"ask":["A","B","A"]}}`, Edit{List: AskList, Remove: []string{"A"}}, `{"permissions":{"ask":["B"]}}`},
		{"replaced", `{"permissions":{"ask":["A","B","C"]}}`, Edit{List: AskList, Clear: true, Add: []string{"D", "B"}}, `{"permissions":{"ask":["B", "D"]}}`},
		{"what is not there goes", rules, Edit{List: AskList, Remove: []string{"A"}}, rules},
		{"nothing goes from nothing", "", Edit{List: AllowList, Clear: true}, ""},
		{"folders", `{"permissions":{"additionalDirectories":["/a"]}}`, Edit{List: FolderList, Remove: []string{"/a"}, Add: []string{"/b"}}, `{"permissions":{"additionalDirectories":["/b"]}}`},
		{"a mode", `{"a":1}`, Edit{Mode: "plan"}, `{"a":1, "permissions": {"defaultMode":"plan"}}`},
		{"another mode", `{"permissions":{"defaultMode":"plan" /* p */}}`, Edit{Mode: "default"}, `{"permissions":{"defaultMode":"default" /* p */}}`},
		{"the same mode", `{"permissions":{"defaultMode" : "plan"}}`, Edit{Mode: "plan"}, `{"permissions":{"defaultMode" : "plan"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := edited([]byte(tt.before), []Edit{tt.edit})
			if diff := cmp.Diff(tt.after, string(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestEditFileMakesNoFileToRemoveFrom(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(m.Project, ".claude", "settings.json")
	if err := EditFile(file, Edit{List: AllowList, Remove: []string{"A"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

func FuzzWith(f *testing.F) {
	f.Add("{}", "Read")
	f.Add("{\"permissions\": {\"allow\": [ // x\n \"a\", /* y */\n]}}", "Bash(\"\\\")")
	f.Add("{\"\":{}//\n}", "Read")
	f.Add("// a\n{ /* b */ \"x\": 1, }", "")
	f.Fuzz(func(t *testing.T, text, rule string) {
		changed, err := with([]byte(text), AllowList, rule)
		if err != nil || string(changed) == text {
			return
		}
		p, bad := parse(changed)
		if bad != nil {
			t.Fatalf("%q became %q: line %d: %s", text, changed, bad.line, bad.text)
		}
		allow := p.Permissions.Allow
		var same string
		if err := json.Unmarshal(must(json.Marshal(rule)), &same); err != nil {
			t.Fatal(err)
		}
		if len(allow) == 0 || allow[len(allow)-1] != same {
			t.Errorf("%q became %q: rules %q", text, changed, allow)
		}
		if before, err := hujson.Parse([]byte(text)); err == nil {
			for _, comment := range []string{"/* b */", "// x", "/* y */"} {
				if strings.Contains(before.String(), comment) && !strings.Contains(string(changed), comment) {
					t.Errorf("%q became %q: a comment is gone", text, changed)
				}
			}
		}
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func FuzzWithout(f *testing.F) {
	f.Add("{\"permissions\": {\"allow\": [ // x\n \"a\", /* y */\n]}}", "a")
	f.Add("{\"permissions\": {\"allow\": [\"a\",\"b\"/**/,\"a\",]}, \"z\": 1}", "a")
	f.Fuzz(func(t *testing.T, text, rule string) {
		before, bad := parse([]byte(text))
		if bad != nil {
			return
		}
		changed, err := without([]byte(text), AllowList, func(value string) bool { return value == rule })
		if err != nil {
			t.Fatal(err)
		}
		p, bad := parse(changed)
		if bad != nil {
			t.Fatalf("%q became %q: line %d: %s", text, changed, bad.line, bad.text)
		}
		want := slices.DeleteFunc(slices.Clone(before.Permissions.Allow), func(value string) bool { return value == rule })
		if !slices.Equal(want, p.Permissions.Allow) || !slices.Equal(before.raw.Keys(), p.raw.Keys()) {
			t.Errorf("%q became %q: rules %q, want %q", text, changed, p.Permissions.Allow, want)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add(planted, false)
	f.Add("{\"env\": {\"A\": null}}", true)
	f.Fuzz(func(t *testing.T, text string, trusted bool) {
		if !strings.HasPrefix(text, "{") {
			return
		}
		p, bad := parse([]byte(text))
		if (p == nil) == (bad == nil) {
			t.Fatalf("%q: neither a file nor an error", text)
		}
		if p == nil {
			return
		}
		m := &merge{Options: Options{TrustProject: trusted}, into: Effective{Origin: map[string]Source{}}}
		m.add(Source{Scope: Local}, []byte(text))
		if m.into.Permissions.DefaultMode == "bypassPermissions" || strings.HasPrefix(m.into.Model, "scripted:") ||
			!trusted && len(m.into.Permissions.Allow)+len(m.into.Env)+len(m.into.Permissions.Directories) > 0 {
			t.Errorf("%q gave %+v", text, m.into.Settings)
		}
	})
}
