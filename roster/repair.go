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
// again after it has left. A RepairingStore knows whom its process has enrolled and who
// has left: Load and Update return the roster as it should be, and write that when the
// file differs. Teams without enrolments, and teams whose teammates all run in their
// lead's process, are returned as they are stored. Its methods may be called from any
// goroutine.
type RepairingStore struct {
	Store
	records Records

	mu  sync.Mutex // guards what follows; never held across I/O
	led map[string]*enrolled
}

// NewRepairingStore makes the store of a process over one that keeps rosters.
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

// Load implements [Store]. A roster that is not as it should be is repaired; when it
// cannot be written now, the repaired one is returned all the same.
func (r *RepairingStore) Load(ctx context.Context, name string) (Roster, error) {
	c, err := r.Store.Load(ctx, name)
	if err != nil || !r.needsRepair(c) {
		return c, err
	}
	r.checkMissing(ctx, c)
	should := c
	should.Members = slices.Clone(c.Members)
	if !r.repair(&should) {
		return c, nil
	}
	mended, err := r.Store.Update(ctx, name, func(c *Roster) error { r.repair(c); return nil })
	if err != nil {
		return should, nil //nolint:nilerr // what was read is known; it is written with the next change
	}
	return mended, nil
}

// Update implements [Store]: change gets the roster as it should be.
func (r *RepairingStore) Update(ctx context.Context, name string, change func(*Roster) error) (Roster, error) {
	if r.leads(name) {
		if c, err := r.Store.Load(ctx, name); err == nil && r.needsRepair(c) {
			r.checkMissing(ctx, c)
		}
	}
	var moved []Member
	c, err := r.Store.Update(ctx, name, func(c *Roster) error {
		r.repair(c)
		err := change(c)
		if err == nil {
			// Before it stands there: who finds it there must not take it for another's.
			moved = r.noteWrite(*c)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	for _, m := range moved {
		if err := r.storeEnrolment(ctx, name, Enrolment{Member: m}); err != nil {
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

// needsRepair reports whether a roster is not as it should be. It remembers what other
// programs have changed in the entries of members.
func (r *RepairingStore) needsRepair(c Roster) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.led[c.Name]
	if !ok || !e.shared {
		return false
	}
	e.adopt(c.Members)
	return e.differs(c.Members)
}

// checkMissing finds out whether missing members were removed by another process
// ([team.Teams.Remove]), which stores that first. Whoever was not is to be put back.
func (r *RepairingStore) checkMissing(ctx context.Context, c Roster) {
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
			e.confirmMissing(m, kept.Left && kept.is(m))
		}
		r.mu.Unlock()
	}
}

// repair changes a roster into what it should be, and reports whether it differed.
func (r *RepairingStore) repair(c *Roster) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok && e.shared {
		c.Members, changed = e.repair(c.Members)
	}
	return changed
}

// Enrol stores that a member which was added to a roster belongs there.
func (r *RepairingStore) Enrol(ctx context.Context, team string, m Member) error {
	r.mu.Lock()
	r.enrolledIn(team).add(m)
	r.mu.Unlock()
	return r.storeEnrolment(ctx, team, Enrolment{Member: m})
}

// Restore loads what an earlier process of the lead stored about a team.
func (r *RepairingStore) Restore(ctx context.Context, c Roster) error {
	places, err := AllRecords[Enrolment](ctx, r.records, c.Name, RecordMember)
	if err != nil {
		return err
	}
	mates, err := AllRecords[AgentRecord](ctx, r.records, c.Name, RecordAgent)
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

// RecordLeaving stores that a teammate leaves. It is called before the roster changes, so
// that whoever finds the teammate missing there knows why. For a teammate without an
// enrolment it does nothing.
func (r *RepairingStore) RecordLeaving(ctx context.Context, who mailbox.Address) error {
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
	if err := r.storeEnrolment(ctx, who.Team, Enrolment{Member: m, Left: true}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[who.Team]; ok {
		e.confirmMissing(m, true)
	}
	return nil
}

// noteWrite remembers a roster that this process writes, and returns the teammates whose
// backend or pane it changes.
func (r *RepairingStore) noteWrite(c Roster) (moved []Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.led[c.Name]; ok {
		moved = e.noteWrite(c.Members)
	}
	return moved
}

func (r *RepairingStore) storeEnrolment(ctx context.Context, team string, e Enrolment) error {
	err := r.records.Put(ctx, team, RecordMember, e.Member.Name, jsonx.MustMarshal(e))
	if errors.Is(err, ErrNotFound) {
		return nil // it went with its team
	}
	return err
}

// enrolment is the stored membership of a teammate.
func (r *RepairingStore) enrolment(ctx context.Context, who mailbox.Address) (e Enrolment, ok bool, err error) {
	err = GetRecord(ctx, r.records, who.Team, RecordMember, who.Agent, &e)
	if errors.Is(err, ErrNoRecord) {
		return Enrolment{}, false, nil
	}
	return e, err == nil, err
}
