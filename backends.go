package cadre

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
)

// backends is where the teammates of this runtime run ([team.Backend]): in this
// process or in panes, by what the person wants and by where they are. That is
// found out when the first teammate is to be started.
type backends struct {
	r      *Runtime
	within *inProcess
	terms  *pane.Detector

	mu     sync.Mutex
	chosen bool
	panes  *teammate.Panes // nil: in this process
	former *teammate.Panes // for panes of an earlier process, while new teammates run in this one
	advice string          // what the person was told last
}

// backend chooses for the runtime; nil for a teammate, which starts nobody.
func (r *Runtime) backend() team.Backend {
	if r.cfg.Teammate != nil {
		return nil
	}
	r.backends = &backends{r: r, within: newInProcess(r), terms: pane.NewDetector(pane.Environment{
		Vars: os.Environ(), Server: "cadre-" + r.info.SessionID[:8],
	})}
	return r.backends
}

// mode is the mode that the person wants. Without a person in front, panes are
// only for those who ask for them, in the settings by name.
func (b *backends) mode() string {
	if mode := b.r.cfg.TeammateMode; mode != "" {
		return mode
	}
	mode := b.r.settings.TeammateMode
	if mode == pane.Auto && !b.r.cfg.Interactive {
		return pane.InProcess
	}
	return mode
}

// choose finds the panes to use; nil for none. The choice stands, unless something
// was in the way of panes: it may be gone by the next time.
func (b *backends) choose(ctx context.Context) (*teammate.Panes, error) {
	b.mu.Lock()
	panes, chosen := b.panes, b.chosen
	b.mu.Unlock()
	if chosen {
		return panes, nil
	}
	choice, err := b.terms.Choose(ctx, b.mode())
	if err != nil {
		choice.Hint = err.Error()
	}
	if choice.Hint != "" && ctx.Err() == nil {
		b.terms.Reset()
		b.advise(choice.Hint)
	}
	if err != nil {
		return nil, err
	}
	if choice.Terminal != nil {
		panes = b.open(choice.Terminal)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.chosen {
		b.chosen, b.panes = choice.Hint == "", panes
	}
	return b.panes, nil
}

// advise tells the person what keeps teammates out of panes, once: the lead's model
// may not say it.
func (b *backends) advise(text string) {
	b.mu.Lock()
	known := b.advice == text
	b.advice = text
	b.mu.Unlock()
	if !known {
		b.r.tree.Stream.Publish(b.r.leadAgent(), event.Noticed{Level: "warning", Text: text})
	}
}

func (b *backends) tell(text string) {
	b.r.tree.Stream.Publish(b.r.leadAgent(), event.Noticed{Level: "info", Text: text})
}

func (b *backends) open(terminal pane.Terminal) *teammate.Panes {
	r := b.r
	program := r.mateProgram()
	return teammate.NewPanes(teammate.PanesConfig{
		Terminal: terminal, Known: b.terms.Known,
		Dir: filepath.Join(r.root.SideDir(r.cfg.Cwd, r.info.SessionID), "starts"),
		Program: teammate.Program{
			Command: []string{program.path}, Env: r.mateEnv(), Flags: program.inherited(&r.cfg), Model: program.model,
			Mode: func() string { return string(r.lead.State().Mode) }, Resume: r.resumable,
			Ready: func(ctx context.Context, name string) error { return r.readyFor(ctx, program, name) },
		},
		PaneStores: teammate.PaneStores{
			Rosters: r.stores.teams, Mail: r.stores.mail, Records: r.stores.records, Presence: r.stores.presence,
		},
		Gone:   func(ctx context.Context, who mailbox.Address, why string) error { return r.teams.Gone(ctx, who, why) },
		Notify: b.tell,
	})
}

// Kind implements [team.Backend].
func (b *backends) Kind(ctx context.Context) (string, error) {
	panes, err := b.choose(ctx)
	if err != nil || panes == nil {
		return roster.InProcess, err
	}
	return panes.Kind(ctx)
}

// Start implements [team.Backend]: where Kind has said.
func (b *backends) Start(ctx context.Context, s team.Spawn) (team.Started, error) {
	if s.Member.BackendType == roster.InProcess {
		if err := b.sweep(ctx, s.Seat.Address()); err != nil {
			b.r.warn(err) // its own program was not seen running
		}
		return b.within.Start(ctx, s)
	}
	panes, err := b.choose(ctx)
	if err == nil && panes == nil {
		err = errNoPanes
	}
	if err != nil {
		return team.Started{}, err
	}
	return panes.Start(ctx, s)
}

// errNoPanes says that the terminal is gone that was there a moment ago.
var errNoPanes = errors.New("there are no panes any more: start the teammate again")

// sweep closes the pane that a teammate has had before it came into this process.
func (b *backends) sweep(ctx context.Context, who mailbox.Address) error {
	panes, err := b.forRecorded(ctx, who)
	if err == nil && panes != nil {
		err = panes.Sweep(ctx, who)
	}
	if err != nil {
		return fmt.Errorf("close the former pane of %s: %w", who, err)
	}
	return nil
}

// Stop implements [team.Backend]. A teammate may run in a pane that an earlier
// process of this session has opened, wherever new ones run now.
func (b *backends) Stop(ctx context.Context, who mailbox.Address, cause error) error {
	if err := b.within.Stop(ctx, who, cause); err != nil {
		return err
	}
	panes, err := b.forRecorded(ctx, who)
	if err != nil || panes == nil {
		return err
	}
	return panes.Stop(ctx, who, cause)
}

// forRecorded is the panes to deal with a teammate that has one; nil when it has
// none.
func (b *backends) forRecorded(ctx context.Context, who mailbox.Address) (*teammate.Panes, error) {
	if panes := b.known(); panes != nil {
		return panes, nil
	}
	doc, err := b.r.stores.records.Get(ctx, who.Team, roster.RecordPane, who.Agent)
	if errors.Is(err, roster.ErrNoRecord) {
		return nil, nil
	}
	var record roster.PaneRecord
	if err == nil {
		err = json.Unmarshal(doc, &record)
	}
	if err != nil {
		return nil, fmt.Errorf("find the pane of %s: %w", who, err)
	}
	terminal, err := b.terms.Known(record.Terminal)
	if err != nil {
		return nil, err
	}
	former := b.open(terminal)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.former = cmp.Or(b.former, former)
	return b.former, nil
}

// known is what looks after panes already; nil for nothing.
func (b *backends) known() *teammate.Panes {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.panes, b.former)
}

// adopt takes a teammate under watch that lives on in the pane of an earlier
// process of this session. It reports whether it does.
func (b *backends) adopt(ctx context.Context, who mailbox.Address) (lives bool, err error) {
	panes, err := b.forRecorded(ctx, who)
	if err != nil || panes == nil {
		return false, err
	}
	return panes.Adopt(ctx, who)
}

// closePanes ends what looks after panes when watch ends.
func (r *Runtime) closePanes(watch context.Context) {
	<-watch.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(watch), departTime)
	defer cancel()
	if err := r.backends.close(ctx); err != nil {
		r.warn(err)
	}
}

// close ends what looks after panes.
func (b *backends) close(ctx context.Context) error {
	b.mu.Lock()
	open := []*teammate.Panes{b.panes, b.former}
	b.mu.Unlock()
	var errs []error
	for _, panes := range open {
		if panes != nil {
			errs = append(errs, panes.Close(ctx))
		}
	}
	return errors.Join(errs...)
}
