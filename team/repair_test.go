package team_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// claudeTeam is the team alpha whose teammates are another program, in a bubble of
// synctest: nobody joins it in the same moment.
func claudeTeam(t *testing.T, test func(t *testing.T, w *world), mates ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.backend.kind = "tmux"
		w.backend.join = func(s team.Spawn) error {
			doc := fmt.Sprintf(`{"name":%q,"sessionId":"","backend":"tmux","signs":false}`, s.Member.Name)
			return w.kept.Records().Put(t.Context(), "alpha", roster.RecordAgent, s.Member.Name, []byte(doc))
		}
		w.form(t, mates)
		time.Sleep(time.Minute) // synthetic time
		test(t, w)
	})
}

// kept is the roster of alpha as its file has it.
func (w *world) file(t *testing.T) roster.Roster {
	t.Helper()
	config, err := w.rosters.Load(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// overwrite is another program that writes a roster which it has read before.
func (w *world) overwrite(t *testing.T, older roster.Roster) {
	t.Helper()
	_, err := w.rosters.Store.Update(t.Context(), "alpha", func(c *roster.Roster) error {
		*c = older
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// edit is another program that changes its roster.
func (w *world) edit(t *testing.T, change func(c *roster.Roster)) {
	t.Helper()
	if _, err := w.rosters.Store.Update(t.Context(), "alpha", func(c *roster.Roster) error { change(c); return nil }); err != nil {
		t.Fatal(err)
	}
}

// members is the roster as the lead sees it.
func (w *world) members(t *testing.T) []roster.Member {
	t.Helper()
	members, err := w.seat(t, mailbox.LeadName).Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return members
}

func memberNames(members []roster.Member) (names []string) {
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

func (w *world) checkRoster(t *testing.T, want ...string) {
	t.Helper()
	want = append([]string{mailbox.LeadName}, want...)
	if diff := cmp.Diff(want, memberNames(w.members(t))); diff != "" {
		t.Errorf("the lead sees (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.names(t)); diff != "" {
		t.Errorf("the file has (-want +got):\n%s", diff)
	}
}

// A teammate that another program has written off the roster, since it had read that
// before, is put back as it was, and what others have written stays.
func TestVanishedMemberIsPutBack(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.spawn(t, "w2")
		w.spawn(t, "w3")
		w.edit(t, func(c *roster.Roster) {
			c.Find("w2").IsActive = new(true)
			c.Find("w2").Extra.Set("x-theirs", 1)
		})
		w.members(t) // the lead has seen that
		want := *new(w.file(t)).Find("w2")
		before.Extra.Set("hiddenPaneIds", []string{"%1"})
		before.Find("w1").IsActive = new(true)
		w.overwrite(t, before)
		w.checkRoster(t, "w1", "w2", "w3")
		now := w.file(t)
		objects := cmp.Comparer(func(a, b roster.Member) bool { return fmt.Sprint(a.Extra) == fmt.Sprint(b.Extra) })
		if diff := cmp.Diff(want, *now.Find("w2"), cmpopts.IgnoreFields(roster.Member{}, "Extra")); diff != "" || !cmp.Equal(want, *now.Find("w2"), objects) {
			t.Errorf("it is back as (-want +got):\n%s\nwith %v", diff, now.Find("w2").Extra)
		}
		if string(now.Extra.Raw("hiddenPaneIds")) != `["%1"]` || !*now.Find("w1").IsActive {
			t.Errorf("what the other wrote is gone: %+v", now)
		}
		w.send(t, mailbox.LeadName, "w3", "still there?")
	}, "w1")
}

// What a teammate says while it is missing counts, and so does its end.
func TestVanishedMemberIsHeard(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.spawn(t, "w2")
		own(t, w, "w2")
		in := w.inbox(t, leader)
		w.overwrite(t, before)
		w.forge(t, "w2", mailbox.LeadName, "a word")
		if mails := next(t, in); len(mails) != 1 || mails[0].From != "w2" {
			t.Errorf("its word: %+v", mails)
		}
		w.overwrite(t, before)
		post(t, w, "w2", `{"type":"shutdown_approved","requestId":"r","from":"w2"}`)
		if mails := next(t, in); len(mails) != 1 || !strings.Contains(mails[0].Text, "w2 has shut down. 2 task(s)") {
			t.Errorf("its approval: %q", texts(mails))
		}
		checkGone(t, w, "w2")
	}, "w1")
}

// post is a message of another program to its lead, now.
func post(t *testing.T, w *world, from, text string) {
	t.Helper()
	m := mailbox.Message{From: from, Text: text, Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	if err := w.mails.Post(t.Context(), mailbox.Address{Team: "alpha", Agent: mailbox.LeadName}, m); err != nil {
		t.Fatal(err)
	}
}

// The end of a missing teammate that nobody asked for is told to the lead.
func TestVanishedMemberThatEnds(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.spawn(t, "w2")
		own(t, w, "w2")
		w.overwrite(t, before)
		w.gone(t, "w2", "its pane was closed")
		if mails := next(t, w.inbox(t, leader)); len(mails) != 1 || !strings.Contains(mails[0].Text, "w2 has ended: its pane was closed. 2 task(s)") {
			t.Errorf("the lead is told %q", texts(mails))
		}
		checkGone(t, w, "w2")
	}, "w1")
}

// Who has left does not come back, whoever took it off: its lead, or another process.
func TestWhoHasLeftStaysAway(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, w *world){
		"by agreement": func(t *testing.T, w *world) {
			post(t, w, "w2", `{"type":"shutdown_approved","requestId":"r","from":"w2"}`)
			next(t, w.inbox(t, leader))
		},
		"dead": func(t *testing.T, w *world) { w.gone(t, "w2", "its pane was closed") },
		"from outside": func(t *testing.T, w *world) {
			if err := w.process(nil).Remove(t.Context(), "alpha", "w2", "enough"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			claudeTeam(t, func(t *testing.T, w *world) {
				before := w.file(t)
				leave(t, w)
				w.checkRoster(t, "w1")
				w.overwrite(t, before)
				w.checkRoster(t, "w1")
				w.restart()
				w.overwrite(t, before)
				absent, _, err := w.Reopen(t.Context(), leader)
				if err != nil || len(absent) > 0 {
					t.Errorf("absent %v, %v", absent, err)
				}
				w.checkRoster(t, "w1")
				w.gone(t, "w1", "killed")
				w.overwrite(t, before)
				if d, err := w.Delete(t.Context(), leader); err != nil || len(d.Active) > 0 {
					t.Errorf("Delete = %+v, %v", d, err)
				}
			}, "w1", "w2")
		})
	}
}

// A teammate that is being taken off by another process is not put back meanwhile.
func TestWhoIsLeavingStaysAway(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		w.rosters.updated = func() { // the other process has not done more than this
			w.rosters.updated = nil
			if names := memberNames(w.members(t)); slices.Contains(names, "w2") {
				t.Errorf("the lead sees %q", names)
			}
		}
		if err := w.process(nil).Remove(t.Context(), "alpha", "w2", "enough"); err != nil {
			t.Fatal(err)
		}
		w.checkRoster(t, "w1")
	}, "w1", "w2")
}

