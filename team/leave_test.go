package team_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
)

// The lead is told of a teammate's end once, wherever its own process is killed
// between the departure and the showing.
func TestTheEndOfATeammateIsToldAfterACrash(t *testing.T) {
	killed := errors.New("killed here")
	for where, cut := range map[string]func(*world){
		"before the roster": func(w *world) { w.rosters.failUpdate = killed },
		"before the return": func(w *world) { w.mails.failRead = killed },
		"before the note":   func(w *world) { w.mails.failPost[mailbox.LeadName] = killed },
		"after all":         func(*world) {},
	} {
		t.Run(where, func(t *testing.T) {
			overWorlds(t, func(t *testing.T, alpha start) {
				w := alpha(t, "w1")
				add(t, w, "a")
				if _, err := w.UpdateTask(t.Context(), mate("w1"), "1", status("in_progress")); err != nil {
					t.Fatal(err)
				}
				w.endProcess(t, "w1")
				cut(w)
				err := w.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"}, "its pane was closed")
				if err != nil && !errors.Is(err, killed) {
					t.Fatal(err)
				}
				w.rosters.failUpdate, w.mails.failRead = nil, nil
				delete(w.mails.failPost, mailbox.LeadName)
				for range 2 { // the second time there is nothing left to do
					w.restart()
					if _, ok, err := w.Reopen(t.Context(), leader); !ok || err != nil {
						t.Fatal(ok, err)
					}
				}
				checkGone(t, w, "w1")
				if len(w.mailOf(t, mailbox.LeadName)) == 0 {
					t.Fatal("the lead is told nothing")
				}
				mails := next(t, w.inbox(t, leader))
				want := []string{`w1 has ended: its pane was closed. 1 task(s) were unassigned: #1 "a". Use TaskList to check availab…`}
				var got []string
				for _, m := range mails {
					got = append(got, m.Preview)
				}
				if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(mails[0].Text, `teammate_id="system"`) {
					t.Errorf("the lead is shown (-want +got):\n%s", diff)
				}
			})
		})
	}
}
