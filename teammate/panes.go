package teammate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// PanesConfig says how teammates in panes are started and looked after.
type PanesConfig struct {
	Terminal pane.Terminal // where panes are opened
	// Known is the terminal of a kind, for panes that an earlier lead has opened
	// elsewhere ([pane.Detector.Known]).
	Known func(kind string) (pane.Terminal, error)
	// Dir is a folder of this process alone, made when it is missing. For a moment
	// it holds the environment of a teammate, keys included. Close removes it.
	Dir string
	Program
	PaneStores
	PaneTiming

	// Gone is called when a teammate has ended without leaving ([team.Teams.Gone]); after
	// an error it is called again.
	Gone func(ctx context.Context, who mailbox.Address, why string) error
	// FollowTasks is [team.Tasks.Follow] of the lead's tasks: it is called before the first
	// teammate of a team runs in a pane. nil: nobody wants to know.
	FollowTasks func(ctx context.Context, team string) (follow func(context.Context), err error)
	// Notify shows the person a line, like the command that attaches to the panes. It
	// must not block. nil: nobody listens.
	Notify func(text string)
}

// Program is what runs in a teammate's pane.
type Program struct {
	Command []string // the flags of facts claude-code §4.3 follow
	Env     []string // its environment, the lead's own, in the form of [os.Environ]
	// Flags are those of every teammate, in addition: with them it works under the
	// same rules as one inside the lead's process.
	Flags []string
	// Mode is the permission mode that the lead is in now; nil: "default".
	Mode func() string
	// Model is the name that the program gets for a teammate's model, "" for none.
	// nil: the same name.
	Model func(name string) string
	// Resume makes the conversation of a teammate that comes back one that its
	// program can open with --resume, and returns its session id. nil: it is one
	// already.
	Resume func(ctx context.Context, r roster.AgentRecord) (session string, err error)
	// Ready is called before a program is started for a team, which the program must
	// be able to find; an error keeps it from starting. nil: it can.
	Ready func(ctx context.Context, team string) error
}

// PaneStores are the stores through which a lead and its teammates in panes see each
// other.
type PaneStores struct {
	Rosters  roster.Store
	Mail     mailbox.Store
	Records  roster.Records
	Presence roster.Presence
}

// PaneTiming says how long things may take and how often they are checked. The zero
// value of a field means its default.
type PaneTiming struct {
	CheckIn time.Duration // for a teammate to check in after its start; 30 s
	Poll    time.Duration // between two checks while a start or a stop waits for a teammate; 100 ms
	Check   time.Duration // between two checks of those that run; 1 s
	Leave   time.Duration // for a teammate to end that agreed to shut down; 5 s
	HangUp  time.Duration // for a process to end when its pane was closed; 1 s
}

func (c PanesConfig) withDefaults() PanesConfig {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.CheckIn, 30 * time.Second}, {&c.Poll, 100 * time.Millisecond}, {&c.Check, time.Second},
		{&c.Leave, 5 * time.Second}, {&c.HangUp, time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Mode == nil {
		c.Mode = func() string { return protocol.ModeDefault }
	}
	if c.Model == nil {
		c.Model = func(name string) string { return name }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context, string) error { return nil }
	}
	if c.Notify == nil {
		c.Notify = func(string) {}
	}
	return c
}

// Panes runs teammates as programs in panes of a terminal ([team.Backend]). A pane is
// recorded before anything else, and only recorded panes are closed. While any
// teammate runs, a goroutine of it looks after them; Close ends it. Its methods
// may be called from any goroutine.
type Panes struct {
	cfg PanesConfig

	mu          sync.Mutex // guards what follows; never held across I/O
	mates       map[mailbox.Address]*paneMate
	following   map[string]bool                // teams whose task lists are followed
	ended       map[mailbox.Address]pane.Place // still open, for the person to read why
	attachShown bool                           // how to look at the panes
	closed      bool
	watching    bool
	cancels     []context.CancelFunc // of the watch, and of what follows task lists
	watch       sync.WaitGroup
}

// paneMate is a teammate that runs in a pane. Once it is under watch only ours and
// active may change, by the watch, and ours under the mutex of the Panes.
type paneMate struct {
	who   mailbox.Address
	place pane.Place // the zero Place when another opened it
	files startFiles // the zero value when an earlier process started it
	ours  bool       // it has held its place: when that is free, it has ended
	// active is its word in the roster, as it was last seen and kept ([roster.Activity]).
	active bool
}

// NewPanes makes the backend, with nothing running yet.
func NewPanes(c PanesConfig) *Panes {
	return &Panes{
		cfg: c.withDefaults(), mates: make(map[mailbox.Address]*paneMate), following: make(map[string]bool),
		ended: make(map[mailbox.Address]pane.Place),
	}
}

// Kind implements [team.Backend].
func (b *Panes) Kind(context.Context) (string, error) { return b.terminalKind(), nil }

func (b *Panes) terminalKind() string { return b.cfg.Terminal.Kind() }

// ErrPanesClosed says that a lead is ending and starts nobody any more.
var ErrPanesClosed = errors.New("the lead is ending")

