// Package cadre runs a team of coding agents. It is the front door for programs
// and the only place where the rooms are put together: stores, providers, tools,
// teams and sessions know each other only by the contracts they declare.
//
//	rt, err := cadre.Open(ctx, cadre.Config{Cwd: dir})
//	if err != nil { … }
//	defer rt.Kill()
//	lead := rt.Session()
//	err = lead.Prompt(ctx, "make the tests pass")
//	for ev := range lead.Events(ctx, 0) { … }
//	err = rt.Settled(ctx)
//	err = rt.Shutdown(ctx)
package cadre

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// Config says what to run. The zero value of each field means its default.
type Config struct {
	Root    layout.Root         // the state root; "": as [layout.Find] says
	Cwd     string              // the working folder; "": the process's
	Getenv  func(string) string // nil: [os.Getenv]
	Version string              // cadre's own version, for transcripts and servers

	Model              string         // "": from settings, else that of the resumed session, else the default of the provider that has a key
	Provider           provider.Model // answers every request instead of what Model resolves to
	SystemPrompt       *string        // replaces the default system prompt
	AppendSystemPrompt string         // goes after it
	Mode               string         // permission mode; "": from settings
	SkipPermissions    bool           // mode bypassPermissions
	AllowedTools       []string       // permission rules
	DisallowedTools    []string       // permission rules
	Tools              []string       // names of the tools to offer; nil: all
	AddDirs            []string       // further working folders
	MaxTurns           int            // rounds per prompt; 0: no limit

	// TeammateMode is where teammates run: auto, in-process, tmux or iterm2. "":
	// from settings, whose auto is in-process unless a person is in front.
	TeammateMode string
	Interactive  bool      // a person is in front: questions wait for [session.Session.Attend]
	Teammate     *Teammate // the main session is a teammate of a team that another process leads

	Continue      bool   // go on with the newest session of Cwd
	Resume        string // go on with the session of this id, or of the only one that begins like this
	Fork          bool   // with Continue or Resume: in a copy
	SessionID     string // the id for a new session; "": a random one
	NoPersistence bool   // keep transcripts in memory

	Settings       string  // settings as JSON text, or the path of a file with them
	SettingSources *string // comma-separated: which of user, project, local to read
	TrustProject   bool    // take rules and environment that the project's own settings allow
}

// Runtime is a running main session with everything it starts. Its methods may
// be called from any goroutine.
type Runtime struct {
	cfg      Config
	settings config.Settings
	info     Info

	stores   stores
	tree     *session.Tree
	jobs     *job.Pool
	teams    *team.Teams
	host     *teammate.Host
	backends *teammate.Backends // nil in a teammate's process
	own      *teammate.Process  // nil in a lead's process
	sessions *opener
	main     *session.Session

	tally        *event.Tally
	elsewhere    *teammate.UsageElsewhere // of this process's teams
	folding      sync.WaitGroup           // goroutines that read the events to their end
	stopWatching context.CancelFunc       // ends what runs beside the sessions
	watching     sync.WaitGroup
	closing      *closing
}

// Info describes a runtime to a front end.
type Info struct {
	SessionID    string
	Model        string
	Cwd          string
	Root         layout.Root
	Tools        []string
	Agents       []string // types of sub-agents and teammates
	Mode         string
	APIKeySource string   // the variable the key came from; "none"
	Env          []string // what the settings add to the environment of commands, secrets too: NAME=value
	FirstRun     bool     // the state root did not exist before
	Warnings     []string
}

// Open starts a main session: new, continued or forked. It makes no request.
// Errors that callers can act on are wrapped: [*ConfigError], [provider.ErrNoModel],
// [transcript.ErrNotFound] and [*transcript.HeldError].
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	r := &Runtime{cfg: cfg, closing: newClosing()}
	r.info = Info{Cwd: cfg.Cwd, Root: cfg.Root, FirstRun: !exists(string(cfg.Root)), Agents: agentNames()}
	if err := r.loadSettings(); err != nil {
		return nil, err
	}
	for name, value := range r.settings.Env {
		r.info.Env = append(r.info.Env, name+"="+value)
	}
	r.stores = openStores(cfg.Root, cfg.NoPersistence, filestore.WithSync(r.settings.SyncWrites), filestore.WithWarn(r.warn))
	if err := r.stores.checkKey(); err != nil { // no agent could send or read anything
		return nil, errors.Join(err, r.stores.close())
	}
	r.tree = session.NewTree(session.TreeConfig{
		Desk: r.stores.desk, AskTime: r.settings.AskDeadline, Read: r.stores.transcripts.Read,
	})
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.stores.close())
	}
	return r, nil
}

// warn shows a person what went wrong where nobody waits for an error.
func (r *Runtime) warn(err error) {
	r.tree.Stream.Publish(event.Agent{Session: r.info.SessionID}, event.Noticed{Level: "warning", Text: err.Error()})
}

// complete fills in defaults.
func (c *Config) complete() error {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Cwd == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the working folder: %w", err)
		}
		c.Cwd = dir
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Root == "" {
		root, err := layout.Find(c.Getenv)
		if err != nil {
			return fmt.Errorf("find the state root: %w", err)
		}
		if c.Root = root; c.Teammate != nil {
			c.Root = c.rootOfTeam()
		}
	}
	return nil
}

// start puts the parts together and opens the main session.
func (r *Runtime) start(ctx context.Context) error {
	from, err := r.cfg.resumed(ctx, r.stores.transcripts)
	if err != nil {
		return err
	}
	choice, err := r.chooseModel(ctx, from)
	if err != nil {
		return err
	}
	r.info.Model, r.info.APIKeySource = choice.Name, choice.KeySource
	r.sessions = &opener{
		root: r.cfg.Root, settings: r.settings, offered: r.cfg.Tools, stores: r.stores, tree: r.tree, models: choice,
		ledger: builtin.NewLedger(), opened: make(chan struct{}),
	}
	ref, err := r.cfg.pickSession(ctx, r.stores.transcripts, from)
	if err != nil {
		return err
	}
	r.info.SessionID, r.sessions.main = ref.Session, ref
	r.sessions.line = transcript.Entry{Cwd: r.cfg.Cwd, Version: compatVersion, GitBranch: gitBranch(r.cfg.Cwd)}
	if err := r.makePolicy(); err != nil {
		return err
	}
	r.sessions.system = r.systemPrompt()
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stopWatching = stop
	r.compose(watch)
	if err := r.openMain(ctx, watch, ref); err != nil {
		return errors.Join(err, r.end())
	}
	return nil
}

// compatVersion is the version of the format that our transcripts follow.
const compatVersion = "2.1.41"

// Session is the main session: what front ends hold.
func (r *Runtime) Session() *session.Session { return r.main }

// Info describes the runtime.
func (r *Runtime) Info() Info { return r.info }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
