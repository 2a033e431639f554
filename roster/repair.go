package roster

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// RepairingStore is a [Store] for the process of a lead. Other programs write a roster
// without a lock (facts: claude-code §2.3), and so may put an older version of it in
// the place of a newer one: a teammate vanishes from it while it runs, or stands there
// again after it has left. Rosters knows whom its process has enrolled and who has
// left, so Load and Update of a team show it as it should be, and write that when the
// file differs. Of teams in which nobody was enrolled, and of those whose teammates
// all run in their lead's process, it shows what is kept. Its methods may be called
// from any goroutine.
type RepairingStore struct {
	Store
	records Records

	mu  sync.Mutex // guards what follows; never held across I/O
	led map[string]*enrolled
}

// NewRepairingStore makes the rosters of a process, over those that are kept.
func NewRepairingStore(kept Store, records Records) *RepairingStore {
	return &RepairingStore{Store: kept, records: records, led: make(map[string]*enrolled)}
}

// Create implements [Store].
func (r *RepairingStore) Create(ctx context.Context, c Roster) error {
	r.forget(c.Name) // one that another process has removed
	return r.Store.Create(ctx, c)
}

// Remove implements [Store].
func (r *RepairingStore) Remove(ctx context.Context, name string) error {
	err := r.Store.Remove(ctx, name)
	if err == nil {
		r.forget(name)
	}
	return err
}

func (r *RepairingStore) forget(team string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.led, team)
}

// Load implements [Store]. When the file is not as it should be, it is mended; when it
// cannot be written now, what should stand there is returned all the same.
func (r *RepairingStore) Load(ctx context.Context, name string) (Roster, error) {
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
	mended, err := r.Store.Update(ctx, name, func(c *Roster) error { r.mend(c); return nil })
	if err != nil {
		return should, nil //nolint:nilerr // what was read is known; it is written with the next change
	}
	return mended, nil
}

// Update implements [Store]: change gets the roster as it should be.
func (r *RepairingStore) Update(ctx context.Context, name string, change func(*Roster) error) (Roster, error) {
	if r.leads(name) {
		if c, err := r.Store.Load(ctx, name); err == nil && r.strays(c) {
			r.verify(ctx, c)
		}
	}
	var moved []Member
	c, err := r.Store.Update(ctx, name, func(c *Roster) error {
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

func (r *RepairingStore) leads(team string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led[team] != nil
}

// strays reports whether a roster is not as it should be. What others have added to
// members that stand there is remembered.
func (r *RepairingStore) strays(c Roster) bool {
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
// process ([team.Teams.Remove]), which keeps that first. Whoever has not is put back.
func (r *RepairingStore) verify(ctx context.Context, c Roster) {
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
func (r *RepairingStore) mend(c *Roster) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok && e.shared {
		c.Members, changed = e.mend(c.Members)
	}
	return changed
}

// Enrol remembers, and keeps, that a member which was put on a roster belongs there.
func (r *RepairingStore) Enrol(ctx context.Context, team string, m Member) error {
	r.mu.Lock()
	r.enrolledIn(team).add(m)
	r.mu.Unlock()
	return r.keep(ctx, team, Enrolment{Member: m})
}

// Recall remembers what an earlier process of the lead knew of a team.
func (r *RepairingStore) Recall(ctx context.Context, c Roster) error {
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
	e.Recall(c.Members, places, mates)
	r.led[c.Name] = e
	return nil
}

// enrolledIn is what is known of a team; r.mu is held.
func (r *RepairingStore) enrolledIn(team string) *enrolled {
	e, ok := r.led[team]
	if !ok {
		e = newEnrolled()
		r.led[team] = e
	}
	return e
}

// StrikeOff remembers, and keeps, that a teammate leaves. It comes before the roster:
// whoever finds the teammate missing there knows why. Of one that nobody knows there is
// nothing to keep.
func (r *RepairingStore) StrikeOff(ctx context.Context, who mailbox.Address) error {
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
func (r *RepairingStore) take(c Roster) (moved []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok {
		moved = e.take(c.Members)
	}
	return moved
}

func (r *RepairingStore) keep(ctx context.Context, team string, e Enrolment) error {
	err := r.records.Put(ctx, team, RecordMember, e.Member.Name, jsonx.MustMarshal(e))
	if errors.Is(err, ErrNotFound) {
		return nil // it went with its team
	}
	return err
}

// enrolment is what is kept of a teammate's place.
func (r *RepairingStore) enrolment(ctx context.Context, who mailbox.Address) (e Enrolment, ok bool, err error) {
	err = GetRecord(ctx, r.records, who.Team, RecordMember, who.Agent, &e)
	if errors.Is(err, ErrNoRecord) {
		return Enrolment{}, false, nil
	}
	return e, err == nil, err
}