// Close ends the watch over the teammates and waits for it. Those that are ours end by
// themselves then, to be resumed; panes that only show why a teammate has ended are
// closed. A second call does nothing.
func (b *Panes) Close(ctx context.Context) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	for _, cancel := range b.cancels {
		cancel()
	}
	ended, left := b.ended, make(map[string]bool)
	for who := range b.mates {
		left[who.Team] = true
	}
	b.mu.Unlock()
	b.watch.Wait()
	var errs []error
	for team := range left {
		end := roster.LeadEnd{At: time.Now().UTC()}
		errs = append(errs, roster.PutRecord(ctx, b.cfg.Records, team, roster.RecordLeadEnd, team, end))
	}
	for who, place := range ended {
		errs = append(errs, b.closePane(ctx, who, place))
	}
	return errors.Join(append(errs, os.RemoveAll(b.cfg.Dir))...)
}

// add puts a teammate under watch. ctx is only for what it carries.
func (b *Panes) add(ctx context.Context, m *paneMate) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrPanesClosed
	}
	b.mates[m.who] = m
	delete(b.ended, m.who)
	if !b.watching {
		b.watching = true
		b.run(ctx, b.watchAll)
	}
	return nil
}

// run calls f in a goroutine, with a context that Close ends. The mutex is held.
func (b *Panes) run(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancels = append(b.cancels, cancel)
	b.watch.Go(func() {
		defer cancel()
		f(ctx)
	})
}

// followTasks has what teammates in their own processes do to the tasks of a team
// published here, from now on.
func (b *Panes) followTasks(ctx context.Context, team string) error {
	b.mu.Lock()
	known := b.following[team] || b.closed || b.cfg.FollowTasks == nil
	b.following[team] = true
	b.mu.Unlock()
	if known {
		return nil
	}
	ended := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.following, team)
	}
	follow, err := b.cfg.FollowTasks(ctx, team)
	if err != nil {
		ended()
		return fmt.Errorf("follow the tasks of team %q: %w", team, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrPanesClosed
	}
	b.run(ctx, func(ctx context.Context) {
		defer ended()
		follow(ctx)
	})
	return nil
}

// remove ends the watch over a teammate and returns what is known of it, for
// the caller alone.
func (b *Panes) remove(who mailbox.Address) *paneMate {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := paneMate{who: who}
	if m, ok := b.mates[who]; ok {
		known = *m
		delete(b.mates, who)
	}
	return &known
}

// record keeps that a pane is ours.
func (b *Panes) record(ctx context.Context, who mailbox.Address, p pane.Place) error {
	return b.cfg.Records.Put(ctx, who.Team, roster.RecordPane, who.Agent, jsonx.MustMarshal(roster.PaneRecord{
		Agent: who.Agent, Terminal: p.Terminal, Socket: p.Socket, Pane: p.Pane, Mark: p.Mark, Window: p.Window,
		Opened: time.Now().UTC(),
	}))
}

// recorded is the pane that was opened for an agent, by this lead or an earlier
// one; ok is false when none is on record.
func (b *Panes) recorded(ctx context.Context, who mailbox.Address) (p pane.Place, ok bool, err error) {
	var r roster.PaneRecord
	ok, err = b.kept(ctx, roster.RecordPane, who, &r)
	if err != nil {
		return pane.Place{}, false, fmt.Errorf("find the pane of %s: %w", who, err)
	}
	return pane.Place{Terminal: r.Terminal, Socket: r.Socket, Pane: r.Pane, Mark: r.Mark, Window: r.Window}, ok, nil
}

// kept reads a record of an agent; ok is false when there is none.
func (b *Panes) kept(ctx context.Context, kind string, who mailbox.Address, into any) (ok bool, err error) {
	doc, err := b.cfg.Records.Get(ctx, who.Team, kind, who.Agent)
	if errors.Is(err, roster.ErrNoRecord) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(doc, into)
	}
	return err == nil, err
}

// terminal is the terminal that a place is on.
func (b *Panes) terminal(p pane.Place) (pane.Terminal, error) {
	if p.Terminal == b.cfg.Terminal.Kind() {
		return b.cfg.Terminal, nil
	}
	if b.cfg.Known == nil {
		return nil, fmt.Errorf("look at pane %s: it is on another terminal, %s", p.Pane, p.Terminal)
	}
	return b.cfg.Known(p.Terminal)
}

// closePane closes a recorded pane and forgets it.
func (b *Panes) closePane(ctx context.Context, who mailbox.Address, p pane.Place) error {
	terminal, err := b.terminal(p)
	if err == nil {
		err = terminal.Close(ctx, p)
	}
	if err == nil {
		err = b.cfg.Records.Drop(ctx, who.Team, roster.RecordPane, who.Agent)
	}
	if err == nil {
		b.mu.Lock()
		delete(b.ended, who)
		b.mu.Unlock()
	}
	return err
}

// isOpen reports whether a pane is there.
func (b *Panes) isOpen(ctx context.Context, p pane.Place) (bool, error) {
	if p == (pane.Place{}) {
		return false, nil
	}
	terminal, err := b.terminal(p)
	if err != nil {
		return false, err
	}
	alive, err := terminal.Alive(ctx, []pane.Place{p})
	return alive[p], err
}
