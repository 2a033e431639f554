package team

import (
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
)

// tellArrival tells of a message that another process has put into an inbox of
// this one: people here would see its effects only. What this process posts is
// told when it is posted.
func (t *Teams) tellArrival(seat *Seat, m mailbox.Message) {
	if m.From == systemName || t.postsHere(seat.Team, m.From) {
		return
	}
	by := event.Agent{Session: seat.session, Name: m.From, Color: m.Color}
	t.publish(by, event.MailSent{To: seat.Address(), Message: m})
}

// postsHere reports whether this process posts what an agent sends.
func (t *Teams) postsHere(team, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	if !ok {
		return false
	}
	if name == LeadName {
		return crew.leave != nil
	}
	seat, ok := crew.mates[name]
	return ok && (seat.own || seat.backend == InProcess)
}
