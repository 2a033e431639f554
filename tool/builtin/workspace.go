// Package builtin holds the tools that every agent has: for files, commands,
// questions, tasks, teams and sub-agents. One file holds one tool: its name, its
// description and schema for models, what it touches, and what it does. The tools
// know nothing about sessions; what they need from the runtime they get as small
// interfaces.
package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/tool"
)

// Workspace is what the file and shell tools of one session share: its working
// folder, which files it has seen, the environment of its commands. It is safe for
// use by many goroutines.
type Workspace struct {
	start  string
	ledger *Ledger
	output func(job string) string
	env    func() []string // of commands, without secrets
	closed func(path string) bool

	mu   sync.Mutex // never held across I/O
	cwd  string
	seen map[string]sight // by resolved path
}

// WorkspaceConfig says how to set a Workspace up.
type WorkspaceConfig struct {
	Dir    string  // the working folder at first; absolute
	Ledger *Ledger // shared by all sessions of the runtime; nil makes one for this session
	// Output is the file for the whole output of a command that runs as this job
	// (layout.Root.JobOutput). It must be set: whoever names the folder removes it.
	Output  func(job string) string
	Env     []string               // environment of commands; nil is that of this process
	Secrets []string               // values that must not be in Env, beside the keys that are known by name
	Closed  func(path string) bool // resolved files that searches must not show, since a rule denies reading them; nil: none
}

// NewWorkspace sets up the workspace of a session. It touches no file.
func NewWorkspace(c WorkspaceConfig) *Workspace {
	w := &Workspace{start: filepath.Clean(c.Dir), ledger: c.Ledger, output: c.Output, closed: c.Closed, seen: map[string]sight{}}
	w.cwd = w.start
	if w.closed == nil {
		w.closed = func(string) bool { return false }
	}
	if w.ledger == nil {
		w.ledger = NewLedger()
	}
	w.env = sync.OnceValue(func() []string { return proc.WithoutSecrets(c.Env, c.Secrets...) })
	return w
}

// FileTools are the tools that work on files and run commands, in the order in
// which models are offered them.
func FileTools(w *Workspace, jobs *job.Pool) []tool.Tool {
	return []tool.Tool{bash{w, jobs}, glob{w}, grep{w}, read{w}, edit{w}, write{w}}
}

// Dir is the working folder: where commands run and relative paths start.
func (w *Workspace) Dir() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cwd
}

// setDir is called when a command has changed the folder.
func (w *Workspace) setDir(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cwd = dir
}

// locate turns a path as a model wrote it into an absolute one to show, and the
// one behind all symbolic links to use: what was checked is what is opened.
func (w *Workspace) locate(path string) (shown, real string) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + path[1:]
		}
	}
	if !filepath.IsAbs(path) {
		path = w.Dir() + string(filepath.Separator) + path
	}
	return filepath.Clean(path), symlink.Follow(path)
}

// brief is a path for reading: relative when it lies in the working folder.
func (w *Workspace) brief(path string) string {
	if rel, err := filepath.Rel(w.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// sight is what a session knows about a file since it last read or wrote it.
type sight struct {
	size     int64
	modified time.Time
	hash     [sha256.Size]byte
	hashed   bool   // false for files that are too big for it
	moment   uint64 // of the ledger
}

// sightOf describes content that was read at a moment of the ledger.
func sightOf(content []byte, info os.FileInfo, moment uint64) sight {
	return sight{
		size: info.Size(), modified: info.ModTime(), hash: sha256.Sum256(content), hashed: true, moment: moment,
	}
}

// saw remembers that the session has seen a file.
func (w *Workspace) saw(real string, s sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[real] = s
}

func (w *Workspace) lastSight(real string) (sight, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.seen[real]
	return s, ok
}

// sameAs reports whether the file is still as it was seen.
func (s sight) sameAs(content []byte, info os.FileInfo) bool {
	if s.hashed {
		return sha256.Sum256(content) == s.hash
	}
	return s.size == info.Size() && s.modified.Equal(info.ModTime())
}

// mayChange refuses the change of a file that the session has not read, or that was
// changed since. The text says what to do, and who changed the file if that is known.
func (w *Workspace) mayChange(ctx context.Context, real string, content []byte, info os.FileInfo) (refusal string) {
	s, ok := w.lastSight(real)
	if !ok {
		return w.brief(real) + " has not been read yet. Read it first, so that nothing in it is lost by accident."
	}
	if s.sameAs(content, info) {
		return ""
	}
	change, known := w.ledger.last(real)
	who := "since you read it, by a command, by the person, or by another program"
	if known && change.moment > s.moment && change.by != tool.CallerFrom(ctx).Key() {
		who = "by " + change.name + " after you read it"
	}
	return w.brief(real) + " was changed " + who + ": read it again."
}

// parseInput reads the input of a call, which has passed the schema.
func parseInput[T any](call tool.Call) (in T, failed *tool.Result) {
	if err := json.Unmarshal(call.Input, &in); err != nil {
		result := tool.UseError("InputValidationError: " + call.Name + " failed: " + err.Error())
		return in, &result
	}
	return in, nil
}

// toInt turns a number that a model wrote into an int within sane bounds.
func toInt(n float64) int {
	const limit = 1 << 40
	return int(max(-limit, min(limit, n)))
}

// sentences joins the parts that are not empty, with spaces.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
