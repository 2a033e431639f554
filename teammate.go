package cadre

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
)

// Teammate says whose place a main session takes in a team that another process
// leads (facts: claude-code §4.3).
type Teammate struct {
	AgentID     string // name@team; may be ""
	Name, Team  string
	Color       string
	LeadSession string // id of the lead's session; may be ""
	Type        string // agent type; may be ""
	MustPlan    bool   // it starts in plan mode, and has a plan approved first
}

// rootOfTeam is where the teammate's team lies: a lead that is another program
// keeps its teams in ~/.claude, unless it was told otherwise, and says nothing of it
// to whom it starts.
func (c *Config) rootOfTeam() layout.Root {
	home := c.Getenv("HOME")
	if c.Getenv("CADRE_HOME") != "" || c.Getenv("CLAUDE_CONFIG_DIR") != "" || home == "" || exists(c.Root.TeamConfig(c.Teammate.Team)) {
		return c.Root
	}
	if other := layout.Root(filepath.Join(home, ".claude")); exists(other.TeamConfig(c.Teammate.Team)) {
		return other
	}
	return c.Root
}

// joinTime is how long a lead may take to write down the teammate that it has
// started.
const joinTime = 30 * time.Second

// joinTeam takes the main session's place in its team.
func (r *Runtime) joinTeam(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	seat, err := r.teams.Join(ctx, r.leadCaller())
	if err != nil {
		return err
	}
	r.seat, r.works = seat, newActivity(seat)
	r.tree.Questions.Elsewhere(func(ctx context.Context, a ask.Ask) error { return r.askLead(ctx, seat, a) })
	return nil
}

// askLead puts a question to the lead. Somebody may have answered it before it was
// on its way, when there was nothing to withdraw yet.
func (r *Runtime) askLead(ctx context.Context, seat *team.Seat, a ask.Ask) error {
	if _, err := seat.RequestPermission(ctx, a); err != nil || r.tree.Questions.IsPending(a.ID) {
		return err
	}
	return seat.WithdrawPermission(ctx, a.ID)
}

// seated makes the main session the teammate that it is.
func (r *Runtime) seated(ctx, watch context.Context, p *part) error {
	seat := r.seat
	mode, err := r.mateMode(ctx, seat, r.cfg.Teammate.MustPlan)
	if err != nil {
		return err
	}
	p.mode, p.idle = mode, r.idleSeat(seat)
	if !r.resumes() {
		p.preface = func(ctx context.Context) string { return r.introduction(ctx, seat) }
	}
	p.begins = func() {
		r.works.set(true)
		seat.Working()
	}
	// Who looks from outside must find the agent at work, or its mail unread.
	p.ready = r.works.tell
	var unwatch func()
	p.wake, unwatch = seat.WatchTasks()
	r.watching.Go(func() {
		defer unwatch()
		<-watch.Done()
	})
	return nil
}

// introduction tells a new teammate who and where it is.
func (r *Runtime) introduction(ctx context.Context, seat *team.Seat) string {
	text, err := seat.Introduction(ctx)
	if err != nil {
		r.warn(err)
	}
	return text
}

// serveSeat does for the seat of this process what nobody waits for.
func (r *Runtime) serveSeat(watch context.Context) {
	r.watching.Go(func() { r.dropOldAsks(watch, r.seat) })
	r.watching.Go(func() { r.works.follow(watch, r.warn) })
	r.watching.Go(func() { r.watchLead(watch) })
}

// dropOldAsks takes back what a killed process of a teammate asked its lead, and
// what nobody waits for any more.
func (r *Runtime) dropOldAsks(ctx context.Context, seat *team.Seat) {
	open, err := seat.OpenPermissions(ctx)
	for _, a := range open {
		if r.tree.Questions.IsPending(a.ID) {
			continue
		}
		err = errors.Join(err, seat.WithdrawPermission(ctx, a.ID))
	}
	if err != nil && ctx.Err() == nil {
		r.warn(fmt.Errorf("take back old questions: %w", err))
	}
}

