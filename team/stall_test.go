package team_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
)

// What an agent whose turn has failed leaves unread is nothing to wait for, and its
// lead is told of it; what comes after it is.
func TestNobodyWaitsForMailThatIsLeft(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		seat := w.seat(t, "w1")
		idle := func(reason protocol.IdleReason, left int) {
			t.Helper()
			seat.Working()
			seat.Stall(left)
			if w.apart {
				if err := seat.SetActive(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
			if err := seat.NotifyIdle(t.Context(), reason, "API down"); err != nil {
				t.Fatal(err)
			}
			in := w.inbox(t, leader)
			take(t, in)
			in.Close()
		}
		over := func() bool {
			t.Helper()
			waiting, err := w.Teams.Waiting(t.Context(), leader)
			if err != nil {
				t.Fatal(err)
			}
			now, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("only a look"))
			p, err := w.Await(now, leader, team.Awaited{Agents: []string{"w1"}})
			if err != nil {
				t.Fatal(err)
			}
			own, err := w.at(mate("w1")).Waiting(t.Context(), mate("w1"))
			if err != nil {
				t.Fatal(err)
			}
			if (waiting == "") != p.Done || w.apart && (own == "") != p.Done {
				t.Errorf("the lead waits: %q; for the agent: %+v; the agent itself: %q", waiting, p, own)
			}
			return p.Done
		}
		w.send(t, mailbox.LeadName, "w1", "one")
		w.send(t, mailbox.LeadName, "w1", "two")
		if over() {
			t.Error("mail waits, and nobody waits for it")
		}
		idle(protocol.IdleFailed, 2)
		notes := w.mailOf(t, mailbox.LeadName)
		if note := notes[len(notes)-1].Text; !strings.Contains(note, `"unread":2`) {
			t.Errorf("the lead was told %s", note)
		}
		if !over() {
			t.Error("somebody waits for what is left")
		}
		w.send(t, mailbox.LeadName, "w1", "three")
		if over() {
			t.Error("new mail waits, and nobody waits for it")
		}
		take(t, w.inbox(t, mate("w1")))
		idle(protocol.Available, 0)
		if !over() {
			t.Error("somebody waits for an agent that has read all")
		}
		w.send(t, mailbox.LeadName, "w1", "four")
		if over() {
			t.Error("what was left once counts no more")
		}
	})
}

// The same holds for the lead's own mail.
func TestNobodyWaitsForWhatTheLeadHasLeft(t *testing.T) {
	w := alphaTeam(t, "w1")
	w.send(t, "w1", mailbox.LeadName, "one")
	for left, waits := range map[int]bool{0: true, 1: false} {
		w.seat(t, mailbox.LeadName).Stall(left)
		if what, err := w.Teams.Waiting(t.Context(), leader); err != nil || (what != "") != waits {
			t.Errorf("with %d left: %q, %v", left, what, err)
		}
	}
}

// What an agent must have to go on does not wait behind other mail.
func TestUrgentMail(t *testing.T) {
	p := newParley(t, team.Policy{PlanApproval: "lead"}, "w1")
	w1, lead := p.seat(t, "w1"), p.seat(t, mailbox.LeadName)
	id, err := w1.Plans.Request(t.Context(), "/plans/w1.md", "the plan")
	if err != nil {
		t.Fatal(err)
	}
	asked := next(t, p.inbox(t, leader))
	p.send(t, mailbox.LeadName, "w1", "text")
	if _, err := lead.Plans.Respond(t.Context(), "w1", id, false, "add tests", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := lead.Plans.Respond(t.Context(), "w1", id, true, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lead.RequestShutdown(t.Context(), "w1", "done"); err != nil {
		t.Fatal(err)
	}
	var urgent []string
	for _, m := range append(asked, next(t, p.inbox(t, mate("w1")))...) {
		if m.Urgent {
			urgent = append(urgent, m.Preview)
		}
	}
	if got := strings.Join(urgent, "; "); got != "team-lead asks w1 to shut down (done); team-lead asks w1 to change its plan (add tests); team-lead approves the plan of w1" {
		t.Errorf("urgent is %s", got)
	}
}
