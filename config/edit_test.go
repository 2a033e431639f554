package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/fsx"
)

func TestWithRule(t *testing.T) {
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
		{"there already", `{"permissions": {"allow": ["Bash(x)"]}}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := withRule([]byte(tt.before), "allow", "Bash(x)")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
	for name, text := range map[string]string{"broken": "{", "a list": "[]", "no object": `{"permissions": []}`, "no list": `{"permissions": {"allow": "x"}}`} {
		if got, err := withRule([]byte(text), "allow", "Bash(x)"); err == nil {
			t.Errorf("%s was changed to %q", name, got)
		}
	}
}

func TestAddRule(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(m.Project, ".cadre", "settings.local.json")
	for _, rule := range []string{`Bash(echo "a\b" <é>)`, "Read", "Read"} {
		if err := AddRule(file, "deny", rule); err != nil {
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

func TestAddRuleKeepsModeAndLink(t *testing.T) {
	m := newMachine(t)
	real := m.write("~/dotfiles/cadre.json", "{}")
	if err := os.Chmod(real, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(m.home, "settings.json")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if err := AddRule(link, "ask", "Bash"); err != nil {
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

func TestAddRuleRefuses(t *testing.T) {
	m := newMachine(t)
	file := m.write("~/.cadre/settings.json", "{\n\"model\": ")
	err := AddRule(file, "allow", "Read")
	if err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "{\n\"model\": " {
		t.Errorf("the broken file was changed to %q", text)
	}
	if err := AddRule(file, "permit", "Read"); err == nil {
		t.Error("an unknown behavior was taken")
	}
	if err := AddRule(m.Project, "allow", "Read"); !errors.Is(err, fsx.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func FuzzWithRule(f *testing.F) {
	f.Add("{}", "Read")
	f.Add("{\"permissions\": {\"allow\": [ // x\n \"a\", /* y */\n]}}", "Bash(\"\\\")")
	f.Add("{\"\":{}//\n}", "Read")
	f.Add("// a\n{ /* b */ \"x\": 1, }", "")
	f.Fuzz(func(t *testing.T, text, rule string) {
		changed, err := withRule([]byte(text), "allow", rule)
		if err != nil || changed == nil {
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
