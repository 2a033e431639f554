package team_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
)

// returns lists the mail that came back to an agent of alpha: who wrote it, to
// whom, what.
func (w *world) returns(t *testing.T, name string) []string {
	t.Helper()
	var got []string
	for _, m := range w.mailOf(t, name) {
		c, _ := protocol.Parse(m.Text)
		if back, ok := c.(protocol.MailReturned); ok {
			got = append(got, back.From+" to "+back.To+": "+back.Text)
		}
	}
	return got
}

// Mail that its recipient can read no more goes back to its sender and the lead,
// once.
func TestMailOfTheDepartedIsReturned(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		add(t, w, "a")
		w.send(t, "team-lead", "w1", "from the lead")
		w.send(t, "w2", "w1", "from a peer")
		if _, err := w.Say(t.Context(), "alpha", "w1", "from a person"); err != nil {
			t.Fatal(err)
		}
		w.forge(t, "w2", "w1", "not from w2")
		if _, err := w.UpdateTask(t.Context(), leader, "1", owner("w1")); err != nil {
			t.Fatal(err)
		}
		// A departure that breaks off after the roster is written is repeated.
		w.mails.failMark = errors.New("disk full")
		w.endProcess(t, "w1")
		who := mailbox.Address{Team: "alpha", Agent: "w1"}
		if err := w.Gone(t.Context(), who, "test"); !errors.Is(err, w.mails.failMark) {
			t.Fatalf("error %v", err)
		}
		w.mails.failMark = nil
		for range 2 {
			if err := w.Gone(t.Context(), who, "test"); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"team-lead to w1: from the lead", "w2 to w1: from a peer", "user to w1: from a person", "w2 to w1: not from w2"}
		if diff := cmp.Diff(want, w.returns(t, mailbox.LeadName)); diff != "" {
			t.Errorf("the lead gets back (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"w2 to w1: from a peer"}, w.returns(t, "w2")); diff != "" {
			t.Errorf("w2 gets back (-want +got):\n%s", diff)
		}
		for _, m := range w.mailOf(t, "w1") {
			if !m.Read {
				t.Errorf("left unread: %s", m.Text)
			}
		}
		mails := next(t, w.inbox(t, mate("w2")))
		if len(mails) != 1 || mails[0].Kind != team.KindSystem || !strings.HasPrefix(mails[0].Text, "<teammate-message teammate_id=\"system\">") ||
			!strings.HasPrefix(mails[0].Preview, "w1 left before it was shown a message from w2") {
			t.Errorf("w2 is shown %+v", mails)
		}
		w.spawn(t, "w1")
		if got := w.returns(t, "w2"); len(got) != 1 {
			t.Errorf("returned again for the next w1: %q", got)
		}
	})
}

// A crash between the roster and the return is made good when the lead is back.
func TestDepartureIsFinishedAfterACrash(t *testing.T) {
	w := alphaTeam(t, "w1", "w2")
	w.send(t, "w2", "w1", "hello")
	w.mails.failRead = errors.New("killed here")
	if err := w.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"}, "test"); !errors.Is(err, w.mails.failRead) {
		t.Fatalf("error %v", err)
	}
	w.mails.failRead = nil
	w.restart()
	if _, ok, err := w.Reopen(t.Context(), leader); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff([]string{"w2 to w1: hello"}, w.returns(t, "w2")); diff != "" {
		t.Errorf("w2 gets back (-want +got):\n%s", diff)
	}
	if _, err := w.kept.Records().Get(t.Context(), "alpha", roster.RecordAgent, "w1"); !errors.Is(err, roster.ErrNoRecord) {
		t.Errorf("w1 is still remembered: %v", err)
	}
}

// A message that comes after a departure has looked at the inbox is taken back by
// its sender, who learns of it (facts: reliability-security R9).
func TestR9MailThatRacesWithADeparture(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		for what, send := range map[string]func(*world) error{
			"an agent": func(w *world) error {
				_, err := w.seat(t, "w2").Send(t.Context(), "w1", "too late", "s")
				return err
			},
			"a person": func(w *world) error {
				_, err := w.process(nil).Say(t.Context(), "alpha", "w1", "too late")
				return err
			},
		} {
			w := alpha(t, "w1", "w2")
			w.mails.beforePost = func() {
				w.mails.beforePost = nil
				w.gone(t, "w1", "test")
			}
			err := send(w)
			if unknown, ok := errors.AsType[*roster.UnknownMemberError](err); !ok || !unknown.Departed {
				t.Errorf("%s: error %v", what, err)
			}
			if left := w.mailOf(t, "w1"); len(left) != 1 || !left[0].Read {
				t.Errorf("%s: w1 has %+v", what, left)
			}
			if got := w.returns(t, "w2"); len(got) > 0 {
				t.Errorf("%s: returned as well: %q", what, got)
			}
		}
	})
}

// A message that is posted while an agent goes idle is there when it looks again
// (facts: reliability-security R11).
func TestR11MailAtTheIdleEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w1")
		in := w.inbox(t, mate("w1"))
		w.mails.didRead = func() { // the reader has looked, and found nothing
			w.mails.didRead = nil
			w.send(t, "team-lead", "w1", "wake up")
		}
		if mails := next(t, in); len(mails) != 1 {
			t.Errorf("mail %q", texts(mails))
		}
	})
}

// A teammate that was killed when it had been shown its mail, and had not marked it
// read yet, has read it all the same.
func TestMailThatWasShownIsNotReturned(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		w.send(t, "w2", "w1", "shown")
		w.send(t, "w2", "w1", "waiting")
		conversation := roster.AgentRecord{SessionID: "s1", Project: "/project", Backend: w.backend.name(), Signs: true}
		if err := w.seat(t, "w1").Remember(t.Context(), conversation); err != nil {
			t.Fatal(err)
		}
		w.shown = map[string][]mailbox.ID{"s1": {w.mailOf(t, "w1")[0].ID}}
		w.gone(t, "w1", "killed")
		for _, name := range []string{mailbox.LeadName, "w2"} {
			if diff := cmp.Diff([]string{"w2 to w1: waiting"}, w.returns(t, name)); diff != "" {
				t.Errorf("%s gets back (-want +got):\n%s", name, diff)
			}
		}
		for _, m := range w.mailOf(t, "w1") {
			if !m.Read {
				t.Errorf("left unread: %s", m.Text)
			}
		}
	})
}
