package cadre_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// Rules are about folders as people name them, and tools work on the files behind
// all symbolic links: both must mean the same, also where a link leads to what does
// not exist yet.
func TestRulesHoldBehindSymbolicLinks(t *testing.T) {
	outside := t.TempDir()
	home, project := filepath.Join(outside, "home"), filepath.Join(outside, "project")
	for _, dir := range []string{"real-home/keys", "real-home/ssh", "real-project/private"} {
		if err := os.MkdirAll(filepath.Join(outside, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		home: "real-home", project: "real-project", filepath.Join(outside, "real-home", ".claude"): "../dotfiles",
		filepath.Join(outside, "real-home", ".ssh"): "ssh", filepath.Join(outside, "real-project", ".env"): "open",
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Skip(err)
		}
	}
	for _, file := range []string{"home/keys/id", "home/ssh/id", "project/private/note", "project/open"} {
		if err := os.WriteFile(filepath.Join(outside, filepath.FromSlash(file)), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(project, ".cadre"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(project, ".cadre", "settings.json")
	if err := os.WriteFile(settings, []byte(`{"permissions":{"deny":["Read(/private/**)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := []scripted.Call{
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(project, "open")}), // may be read
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(home, "keys", "id")}),
		scripted.Use("Bash", map[string]any{"command": "cat " + filepath.Join(home, "keys", "id")}),
		scripted.Use("Bash", map[string]any{"command": "cat ~/keys/id"}),
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(project, "private", "note")}),
		scripted.Use("Bash", map[string]any{"command": "cat " + filepath.Join(project, "private", "note")}),
		scripted.Use("Bash", map[string]any{"command": "cat private/note"}),
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(home, ".ssh", "id")}), // what the rule names is a link
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(home, "ssh", "id")}),
		scripted.Use("Grep", map[string]any{"pattern": "text", "path": filepath.Join(home, "ssh")}),
		scripted.Use("Bash", map[string]any{"command": "cat ~/.ssh/id"}),
		scripted.Use("Bash", map[string]any{"command": "cat " + filepath.Join(outside, "real-home", "ssh", "id")}),
		scripted.Use("Read", map[string]any{"file_path": filepath.Join(project, ".env")}),
		scripted.Use("Edit", map[string]any{"file_path": filepath.Join(outside, "real-project", ".env"), "old_string": "text", "new_string": "x"}),
		scripted.Use("Write", map[string]any{"file_path": filepath.Join(home, ".claude", "tasks", "x", "1.json"), "content": "{}"}),
		scripted.Use("Bash", map[string]any{"command": "rm " + filepath.Join(home, ".claude", "tasks", "x", "1.json")}),
		scripted.Use("Bash", map[string]any{"command": "rm ~/.claude/tasks/x/1.json"}),
	}
	w := open(t, func(c *scripted.Conversation) scripted.Reply {
		if len(c.Made) == 0 {
			return scripted.Reply{Calls: calls}
		}
		return say("done")
	}, func(c *cadre.Config) {
		c.Cwd, c.DisallowedTools = project, []string{"Read(~/keys/**)", "Read(~/.ssh/**)", "Read(.env)"}
		c.Getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
	})
	w.settle(t, "go")
	w.end(t)
	denied := bodies[event.ToolDenied](w)
	for i, d := range denied {
		t.Logf("%d: %s %s", i, d.Input, d.Reason)
	}
	if len(denied) != len(calls)-1 {
		t.Errorf("%d of %d calls were denied, all but the first should have been", len(denied), len(calls))
	}
}
