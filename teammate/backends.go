package teammate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

// Backends is where the teammates of a lead's process run ([team.Backend]): in this
// process or in panes, depending on what the person wants and on the terminal. That is
// decided when the first teammate is to be started. Its methods may be called from any
// goroutine.
type Backends struct {
	host        *Host
	mode        string
	panesConfig func() PanesConfig
	records     roster.Records
	within      *inProcess
	terms       *pane.Detector

	mu     sync.Mutex
	chosen bool
	panes  *Panes // nil: in this process
	former *Panes // for panes of an earlier process, while new teammates run in this one
	advice string // what the person was advised last
}

// BackendOptions say where teammates may run.
type BackendOptions struct {
	// Mode is what the person wants: one of the modes of package pane.
	Mode string
	// Environment is where this process runs.
	Environment pane.Environment
	// Panes is what all panes have in common, without their terminal. It is called when
	// the first pane is opened or looked for. Known, Gone,
	// FollowTasks and Notify may be nil.
	Panes   func() PanesConfig
	Records roster.Records
}

// NewBackends makes the backend of a lead's process, with nothing running yet.
func NewBackends(h *Host, o BackendOptions) *Backends {
	return &Backends{
		host: h, mode: o.Mode, panesConfig: o.Panes, records: o.Records,
		within: newInProcess(h), terms: pane.NewDetector(o.Environment),
	}
}

// choose finds the panes to use; nil for none. The choice stands, unless something
// was in the way of panes: it may be gone by the next time.
func (b *Backends) choose(ctx context.Context) (*Panes, error) {
	b.mu.Lock()
	panes, chosen := b.panes, b.chosen
	b.mu.Unlock()
	if chosen {
		return panes, nil
	}
	choice, err := b.terms.Choose(ctx, b.mode)
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

// advise says once to the person what keeps teammates out of panes: the lead's model
// may not say it.
func (b *Backends) advise(text string) {
	b.mu.Lock()
	known := b.advice == text
	b.advice = text
	b.mu.Unlock()
	if !known {
		b.host.notify("warning", text)
	}
}

func (b *Backends) open(terminal pane.Terminal) *Panes {
	config := b.panesConfig()
	config.Terminal, config.Known = terminal, b.terms.Known
	config.Gone = func(ctx context.Context, who mailbox.Address, why string) error {
		return b.host.Teams.Gone(ctx, who, why)
	}
	config.FollowTasks = b.host.Teams.Tasks.Follow
	config.Notify = func(text string) { b.host.notify("info", text) }
	return NewPanes(config)
}

// Kind implements [team.Backend].
func (b *Backends) Kind(ctx context.Context) (string, error) {
	panes, err := b.choose(ctx)
	if err != nil || panes == nil {
		return roster.InProcess, err
	}
	return panes.Kind(ctx)
}

// Start implements [team.Backend]: where Kind has said.
func (b *Backends) Start(ctx context.Context, s team.Spawn) (team.Started, error) {
	if s.Member.BackendType == roster.InProcess {
		if err := b.sweep(ctx, s.Seat.Address()); err != nil {
			b.host.warn(err) // its own program was not seen running
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
func (b *Backends) sweep(ctx context.Context, who mailbox.Address) error {
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
func (b *Backends) Stop(ctx context.Context, who mailbox.Address, cause error) error {
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
func (b *Backends) forRecorded(ctx context.Context, who mailbox.Address) (*Panes, error) {
	if panes := b.known(); panes != nil {
		return panes, nil
	}
	var record roster.PaneRecord
	err := roster.GetRecord(ctx, b.records, who.Team, roster.RecordPane, who.Agent, &record)
	if errors.Is(err, roster.ErrNoRecord) {
		return nil, nil
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
func (b *Backends) known() *Panes {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.panes, b.former)
}

// adopt watches a teammate that lives on in the pane of an earlier
// process of this session. It reports whether it does.
func (b *Backends) adopt(ctx context.Context, who mailbox.Address) (lives bool, err error) {
	panes, err := b.forRecorded(ctx, who)
	if err != nil || panes == nil {
		return false, err
	}
	return panes.Adopt(ctx, who)
}

// Close ends the watch over teammates in panes, which end then ([Panes.Close]). It is
// called when no teammate can be started any more.
func (b *Backends) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, departTime)
	defer cancel()
	b.mu.Lock()
	open := []*Panes{b.panes, b.former}
	b.mu.Unlock()
	var errs []error
	for _, panes := range open {
		if panes != nil {
			errs = append(errs, panes.Close(ctx))
		}
	}
	return errors.Join(errs...)
}
