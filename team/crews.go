package team

import (
	"maps"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// crews is what this process knows of its teams beyond their rosters: who of them runs
// here, who is leaving, and what its main sessions lead. Nothing of it is stored: a
// process that is started again learns it anew. Its methods may be called from any
// goroutine, and none does I/O.
type crews struct {
	mu     sync.Mutex
	byTeam map[string]*crew
	leads  map[string]*lead // by main session
}

// crew is what this process knows of one team.
type crew struct {
	leadSession string
	founded     bool             // our own runtime leads it ([roster.Founding])
	mates       map[string]*Seat // the teammates that this process started, or is
	release     func() error     // gives up the lead's place; nil when another process leads
	colors      int              // given so far; never goes back
	departures  map[string]*departure

	changes   int // of the roster, by this process
	published int // the newest change that was published
}

// lead is what a main session leads.
type lead struct {
	seat    *Seat         // nil: no team
	notes   []Mail        // for its inbox, from the runtime
	inbox   *Inbox        // nil while nobody reads
	changed chan struct{} // closed, and made anew, when seat or notes change
}

// change wakes whoever waits for a change; the lock of the crews is held.
func (l *lead) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func newCrews() *crews {
	return &crews{byTeam: make(map[string]*crew), leads: make(map[string]*lead)}
}

// crew returns what is known of a team, from now on something; the lock is held.
func (cs *crews) crew(team, leadSession string) *crew {
	c, ok := cs.byTeam[team]
	if !ok {
		c = &crew{leadSession: leadSession, mates: make(map[string]*Seat), departures: make(map[string]*departure)}
		cs.byTeam[team] = c
	}
	return c
}

// lead returns what is known of a main session, from now on something; the lock is
// held.
func (cs *crews) lead(session string) *lead {
	l, ok := cs.leads[session]
	if !ok {
		l = &lead{changed: make(chan struct{})}
		cs.leads[session] = l
	}
	return l
}

// seat returns the caller's place in a team, as [Teams.Seat] does.
func (cs *crews) seat(by tool.Caller) (*Seat, bool) {
	switch {
	case by.Depth > 0:
		return nil, false
	case by.Team != "":
		seat := cs.mate(mailbox.Address{Team: by.Team, Agent: by.AgentName})
		return seat, seat != nil
	}
	seat := cs.ledBy(by.SessionID)
	return seat, seat != nil
}

// teamOf is the team that the caller works for, also as a sub-agent.
func (cs *crews) teamOf(by tool.Caller) (string, bool) {
	if by.Team != "" {
		return by.Team, true
	}
	if seat := cs.ledBy(by.SessionID); seat != nil {
		return seat.Team, true
	}
	return "", false
}

// mate is the seat of a teammate that runs in this process, or was started by it;
// else nil.
func (cs *crews) mate(who mailbox.Address) *Seat {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[who.Team]; ok {
		return c.mates[who.Agent]
	}
	return nil
}

// mates lists the teammates that this process started, or is.
func (cs *crews) mates(team string) []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[team]; ok {
		return slices.Sorted(maps.Keys(c.mates))
	}
	return nil
}

// ledBy is the seat of the team that a main session leads, or nil.
func (cs *crews) ledBy(session string) *Seat {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if l, ok := cs.leads[session]; ok {
		return l.seat
	}
	return nil
}

// leadSeat is the seat of a team's lead, or nil when another process has it.
func (cs *crews) leadSeat(team string) *Seat {
	if seat := cs.ledBy(cs.leadSession(team)); seat != nil && seat.Team == team {
		return seat
	}
	return nil
}

// leadSession is the id of the main session that leads a team; "" when this process
// does not know the team.
func (cs *crews) leadSession(team string) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[team]; ok {
		return c.leadSession
	}
	return ""
}

// leadsHere reports whether this process leads a team.
func (cs *crews) leadsHere(team string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[team]
	return ok && c.release != nil
}

// addLead seats the lead of a team; release gives up its place.
func (cs *crews) addLead(seat *Seat, r *roster.Roster, release func() error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.crew(r.Name, r.LeadSessionID)
	c.leadSession, c.founded, c.release = r.LeadSessionID, true, release
	c.colors = max(c.colors, roster.ColorsGiven(r))
	l := cs.lead(r.LeadSessionID)
	l.seat = seat
	l.change()
}

// addSelf seats the teammate that this process is.
func (cs *crews) addSelf(seat *Seat, leadSession string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.crew(seat.Team, leadSession).mates[seat.Name] = seat
}

// addMate seats a teammate of a team that this process leads. A former agent of its
// name has left.
func (cs *crews) addMate(seat *Seat) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[seat.Team]; ok {
		c.mates[seat.Name] = seat
		delete(c.departures, seat.Name)
	}
}

// removeMate takes away the seat of a teammate, unless another has its name by now.
func (cs *crews) removeMate(who mailbox.Address, seat *Seat) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[who.Team]; ok && c.mates[who.Agent] == seat {
		delete(c.mates, who.Agent)
	}
}

// enter makes a team known that this process does not lead, and reports whether it was
// not known before.
func (cs *crews) enter(team, leadSession string) (added bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	_, known := cs.byTeam[team]
	cs.crew(team, leadSession)
	return !known
}

// forget drops what this process knows of a team.
func (cs *crews) forget(team string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.byTeam, team)
}

