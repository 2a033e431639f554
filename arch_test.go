package cadre_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/cadre-dev/cadre"

// layers is the house from the roof down: an import goes to a lower layer, or
// stays in its own room. A package belongs to the longest entry that its path
// begins with; one without an entry has to be given its place here first.
var layers = table{
	{"cmd", 7}, {"bench", 7},
	{".", 6}, {"control", 6}, {"tui", 6}, {"web", 6},
	{"teammate", 5}, {"subagent", 5},
	{"session", 4}, {"tool/builtin", 4}, {"tool/mcp", 4}, {"policy", 4}, {"models", 4},
	{"filestore", 4}, {"natsstore", 4}, {"memstore", 4}, {"internal/storetest", 4},
	{"team", 3}, {"agent", 3}, {"definition", 3},
	{"job", 3}, {"permission", 3}, {"hook", 3}, {"worktree", 3},
	{"provider/anthropic", 3}, {"provider/openai", 3}, {"provider/scripted", 3},
	{"team/protocol", 2}, {"roster", 2},
	{"provider", 2}, {"tool", 2}, {"event", 2}, {"prompt", 2}, {"pane", 2},
	{"transcript", 1}, {"mailbox", 1}, {"task", 1}, {"ask", 1}, {"config", 1},
	{"internal", 0},
}

// onlyFrom names rooms, and packages of the standard library, that few may
// import, tests aside.
var onlyFrom = map[string][]string{
	"filestore":                  {"."}, // the composition root chooses the stores
	"natsstore":                  {"."},
	"memstore":                   {"."},
	"internal/storetest":         {}, // tests only
	"provider/internal/wiretest": {},
	"internal/fakeapi":           {"bench", "provider/internal/wiretest"},
	"testing":                    {"internal/storetest", "provider/internal/wiretest"},
	"net/http/httptest":          {"internal/fakeapi"},
}

// onlyTo names packages that may import few: rooms of ours, and packages of the
// standard library that they must do without.
var (
	onlyTo = map[string][]string{
		"internal/storetest": {"transcript", "mailbox", "task", "roster", "ask", "job", "internal"},
	}
	without = map[string][]string{
		"permission": {"os", "net", "syscall", "io/ioutil"}, // Decide is pure
	}
)

// stateRooms keep state, and touch files only through internal/fsx, so that tests
// can make any call fail.
var stateRooms = []string{"filestore", "internal/dirlock", "internal/filewatch", "internal/journal", "internal/lease"}

// goroutines lists the packages that start goroutines, and what for. Whoever
// starts one waits for it; keeping this list short is what makes that checkable.
var goroutines = map[string]string{
	".":             "the readers of events, the watch over the desk and over the lead",
	"session":       "the owner, its turn, its sources, the calls that may block for it, and the watch over each child's end",
	"agent":         "calls of one reply that run beside each other",
	"job":           "each job, which nobody's waiting keeps alive",
	"team":          "members that are stopped together, and watches over several inboxes",
	"teammate":      "the watch over teammates in panes",
	"tool/builtin":  "the workers of a search without ripgrep, and what a Wait waits for",
	"tui":           "the keyboard, the events, and what the conversation waits for",
	"internal/proc": "the wait for a program, and the reading of its output",
	"cmd/cadre":     "signals, events, and what a run waits for",
	"bench/limit":   "requests that are made at once",
	"bench/whole":   "the mock model, and the watch over events",

	"internal/filewatch":     "the one wait of a process for what others write",
	"provider/internal/wire": "the reading of a response, so that a long wait for it can be announced",
}

// Sizes beyond which a type or a package is no longer one idea.
const (
	maxMethods = 45
	maxFields  = 18
	maxFiles   = 30 // of a package, tests aside
)

// largeTypes are the types that may be larger, and why. A line that is no longer
// needed is a problem of its own, so the list only gets shorter.
var largeTypes = map[string]string{
	"session.owner":     "all state of a session, which its one goroutine may touch without a lock",
	"cadre.Config":      "what a program may set about its runtime",
	"main.options":      "a field for each flag of the command line",
	"tool.parsedSchema": "a field for each keyword of JSON Schema",
}

// largePackages are the packages that may have more files, and why.
var largePackages = map[string]string{
	"tool/builtin": "a file for each tool",
	"cmd/cadre":    "a file for each verb",
}

// teamUsers are the rooms below cmd that may import team: they run agents that
// have a seat there, or are what the model calls. Whoever needs only a name, a record or
// a description of a message finds it in a lower room.
var teamUsers = map[string]string{
	".":            "puts a team together with its stores and sessions",
	"teammate":     "starts, resumes and stops teammates for a team",
	"tool/builtin": "the tools of teams and tasks act for the caller's seat",
}

// forbiddenWords say nothing about what a type is for.
var forbiddenWords = []string{
	"Manager", "Service", "Coordinator", "Handler", "Helper", "Util", "Utils", "Base", "Impl", "Broker", "Common",
}

// Lines of a file: beyond these nobody reads it as one thing.
const (
	maxLines     = 800
	maxTestLines = 1200
)

// modules are the direct dependencies, and the rooms that may use them, tests
// aside; an empty list means tests only. A new line here is a decision: say in
// the commit why own code would be worse.
var modules = map[string][]string{
	"github.com/spf13/cobra":                 {"cmd"},
	"github.com/spf13/pflag":                 {"cmd"}, // the flags of cobra
	"github.com/tailscale/hujson":            {"config", "provider/scripted"},
	"github.com/bmatcuk/doublestar/v4":       {"tool/builtin", "permission"},
	"github.com/fsnotify/fsnotify":           {"internal/filewatch"},
	"github.com/aymanbagabas/go-udiff":       {"tool/builtin", "cmd"},
	"github.com/google/jsonschema-go":        {"tool"},
	"mvdan.cc/sh/v3":                         {"permission"},
	"golang.org/x/sys":                       {"internal", "cmd"},
	"golang.org/x/term":                      {"cmd", "tui"},
	"github.com/anthropics/anthropic-sdk-go": {}, // what our wire formats are held to
	"github.com/openai/openai-go/v3":         {},
	"github.com/creack/pty":                  {},
	"github.com/anishathalye/porcupine":      {},
	"github.com/google/go-cmp":               {},
	"github.com/rogpeppe/go-internal":        {},
	"go.uber.org/goleak":                     {},
	"pgregory.net/rapid":                     {},
}

// TestArchitecture holds the whole tree to the rules of the house.
func TestArchitecture(t *testing.T) {
	files := parseTree(t, ".")
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, problem := range r.check(files) {
				t.Error(problem)
			}
		})
	}
	t.Run("modules", func(t *testing.T) {
		mod, err := os.ReadFile("go.mod")
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range checkModules(string(mod)) {
			t.Error(problem)
		}
	})
}

// parseTree reads every Go file of the module, for all platforms.
func parseTree(t *testing.T, root string) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(p), string(src))
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
