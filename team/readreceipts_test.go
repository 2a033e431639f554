package team_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team"
)

// sendForReceipt posts mail whose sender wants to know when it was shown.
func (w *world) sendForReceipt(t *testing.T, from, to, text string) mailbox.ID {
	t.Helper()
	d, err := w.seat(t, from).Send(t.Context(), to, text, "about "+text, team.WithReceipt())
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

// show takes in what waits for an agent and has it stand in its transcript.
func (w *world) show(t *testing.T, name string) {
	t.Helper()
	in := w.inbox(t, mate(name))
	if err := in.Shown(t.Context(), mailIDs(next(t, in))); err != nil {
		t.Fatal(err)
	}
}

// The sender is told once when its message was shown, and can ask before (facts:
// reliability-security R7: shown is what stands in the transcript).
func TestR7Receipt(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			sender := w.inbox(t, mate("w1"))
			id := w.sendForReceipt(t, "w1", "w2", "hello")
			check := func(what string, wantSent, wantShown bool) {
				t.Helper()
				sent, shown, err := w.seat(t, "w1").Receipt(t.Context(), "w2", id)
				if err != nil || sent != wantSent || shown != wantShown {
					t.Errorf("%s: sent %v, shown %v, %v", what, sent, shown, err)
				}
			}
			check("unread", true, false)
			told := make(chan []team.Mail)
			go func() { told <- next(t, sender) }()
			synctest.Wait()
			in := w.inbox(t, mate("w2"))
			mails := next(t, in)
			synctest.Wait()
			check("handed out", true, false)
			if err := in.Shown(t.Context(), mailIDs(mails)); err != nil {
				t.Fatal(err)
			}
			note := <-told
			check("in the transcript", true, true)
			if len(note) != 1 || note[0].Kind != team.KindSystem || !strings.Contains(note[0].Text, `Your message to w2 was shown to it ("about hello").`) {
				t.Errorf("w1 is told %+v", note)
			}
			if err := sender.Shown(t.Context(), mailIDs(note)); err != nil {
				t.Fatal(err)
			}
			expectNone(t, sender)
			expectNone(t, w.inbox(t, mate("w1"))) // nor is it told again after a restart
		})
	})
}

// A sender is told nothing of a message that is not posted yet: that it wants a
// receipt is kept before.
func TestNoReceiptBeforeTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w1", "w2")
		sender := w.inbox(t, mate("w1"))
		told := make(chan []team.Mail, 1)
		go func() { told <- next(t, sender) }()
		synctest.Wait()
		w.mails.beforePost = func() {
			w.mails.beforePost = nil
			synctest.Wait()
			if len(told) > 0 {
				t.Errorf("w1 is told %q", texts(<-told))
			}
		}
		w.sendForReceipt(t, "w1", "w2", "hello")
		w.show(t, "w2")
		if note := <-told; len(note) != 1 || !strings.Contains(note[0].Text, "was shown to it") {
			t.Errorf("w1 is told %q", texts(note))
		}
	})
}

// A message that is read after its sender has looked for that, and before the sender
// watches the recipient's inbox, is not missed.
func TestAReceiptIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w1", "w2")
		sender, reader := w.inbox(t, mate("w1")), w.inbox(t, mate("w2"))
		told := make(chan []team.Mail)
		go func() { told <- next(t, sender) }()
		synctest.Wait()
		w.mails.didRead = func() { // the sender has found it unread
			w.mails.didRead = nil
			if err := reader.Shown(t.Context(), mailIDs(next(t, reader))); err != nil {
				t.Error(err)
			}
		}
		id := w.sendForReceipt(t, "w1", "w2", "hello")
		if note := <-told; len(note) != 1 || !strings.HasSuffix(string(note[0].IDs[0]), string(id)) {
			t.Errorf("w1 is told %q", texts(note))
		}
	})
}

// What receipts a lead waits for survives its process.
func TestReceiptAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := apartTeam(t, "w1")
		w.sendForReceipt(t, "team-lead", "w1", "one")
		w.sendForReceipt(t, "team-lead", "w1", "two")
		w.show(t, "w1")
		note := next(t, w.inbox(t, leader)) // the process ends before the first is in the transcript as kept
		w.restart()
		if _, ok, err := w.Reopen(t.Context(), leader); !ok || err != nil {
			t.Fatal(ok, err)
		}
		in := w.inbox(t, leader, note[0].IDs...)
		if mails := next(t, in); len(mails) != 1 || !strings.Contains(mails[0].Text, "about two") {
			t.Errorf("after the restart: %q", texts(mails))
		}
	})
}

// A message that came back was not shown.
func TestNoReceiptForReturnedMail(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			id := w.sendForReceipt(t, "w1", "w2", "hello")
			in := w.inbox(t, mate("w1"))
			w.gone(t, "w2", "test")
			mails := next(t, in)
			if len(mails) != 1 || !strings.Contains(mails[0].Preview, "left before it was shown") {
				t.Errorf("w1 is told %+v", mails)
			}
			if err := in.Shown(t.Context(), mailIDs(mails)); err != nil {
				t.Fatal(err)
			}
			expectNone(t, in)
			if sent, shown, err := w.seat(t, "w1").Receipt(t.Context(), "w2", id); !sent || shown || err != nil {
				t.Errorf("sent %v, shown %v, %v", sent, shown, err)
			}
		})
	})
}

// A note that could not be kept comes again.
func TestReceiptIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w1", "w2")
		w.sendForReceipt(t, "w1", "w2", "hello")
		w.show(t, "w2")
		in := w.inbox(t, mate("w1"))
		first := next(t, in)
		in.GiveBack(mailIDs(first))
		if second := next(t, in); len(second) != 1 || second[0].Text != first[0].Text {
			t.Errorf("the second time %q", texts(second))
		}
	})
}