// takes writes that a teammate with a process of its own is at work, since it has
// found some by itself.
func (r *Runtime) takes(ctx context.Context) {
	if r.works != nil {
		r.works.set(true)
		r.works.tell(ctx)
	}
}

// rests writes that a teammate with a process of its own is idle.
func (r *Runtime) rests(ctx context.Context) error {
	if r.works == nil {
		return nil
	}
	r.works.set(false)
	return r.works.write(ctx)
}

// watchLead ends this process when its lead has died and does not come back: the
// round is finished, the grace passes, and everything is left to be resumed. It
// returns when ctx ends.
func (r *Runtime) watchLead(ctx context.Context) {
	look := time.NewTicker(leadLook)
	defer look.Stop()
	var orphaned time.Time
	for {
		select {
		case <-look.C:
		case <-r.seat.Stopping():
			r.stopSeat(ctx)
			return
		case <-ctx.Done():
			return
		}
		present, known, err := r.teams.LeadPresent(ctx, r.seat.Team)
		switch {
		case err != nil || present || !known:
			orphaned = time.Time{}
			continue
		case r.lead.State().Busy:
			continue
		case orphaned.IsZero():
			orphaned = time.Now()
			r.warn(fmt.Errorf("the lead of %s is gone; without it this teammate ends in %s, to be resumed later", r.seat.Team, r.settings.OrphanGrace))
		}
		if time.Since(orphaned) < r.settings.OrphanGrace {
			continue
		}
		ends, err := r.seat.EndWithoutLead(ctx)
		if err != nil {
			r.warn(err) // it is tried again at the next look
		}
		if ends {
			r.tree.Stream.Publish(r.leadAgent(), event.Noticed{Level: "warning", Text: "the lead did not come back; to go on with the team: cadre team resume " + r.seat.Team})
			_ = r.lead.Close(errOrphan)
			return
		}
	}
}

// stopSeat ends the agent at once, and takes it off its team.
func (r *Runtime) stopSeat(ctx context.Context) {
	_ = r.lead.Close(session.ErrLeave) // what could not be kept was told
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), departTime)
	defer cancel()
	if err := r.seat.Depart(ctx); err != nil {
		r.warn(err)
	}
}

// departTime is how long the files of a team may be locked by others then.
const departTime = 3 * time.Second

// leadLook is how often a teammate looks whether its lead is there.
const leadLook = time.Second

var errOrphan = errors.New("the lead of the team is gone")

// activity keeps the roster's word on whether the agent is at work true.
type activity struct {
	seat    *team.Seat
	changed signal.Signal
	turn    chan struct{} // holds the turn to write

	mu      sync.Mutex
	working bool
	known   bool // there is something to say yet
}

func newActivity(seat *team.Seat) *activity {
	return &activity{seat: seat, changed: signal.New(), turn: make(chan struct{}, 1)}
}

// set notes the state. It does not block.
func (a *activity) set(working bool) {
	a.mu.Lock()
	a.working, a.known = working, true
	a.mu.Unlock()
	a.changed.Raise()
}

// write writes the newest state. Of several calls the last writes what holds.
func (a *activity) write(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.turn }()
	a.mu.Lock()
	working, known := a.working, a.known
	a.mu.Unlock()
	if !known {
		return nil
	}
	return a.seat.SetActive(ctx, working)
}

// tell writes the newest state. What fails is written with the next change.
func (a *activity) tell(ctx context.Context) { _ = a.write(ctx) }

// follow writes each state until ctx ends. Another program that writes the roster
// without a lock may undo that: it is looked at again and again, and written anew.
func (a *activity) follow(ctx context.Context, warn func(error)) {
	look := time.NewTicker(activityLook)
	defer look.Stop()
	for {
		select {
		case <-a.changed:
			if err := a.write(ctx); err != nil && ctx.Err() == nil {
				warn(err)
			}
		case <-look.C:
			a.tell(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// activityLook is how long the roster may say something else of a teammate than it
// has written.
const activityLook = time.Second