// A new teammate is not taken for the former one of its name, nor replaced by it.
func TestVanishedMemberWithAFormerName(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.gone(t, "w1", "killed")
		time.Sleep(time.Minute) // synthetic time
		w.spawn(t, "w1")
		want := new(w.file(t)).Find("w1").JoinedAt
		for range 2 {
			w.overwrite(t, before)
			w.checkRoster(t, "w1")
			if got := new(w.file(t)).Find("w1").JoinedAt; got != want {
				t.Errorf("the one of %d stands there, not that of %d", got, want)
			}
			w.restart()
			if _, _, err := w.Reopen(t.Context(), leader); err != nil {
				t.Fatal(err)
			}
		}
	}, "w1")
}

// Where a teammate runs is its lead's word.
func TestPaneOfAMemberIsPutBack(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		w.edit(t, func(c *roster.Roster) { c.Find("w1").PaneID, c.Find("w1").Color = "", "pink" })
		if m := w.members(t)[1]; m.PaneID != "%1" || m.Color != "pink" {
			t.Errorf("the lead sees %+v", m)
		}
		if m := new(w.file(t)).Find("w1"); m.PaneID != "%1" || m.Color != "pink" {
			t.Errorf("the file has %+v", m)
		}
	}, "w1")
}

// Who looks at the roster just when the lead has written where a teammate runs does not
// take that for another's.
func TestPaneOfAMemberIsSeenAtOnce(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		looking := false
		w.rosters.updated = func() {
			if !looking {
				looking = true
				w.members(t)
				looking = false
			}
		}
		w.spawn(t, "w2")
		if m := new(w.file(t)).Find("w2"); m.PaneID != "%2" {
			t.Errorf("the file has %+v", m)
		}
	}, "w1")
}

// A lead whose file cannot be written knows its team all the same, and mends the file
// with the next thing that it writes there.
func TestVanishedMemberAndNoDisk(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.spawn(t, "w2")
		w.overwrite(t, before)
		w.rosters.failUpdate = errors.New("no space left")
		if names := memberNames(w.members(t)); !slices.Equal(names, []string{"team-lead", "w1", "w2"}) {
			t.Errorf("the lead sees %q", names)
		}
		w.rosters.failUpdate = nil
		w.spawn(t, "w3")
		if names := w.names(t); !slices.Equal(names, []string{"team-lead", "w1", "w2", "w3"}) {
			t.Errorf("the file has %q", names)
		}
	}, "w1")
}

