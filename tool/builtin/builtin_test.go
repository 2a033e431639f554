package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/tool"
)

// TestMain holds all tests of the package to leaving nothing behind: no goroutine,
// and no file in the temporary folder.
func TestMain(m *testing.M) {
	temp, err := os.MkdirTemp("", "cadre-builtin-test-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"TMPDIR", "TMP"} { // the second on Windows
		os.Setenv(name, temp)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		left, err := os.ReadDir(temp)
		if err != nil || len(left) > 0 {
			fmt.Fprintln(os.Stderr, "left in the temporary folder:", left, err)
			code = max(code, 1)
		}
		os.RemoveAll(temp)
		os.Exit(code)
	}))
}

// desk is a session's tools over a temporary folder.
type desk struct {
	t    testing.TB
	dir  string // resolved
	w    *Workspace
	jobs *job.Pool
	set  *tool.Set
	as   tool.Caller
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	jobs := job.NewPool(nil)
	t.Cleanup(jobs.Close)
	return deskIn(t, dir, NewLedger(), jobs, tool.Caller{SessionID: "s1"})
}

func deskIn(t testing.TB, dir string, ledger *Ledger, jobs *job.Pool, as tool.Caller) *desk {
	outputs := t.TempDir()
	w := NewWorkspace(WorkspaceConfig{Dir: dir, Ledger: ledger, Output: func(id string) string { return filepath.Join(outputs, "jobs", id+".output") }})
	return &desk{t: t, dir: dir, w: w, jobs: jobs, set: tool.NewSet(append(FileTools(w, jobs), AskUserQuestion())...), as: as}
}

// colleague is another session over the same folder.
func (d *desk) colleague(as tool.Caller) *desk {
	return deskIn(d.t, d.dir, d.w.ledger, d.jobs, as)
}

type args map[string]any

// call makes a call the way the loop does, schema and all.
func (d *desk) call(name string, in args) tool.Result { return d.callIn(d.t.Context(), name, in) }

func (d *desk) callIn(ctx context.Context, name string, in args) tool.Result {
	d.t.Helper()
	t, ok := d.set.Lookup(name)
	if !ok {
		d.t.Fatalf("no tool %s", name)
	}
	input, err := t.Spec().Schema.Normalize(name, jsonx.MustMarshal(in))
	if err != nil {
		d.t.Fatal(err)
	}
	return t.Run(tool.WithCaller(ctx, d.as), tool.Call{ID: "toolu_1", Name: name, Input: input})
}

// ok makes a call that must succeed and returns its text.
func (d *desk) ok(name string, in args) string {
	d.t.Helper()
	r := d.call(name, in)
	if r.IsError {
		d.t.Fatalf("%s %v: %s", name, in, r.Text)
	}
	return r.Text
}

// refused makes a call that must fail, with a text that contains all of want.
func (d *desk) refused(name string, in args, want ...string) {
	d.t.Helper()
	r := d.call(name, in)
	if !r.IsError {
		d.t.Fatalf("%s %v succeeded: %s", name, in, r.Text)
	}
	for _, part := range want {
		if !strings.Contains(r.Text, part) {
			d.t.Errorf("%s %v: the text lacks %q:\n%s", name, in, part, r.Text)
		}
	}
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

// put writes a file behind the tools' back.
func (d *desk) put(name, content string) string {
	d.t.Helper()
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *desk) has(name, want string) {
	d.t.Helper()
	got, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		d.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func (d *desk) access(name string, in args) tool.Access {
	d.t.Helper()
	t, _ := d.set.Lookup(name)
	return t.Access(d.t.Context(), tool.Call{Name: name, Input: jsonx.MustMarshal(in)})
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
}

// TestSchemas compares the schemas, without their descriptions, to those that
// models know (facts: claude-code §1).
func TestSchemas(t *testing.T) {
	d := newDesk(t)
	text, err := os.ReadFile(filepath.Join("testdata", "schemas.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, one := range slices.Concat(d.set.All(), PlanTools(nil)) {
		spec := one.Spec()
		var got any
		if err := json.Unmarshal(spec.Schema.JSON(), &got); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
			continue
		}
		undescribed := withoutDescriptions(t, spec.Name, got, false)
		if diff := cmp.Diff(want[spec.Name], undescribed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec.Name, diff)
		}
		if len(spec.Description) < 400 {
			t.Errorf("%s has a thin description", spec.Name)
		}
		delete(want, spec.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", reflect.ValueOf(want).MapKeys())
	}
}

// withoutDescriptions also checks that every property has one.
func withoutDescriptions(t *testing.T, name string, v any, isProperties bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if isProperties {
				if described, ok := value.(map[string]any); !ok || described["description"] == nil {
					t.Errorf("%s: %s has no description", name, key)
				}
			}
			if key == "description" && !isProperties {
				continue
			}
			out[key] = withoutDescriptions(t, name+"."+key, value, key == "properties" && !isProperties)
		}
		return out
	case []any:
		for i, item := range v {
			v[i] = withoutDescriptions(t, name, item, false)
		}
	}
	return v
}
