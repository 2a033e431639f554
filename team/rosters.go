package team

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// Rosters is a [Store] for the process of a lead. Other programs write a roster
// without a lock (facts: claude-code §2.3), and so may put an older version of it in
// the place of a newer one: a teammate vanishes from it while it runs, or stands there
// again after it has left. Rosters knows whom its process has enrolled and who has
// left, so Load and Update of a team show it as it should be, and write that when the
// file differs. Of teams in which nobody was enrolled, and of those whose teammates
// all run in their lead's process, it shows what is kept. Its methods may be called
// from any goroutine.
type Rosters struct {
	Store
	records Records

	mu  sync.Mutex // guards what follows; never held across I/O
	led map[string]*enrolled
}

// NewRosters makes the rosters of a process, over those that are kept.
func NewRosters(kept Store, records Records) *Rosters {
	return &Rosters{Store: kept, records: records, led: make(map[string]*enrolled)}
}

// RecordMember holds an [Enrolment] per teammate, under its name, also when it has
// left.
const RecordMember = "member"

// Enrolment is the place that a lead gave a teammate on its roster. When it has left,
// only who it was is kept.
type Enrolment struct {
	Member Member `json:"member"`
	Left   bool   `json:"left,omitempty"`
}

// is reports whether an enrolment is of this very member, and not of another that had
// the name.
func (e Enrolment) is(m Member) bool {
	return e.Member.Name == m.Name && e.Member.JoinedAt == m.JoinedAt
}

// Create implements [Store].
func (r *Rosters) Create(ctx context.Context, c Config) error {
	r.forget(c.Name) // one that another process has removed
	return r.Store.Create(ctx, c)
}

// Remove implements [Store].
func (r *Rosters) Remove(ctx context.Context, name string) error {
	err := r.Store.Remove(ctx, name)
	if err == nil {
		r.forget(name)
	}
	return err
}

func (r *Rosters) forget(team string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.led, team)
}

// Load implements [Store]. When the file is not as it should be, it is mended; when it
// cannot be written now, what should stand there is returned all the same.
func (r *Rosters) Load(ctx context.Context, name string) (Config, error) {
	c, err := r.Store.Load(ctx, name)
	if err != nil || !r.strays(c) {
		return c, err
	}
	r.verify(ctx, c)
	should := c
	should.Members = slices.Clone(c.Members)
	if !r.mend(&should) {
		return c, nil
	}
	mended, err := r.Store.Update(ctx, name, func(c *Config) error { r.mend(c); return nil })
	if err != nil {
		return should, nil //nolint:nilerr // what was read is known; it is written with the next change
	}
	return mended, nil
}

// Update implements [Store]: change gets the roster as it should be.
func (r *Rosters) Update(ctx context.Context, name string, change func(*Config) error) (Config, error) {
	if r.leads(name) {
		if c, err := r.Store.Load(ctx, name); err == nil && r.strays(c) {
			r.verify(ctx, c)
		}
	}
	var moved []Member
	c, err := r.Store.Update(ctx, name, func(c *Config) error {
		r.mend(c)
		err := change(c)
		if err == nil {
			// Before it stands there: who finds it there must not take it for another's.
			moved = r.take(*c)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	for _, m := range moved {
		if err := r.keep(ctx, name, Enrolment{Member: m}); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (r *Rosters) leads(team string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led[team] != nil
}

// strays reports whether a roster is not as it should be. What others have added to
// members that stand there is remembered.
func (r *Rosters) strays(c Config) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.led[c.Name]
	if !ok || !e.shared {
		return false
	}
	e.look(c.Members)
	return e.strays(c.Members)
}

// verify finds out of those that are missing whether they have left by way of another
// process ([Teams.Remove]), which keeps that first. Whoever has not is put back.
func (r *Rosters) verify(ctx context.Context, c Config) {
	r.mu.Lock()
	var missing []Member
	if e, ok := r.led[c.Name]; ok {
		missing = e.missing(c.Members)
	}
	r.mu.Unlock()
	for _, m := range missing {
		kept, _, err := r.enrolment(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
		if err != nil {
			continue // it is looked up again the next time
		}
		r.mu.Lock()
		if e := r.led[c.Name]; e != nil {
			e.settle(m, kept.Left && kept.is(m))
		}
		r.mu.Unlock()
	}
}

// mend makes a roster what it should be, and reports whether it was not.
func (r *Rosters) mend(c *Config) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok && e.shared {
		c.Members, changed = e.mend(c.Members)
	}
	return changed
}

// enrol remembers, and keeps, that a member which was put on a roster belongs there.
func (r *Rosters) enrol(ctx context.Context, team string, m Member) error {
	r.mu.Lock()
	r.of(team).add(m)
	r.mu.Unlock()
	return r.keep(ctx, team, Enrolment{Member: m})
}

// recall remembers what an earlier process of the lead knew of a team.
func (r *Rosters) recall(ctx context.Context, c Config) error {
	places, err := allRecords[Enrolment](ctx, r.records, c.Name, RecordMember)
	if err != nil {
		return err
	}
	mates, err := allRecords[AgentRecord](ctx, r.records, c.Name, RecordAgent)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := newEnrolled()
	e.recall(c.Members, places, mates)
	r.led[c.Name] = e
	return nil
}

// of is what is known of a team; r.mu is held.
func (r *Rosters) of(team string) *enrolled {
	e, ok := r.led[team]
	if !ok {
		e = newEnrolled()
		r.led[team] = e
	}
	return e
}

// strikeOff remembers, and keeps, that a teammate leaves. It comes before the roster:
// whoever finds the teammate missing there knows why. Of one that nobody knows there is
// nothing to keep.
func (r *Rosters) strikeOff(ctx context.Context, who mailbox.Address) error {
	c, err := r.Store.Load(ctx, who.Team)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	kept, known, err := r.enrolment(ctx, who)
	if err != nil {
		return err
	}
	if m := c.Find(who.Agent); m != nil && m.AgentID != c.LeadAgentID {
		kept, known = Enrolment{Member: *m}, true
	}
	if !known {
		return nil
	}
	m := Member{
		AgentID: kept.Member.AgentID, Name: who.Agent, JoinedAt: kept.Member.JoinedAt, BackendType: kept.Member.BackendType,
	}
	if err := r.keep(ctx, who.Team, Enrolment{Member: m, Left: true}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[who.Team]; ok {
		e.settle(m, true)
	}
	return nil
}

// take remembers a roster that this process writes, and returns the teammates that
// run elsewhere than before.
func (r *Rosters) take(c Config) (moved []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok {
		moved = e.take(c.Members)
	}
	return moved
}

func (r *Rosters) keep(ctx context.Context, team string, e Enrolment) error {
	err := r.records.Put(ctx, team, RecordMember, e.Member.Name, jsonx.MustMarshal(e))
	if errors.Is(err, ErrNotFound) {
		return nil // it went with its team
	}
	return err
}

// enrolment is what is kept of a teammate's place.
func (r *Rosters) enrolment(ctx context.Context, who mailbox.Address) (e Enrolment, ok bool, err error) {
	err = getRecord(ctx, r.records, who.Team, RecordMember, who.Agent, &e)
	if errors.Is(err, ErrNoRecord) {
		return Enrolment{}, false, nil
	}
	return e, err == nil, err
}