// A lead that was killed puts back who has vanished meanwhile, and looks after it; what
// was theirs is still theirs.
func TestVanishedMemberAndAKilledLead(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		w.spawn(t, "w2")
		own(t, w, "w2")
		w.restart()
		w.overwrite(t, before)
		absent, ok, err := w.Reopen(t.Context(), leader)
		if err != nil || !ok || len(absent) > 0 {
			t.Fatalf("absent %v, %v, %v", absent, ok, err)
		}
		w.checkRoster(t, "w1", "w2")
		if _, ok := w.Seat(mate("w2")); !ok {
			t.Error("nobody looks after w2")
		}
		if first := w.tasks(t)[0]; first.Owner != "w2" || first.Status != task.InProgress {
			t.Errorf("its task is %+v", first)
		}
		if m := new(w.file(t)).Find("w2"); m.PaneID != "%2" || m.Prompt != "Do it." {
			t.Errorf("it is back as %+v", m)
		}
	}, "w1")
}

// A departure that was cut short before the roster is finished, also one of which the
// lead was not to be told.
func TestDepartureThatWasCutShort(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		killed := errors.New("killed here")
		w.rosters.failUpdate = killed
		in := w.inbox(t, leader)
		post(t, w, "w1", `{"type":"shutdown_approved","requestId":"r","from":"w1"}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := in.Next(ctx); !errors.Is(err, killed) {
			t.Fatal(err)
		}
		w.rosters.failUpdate = nil
		if err := w.mails.MarkRead(t.Context(), mailbox.Address{Team: "alpha", Agent: mailbox.LeadName}, []mailbox.ID{mailbox.FirstID(w.mailOf(t, mailbox.LeadName)[0])}); err != nil {
			t.Fatal(err)
		}
		w.restart()
		if _, _, err := w.Reopen(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		checkGone(t, w, "w1")
	}, "w1")
}

// An older cadre kept nothing of places: what the roster says when its lead comes back
// is what is looked after.
func TestVanishedMemberOfAnOlderTeam(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		before := w.file(t)
		before.Members = before.Members[:1]
		if err := w.kept.Records().Drop(t.Context(), "alpha", roster.RecordMember, "w1"); err != nil {
			t.Fatal(err)
		}
		w.restart()
		if _, _, err := w.Reopen(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		w.overwrite(t, before)
		w.checkRoster(t, "w1")
	}, "w1")
}

// unreadable are records that cannot be read while fail is set.
type unreadable struct {
	roster.Records
	fail error
}

func (u *unreadable) Get(ctx context.Context, name, kind, record string) ([]byte, error) {
	if u.fail != nil && kind == roster.RecordMember {
		return nil, u.fail
	}
	return u.Records.Get(ctx, name, kind, record)
}

// Who is missing is put back only when it is known that it has not left; and every
// change is made to the roster as it should be.
func TestRostersAreMendedByWhatIsKept(t *testing.T) {
	claudeTeam(t, func(t *testing.T, w *world) {
		records := &unreadable{Records: w.kept.Records()}
		rosters := roster.NewRepairingStore(w.rosters, records)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		w.Teams = team.New(team.Options{
			Store: rosters, Mail: w.mails, Tasks: w.lists, Backend: w.backend,
			Seals: w.kept.Seals(), Records: records, Presence: w.kept.Presence(),
		})
		if _, _, err := w.Reopen(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		before := w.file(t)
		w.spawn(t, "w2")
		check := func(what string, want ...string) {
			t.Helper()
			var got []string
			config, err := rosters.Update(t.Context(), "alpha", func(c *roster.Roster) error {
				got = memberNames(c.Members)
				return nil
			})
			if want = append([]string{mailbox.LeadName}, want...); err != nil || !slices.Equal(got, want) || !slices.Equal(memberNames(config.Members), want) {
				t.Errorf("%s: to change %q, changed %q, %v; want %q", what, got, memberNames(config.Members), err, want)
			}
		}
		w.overwrite(t, before)
		records.fail = errors.New("input/output error")
		check("unknown", "w1")
		w.rosters.updated = func() { t.Error("what is not mended is written") }
		w.checkRoster(t, "w1")
		w.rosters.updated = nil
		records.fail = nil
		check("known", "w1", "w2")
		former := `{"member":{"agentId":"w2@alpha","name":"w2","joinedAt":1},"left":true}`
		if err := w.kept.Records().Put(t.Context(), "alpha", roster.RecordMember, "w2", []byte(former)); err != nil {
			t.Fatal(err)
		}
		w.overwrite(t, before)
		check("another of its name has left", "w1", "w2")
	}, "w1")
}