// disband drops what this process knows of a team that its lead has deleted. notes are
// what the lead's model has not been shown yet.
func (cs *crews) disband(lead *Seat, notes []Mail) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.byTeam, lead.Team)
	l := cs.lead(lead.session)
	l.seat = nil
	l.notes = append(l.notes, notes...)
	l.change()
}

// detachLeadRelease returns what gives up the lead's place in a team, once; nil when this
// process does not have it.
func (cs *crews) detachLeadRelease(team string) func() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[team]
	if !ok {
		return nil
	}
	release := c.release
	c.release = nil
	return release
}

// detachReleases returns what gives up all places of this process, once.
func (cs *crews) detachReleases() []func() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var releases []func() error
	for _, c := range cs.byTeam {
		if c.release != nil {
			releases = append(releases, c.release)
			c.release = nil
		}
		for _, seat := range c.mates {
			if release := seat.detachRelease(); release != nil {
				releases = append(releases, release)
			}
		}
	}
	return releases
}

// nextColor gives each colour in turn; one that was given does not come back when its
// teammate leaves.
func (cs *crews) nextColor(team string) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	given := 0
	if c, ok := cs.byTeam[team]; ok {
		given = c.colors
		c.colors++
	}
	return roster.Color(given)
}

// isFounded reports whether a team is known to be led by our own runtime.
func (cs *crews) isFounded(team string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[team]
	return ok && c.founded
}

// setFounded notes that our own runtime leads a team.
func (cs *crews) setFounded(team string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[team]; ok {
		c.founded = true
	}
}

// countChange numbers a change of a roster, while the store's lock is held; 0 for a team
// that this process does not know.
func (cs *crews) countChange(team string) int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[team]
	if !ok {
		return 0
	}
	c.changes++
	return c.changes
}

// publishChange calls publish, unless a newer change of the roster was published
// already.
func (cs *crews) publishChange(team string, number int, publish func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[team]; ok && number > c.published {
		c.published = number
		publish()
	}
}

// note puts mail of the runtime into a lead's inbox.
func (cs *crews) note(session string, mails ...Mail) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	l := cs.lead(session)
	l.notes = append(l.notes, mails...)
	l.change()
}

// drainNotes returns the seat of a main session, a channel that is closed when that or
// its notes change, and the notes, which are its caller's to deliver.
func (cs *crews) drainNotes(session string) (*Seat, <-chan struct{}, []Mail) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	l := cs.lead(session)
	notes := l.notes
	l.notes = nil
	return l.seat, l.changed, notes
}

// changed returns a channel that is closed when a main session's seat or notes change.
func (cs *crews) changed(session string) <-chan struct{} {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.lead(session).changed
}

// openInbox makes an inbox the one of its main session.
func (cs *crews) openInbox(in *Inbox) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.lead(in.session).inbox = in
}

// inbox is the open inbox of a main session, or nil.
func (cs *crews) inbox(session string) *Inbox {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if l, ok := cs.leads[session]; ok {
		return l.inbox
	}
	return nil
}

// closeInbox ends what openInbox began, and forgets a session that leads nothing.
func (cs *crews) closeInbox(in *Inbox) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	l, ok := cs.leads[in.session]
	if !ok || l.inbox != in {
		return
	}
	l.inbox = nil
	if l.seat == nil {
		delete(cs.leads, in.session)
	}
}

// isDeparting reports whether a teammate has left, or is about to, as far as this
// process knows.
func (cs *crews) isDeparting(who mailbox.Address) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[who.Team]
	if !ok {
		return false
	}
	if c.departures[who.Agent] != nil {
		return true
	}
	seat, ok := c.mates[who.Agent]
	return ok && seat.hasLeft()
}

// leavesInOrder reports whether a teammate's departure is under way, done, or will
// begin when its approval is read.
func (cs *crews) leavesInOrder(who mailbox.Address) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[who.Team]
	if !ok {
		return true
	}
	if d, ok := c.departures[who.Agent]; ok {
		return !d.failed()
	}
	seat, ok := c.mates[who.Agent]
	return ok && seat.hasLeft()
}

// beginDeparture returns the departure of a teammate, for the caller to carry out when
// first is true, else to wait for. It is nil when the team is gone, and everybody with
// it.
func (cs *crews) beginDeparture(who mailbox.Address, why string) (d *departure, first bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.byTeam[who.Team]
	if !ok {
		return nil, false
	}
	older, ok := c.departures[who.Agent]
	if ok && !older.failed() {
		return older, false
	}
	d = &departure{seat: c.mates[who.Agent], why: why, done: make(chan struct{})}
	if ok {
		d.released = older.released
	}
	c.departures[who.Agent] = d
	return d, true
}

// endDeparture takes away the seat of a teammate that has departed; from here on its
// name can be another's already. Whoever waits for a change at the lead is woken.
func (cs *crews) endDeparture(who mailbox.Address, seat *Seat) {
	cs.removeMate(who, seat)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, ok := cs.byTeam[who.Team]; ok {
		if l, ok := cs.leads[c.leadSession]; ok {
			l.change()
		}
	}
}

// removeUnlessDeparting takes away the seat of a teammate that another process has
// removed from its team, and returns the seat, which may be nil. ok is false when this
// process removes the teammate itself.
func (cs *crews) removeUnlessDeparting(who mailbox.Address) (seat *Seat, ok bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, known := cs.byTeam[who.Team]
	if !known || c.departures[who.Agent] != nil {
		return nil, false
	}
	seat = c.mates[who.Agent]
	delete(c.mates, who.Agent)
	return seat, true
}
