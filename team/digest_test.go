package team_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

func (w *world) idle(t *testing.T, name string, reason protocol.IdleReason, failure string) {
	t.Helper()
	seat := w.seat(t, name)
	seat.Working()
	if err := seat.NotifyIdle(t.Context(), reason, failure); err != nil {
		t.Fatal(err)
	}
}

// Several notes that agents are idle come to the lead as one, with the receipts
// of all.
func TestIdleDigest(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2", "w3")
		add(t, w, "a")
		if _, err := w.UpdateTask(t.Context(), mate("w1"), "1", status(task.Completed)); err != nil {
			t.Fatal(err)
		}
		w.send(t, "w1", "w2", "hi")
		w.idle(t, "w1", protocol.Available, "")
		w.send(t, "w2", "team-lead", "before w2 is idle")
		w.idle(t, "w2", protocol.IdleFailed, "API <down>\nnow")
		w.idle(t, "w3", protocol.Available, "")
		w.send(t, "w3", "team-lead", "after w3 was idle")
		in := w.inbox(t, leader)
		mails := next(t, in)
		var got []string
		for _, m := range mails {
			got = append(got, string(m.Kind)+" "+m.From+": "+m.Preview)
		}
		want := []string{
			"peer w2: about before w2 is idle", "system system: idle: w1, w2", "peer w3: w3 is idle",
			"peer w3: about after w3 was idle",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("mail (-want +got):\n%s", diff)
		}
		if mails[1].Quiet || !mails[2].Quiet {
			t.Error("only news that nothing is wrong are quiet")
		}
		text := "<teammate-message teammate_id=\"system\">\n2 teammates are idle:\n" +
			"- w1 (available); task #1 completed; [to w2] about hi\n- w2 (failed); because API <down> now\n</teammate-message>"
		if diff := cmp.Diff(text, mails[1].Text); diff != "" {
			t.Errorf("digest (-want +got):\n%s", diff)
		}
		if err := in.Shown(t.Context(), mailIDs(mails)); err != nil {
			t.Fatal(err)
		}
		for _, m := range w.mailOf(t, "team-lead") {
			if !m.Read {
				t.Errorf("unread: %s", m.Text)
			}
		}
		w.idle(t, "w1", protocol.Available, "")
		if alone := next(t, in); len(alone) != 1 || alone[0].Preview != "w1 is idle" {
			t.Errorf("a single note: %+v", alone)
		}
	})
}

// A digest of however many notes is one message, and no longer than one may be.
func TestDigestOfVeryManyNotes(t *testing.T) {
	w := alphaTeam(t, "w1")
	const notes = 5000
	for n := range notes {
		w.idle(t, "w1", protocol.IdleFailed, fmt.Sprint(n, strings.Repeat(" down", 20)))
	}
	mails := next(t, w.inbox(t, leader))
	if len(mails) != 1 || len(mails[0].IDs) != notes || len(mails[0].Text) > 129<<10 {
		t.Fatalf("%d messages; the first with %d notes in %d bytes", len(mails), len(mails[0].IDs), len(mails[0].Text))
	}
	if text := mails[0].Text; !strings.Contains(text, "1 teammate is idle:\n(") || !strings.Contains(text, " earlier notes are left out)\n- w1 (failed); because ") ||
		!strings.Contains(text, fmt.Sprintf("because %d down", notes-1)) {
		t.Errorf("%.300s", text)
	}
}
