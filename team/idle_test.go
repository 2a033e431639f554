package team_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
)

// idleNotes are the notifications in the lead's inbox, without their timestamps.
func (p *parley) idleNotes(t *testing.T) []string {
	t.Helper()
	var notes []string
	for _, m := range p.mailOf(t, mailbox.LeadName) {
		if c, _ := protocol.Parse(m.Text); c != nil {
			notes = append(notes, regexp.MustCompile(`"timestamp":"[^"]*"`).ReplaceAllString(m.Text, `"timestamp":"T"`))
			if m.Color == "" || m.Summary != "" {
				t.Errorf("outer fields of %+v", m)
			}
		}
	}
	return notes
}

func TestIdleNotifications(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1", "w2")
	w1 := p.seat(t, "w1")
	turn := func(reason protocol.IdleReason, failure string) {
		t.Helper()
		for range 2 { // at most one per turn
			p.idle(t, "w1", reason, failure)
		}
		w1.Working()
	}
	turn(protocol.Available, "")
	p.send(t, "w1", "w2", "hi")
	p.send(t, "w1", mailbox.LeadName, "not a peer")
	p.send(t, "w1", "w1", "to myself")
	if _, err := w1.Broadcast(t.Context(), "all", "all"); err != nil {
		t.Fatal(err)
	}
	turn(protocol.IdleInterrupted, "no failure")
	id := p.task(t, "work")
	p.setStatus(t, mate("w1"), id, task.Completed)
	turn(protocol.IdleFailed, "API <down>")
	turn(protocol.Available, "")
	want := []string{
		`{"type":"idle_notification","from":"w1","timestamp":"T","idleReason":"available"}`,
		`{"type":"idle_notification","from":"w1","timestamp":"T","idleReason":"interrupted","summary":"[to w1] about to myself"}`,
		`{"type":"idle_notification","from":"w1","timestamp":"T","idleReason":"failed","completedTaskId":"1","completedStatus":"completed","failureReason":"API <down>"}`,
		`{"type":"idle_notification","from":"w1","timestamp":"T","idleReason":"available"}`,
	}
	if diff := cmp.Diff(want, p.idleNotes(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A notification that could not be posted is not lost.
func TestIdleNotificationIsTriedAgain(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1", "w2")
	full := errors.New("disk full")
	p.send(t, "w1", "w2", "hi")
	p.mails.failPost[mailbox.LeadName] = full
	if err := p.seat(t, "w1").NotifyIdle(t.Context(), protocol.Available, ""); !errors.Is(err, full) {
		t.Fatal(err)
	}
	delete(p.mails.failPost, mailbox.LeadName)
	p.idle(t, "w1", protocol.Available, "")
	if got := p.idleNotes(t); len(got) != 1 || !strings.Contains(got[0], `"summary":"[to w2] about hi"`) {
		t.Errorf("notes %v", got)
	}
}

// A lead tells nobody, and one that has left has nothing to tell.
func TestWhoIsNotIdle(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1")
	p.idle(t, mailbox.LeadName, protocol.Available, "")
	w1 := p.seat(t, "w1")
	if err := p.Gone(t.Context(), w1.Address(), "killed"); err != nil {
		t.Fatal(err)
	}
	if err := w1.NotifyIdle(t.Context(), protocol.Available, ""); err != nil {
		t.Fatal(err)
	}
	for _, m := range p.mailOf(t, mailbox.LeadName) {
		if strings.Contains(m.Text, "idle_notification") {
			t.Errorf("note %s", m.Text)
		}
	}
}
