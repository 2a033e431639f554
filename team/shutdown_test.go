package team_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// own gives w1 tasks: two open ones and a completed one.
func own(t *testing.T, w *world, owner string) {
	t.Helper()
	for _, item := range []task.Task{
		{Subject: "Tmux task", Status: task.InProgress, Owner: owner},
		{Subject: `Say "hi"`, Status: task.Pending, Owner: owner},
		{Subject: "Done", Status: task.Completed, Owner: owner},
	} {
		if _, err := w.lists.Create(t.Context(), "alpha", item); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShutdownApproved(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			own(t, w, "w1")
			lead, w1 := w.seat(t, mailbox.LeadName), w.seat(t, "w1")
			_, id, err := lead.RequestShutdown(t.Context(), "w1", "bye")
			if err != nil {
				t.Fatal(err)
			}
			if want := "shutdown-946684800000@w1"; id != want {
				t.Errorf("request id %q, want %q", id, want)
			}
			request := next(t, w.inbox(t, mate("w1")))
			want := "<teammate-message teammate_id=\"team-lead\">\n" +
				`{"type":"shutdown_request","requestId":"` + id + `","from":"team-lead","reason":"bye","timestamp":"2000-01-01T00:00:00.000Z"}` +
				"\n</teammate-message>"
			if diff := cmp.Diff([]string{want}, texts(request)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if err := w1.RespondShutdown(t.Context(), id, true, ""); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w1.Left():
			default:
				t.Error("w1 approved and has not left")
			}
			approval := w.mailOf(t, "team-lead")[0]
			wantText := `{"type":"shutdown_approved","requestId":"` + id + `","from":"w1","timestamp":"2000-01-01T00:00:00.000Z","paneId":"` + w1Pane(w) + `","backendType":"` + w.backend.name() + `"}`
			if approval.Text != wantText || approval.Color != "blue" || approval.Summary != "" {
				t.Errorf("approval %+v", approval)
			}
			in := w.inbox(t, leader)
			told := next(t, in)
			wantTold := "<teammate-message teammate_id=\"system\">\n" +
				`{"type":"teammate_terminated","message":"w1 has shut down. 2 task(s) were unassigned: #1 \"Tmux task\", #2 \"Say \"hi\"\". ` +
				`Use TaskList to check availability and TaskUpdate with owner to reassign them to idle teammates."}` + "\n</teammate-message>"
			if diff := cmp.Diff([]string{wantTold}, texts(told)); diff != "" {
				t.Errorf("the lead is told (-want +got):\n%s", diff)
			}
			if told[0].Kind != team.KindSystem {
				t.Errorf("kind %s", told[0].Kind)
			}
			checkGone(t, w, "w1")
			wantStop := []stopped{{mailbox.Address{Team: "alpha", Agent: "w1"}, team.ErrShutdownApproved}}
			if diff := cmp.Diff(wantStop, w.backend.stopped, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
				t.Errorf("stopped (-want +got):\n%s", diff)
			}
			// What came after that is ignored, and done nothing with.
			if err := w.Gone(t.Context(), w1.Address(), "its session ended"); err != nil {
				t.Error(err)
			}
			if err := in.Shown(t.Context(), mailIDs(told)); err != nil {
				t.Error(err)
			}
			if !w.mailOf(t, "team-lead")[0].Read {
				t.Error("the approval is not marked read")
			}
			expectNone(t, in)
		})
	})
}

// w1Pane is the pane of the first teammate.
func w1Pane(w *world) string {
	if w.apart {
		return "%1"
	}
	return roster.InProcess
}

// checkGone checks that a teammate is off the roster and owns nothing open.
func checkGone(t *testing.T, w *world, name string) {
	t.Helper()
	for _, n := range w.names(t) {
		if n == name {
			t.Errorf("%s is still on the roster", name)
		}
	}
	for _, item := range w.tasks(t) {
		if item.Owner == name && item.Status != task.Completed {
			t.Errorf("#%s is still %s's", item.ID, name)
		}
	}
	if _, ok := w.Seat(mate(name)); ok {
		t.Errorf("%s still has a seat", name)
	}
}

// expectNone checks that an inbox has nothing, in a synctest bubble.
func expectNone(t *testing.T, in *team.Inbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if mails, err := in.Next(ctx); err == nil {
		t.Errorf("mail that was not to come: %q", texts(mails))
	}
}

func TestShutdownRejected(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		lead, w1 := w.seat(t, mailbox.LeadName), w.seat(t, "w1")
		_, id, err := lead.RequestShutdown(t.Context(), "w1", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w1.RespondShutdown(t.Context(), id, false, "too early"); !errors.Is(err, team.ErrNoRequest) {
			t.Errorf("answered before the request was taken in: %v", err)
		}
		next(t, w.inbox(t, mate("w1")))
		if err := w1.RespondShutdown(t.Context(), "shutdown-1@w1", true, ""); !errors.Is(err, team.ErrNoRequest) || !strings.Contains(err.Error(), id) {
			t.Errorf("a wrong id: %v", err)
		}
		if err := w1.RespondShutdown(t.Context(), id, false, "still busy"); err != nil {
			t.Fatal(err)
		}
		mails := next(t, w.inbox(t, leader))
		if len(mails) != 1 || !strings.Contains(mails[0].Text, `"requestId":"`+id+`","from":"w1","reason":"still busy"`) {
			t.Errorf("the lead gets %q", texts(mails))
		}
		if diff := cmp.Diff([]string{"team-lead", "w1"}, w.names(t)); diff != "" {
			t.Errorf("roster (-want +got):\n%s", diff)
		}
		if err := w1.RespondShutdown(t.Context(), id, true, ""); !errors.Is(err, team.ErrNoRequest) {
			t.Errorf("answered twice: %v", err)
		}
		w.send(t, "team-lead", "w1", "go on") // it is still there
	})
}

func TestRequestShutdownIsTheLeads(t *testing.T) {
	w := alphaTeam(t, "w1", "w2")
	if _, _, err := w.seat(t, "w1").RequestShutdown(t.Context(), "w2", ""); !errors.Is(err, team.ErrNotLead) {
		t.Errorf("by a teammate: %v", err)
	}
	if _, _, err := w.seat(t, mailbox.LeadName).RequestShutdown(t.Context(), "team-lead", ""); !isNameError(err) {
		t.Errorf("to itself: %v", err)
	}
	if _, _, err := w.seat(t, mailbox.LeadName).RequestShutdown(t.Context(), "w3", ""); err == nil {
		t.Error("to nobody: no error")
	}
}

// An approval whose handling fails is handled again, and the lead is told of all
// that was released.
func TestShutdownApprovalIsRetried(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1")
			own(t, w, "w1")
			approve(t, w, "w1")
			in := w.inbox(t, leader)
			w.rosters.failUpdate = errors.New("disk full")
			if _, err := in.Next(t.Context()); !errors.Is(err, w.rosters.failUpdate) {
				t.Fatalf("error %v", err)
			}
			w.send(t, "team-lead", "team-lead", "other mail")
			if mails := next(t, in); len(mails) != 1 || !strings.Contains(mails[0].Text, "other mail") {
				t.Errorf("other mail waits for the failure: %q", texts(mails))
			}
			w.rosters.failUpdate = nil
			mails := next(t, in)
			if len(mails) != 1 || !strings.Contains(mails[0].Text, "2 task(s) were unassigned") {
				t.Errorf("the lead is told %q", texts(mails))
			}
			checkGone(t, w, "w1")
		})
	})
}

// approve lets a teammate agree to its shutdown.
func approve(t *testing.T, w *world, name string) {
	t.Helper()
	_, id, err := w.seat(t, mailbox.LeadName).RequestShutdown(t.Context(), name, "")
	if err != nil {
		t.Fatal(err)
	}
	next(t, w.inbox(t, mate(name)))
	if err := w.seat(t, name).RespondShutdown(t.Context(), id, true, ""); err != nil {
		t.Fatal(err)
	}
}

// A lead that deletes its team in the same breath need not wait for its mail.
func TestDeleteCountsApprovals(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		in := w.inbox(t, leader)
		approve(t, w, "w1")
		d, err := w.Delete(t.Context(), leader)
		if err != nil || len(d.Active) > 0 {
			t.Fatalf("Delete = %+v, %v", d, err)
		}
		if mails := next(t, in); len(mails) != 1 || !strings.Contains(mails[0].Text, "w1 has shut down.") {
			t.Errorf("the lead is told %q", texts(mails))
		}
	})
}

func TestDepartedTeammate(t *testing.T) {
	w := alphaTeam(t, "w1", "w2")
	approve(t, w, "w1")
	// It has approved; the lead has not read it yet.
	_, err := w.seat(t, "w2").Send(t.Context(), "w1", "still there?", "s")
	if unknown, ok := errors.AsType[*roster.UnknownMemberError](err); !ok || !unknown.Departed {
		t.Errorf("mail to it: %v", err)
	}
	w1 := w.seat(t, "w1")
	if _, err := w1.Send(t.Context(), "w2", "one more thing", "s"); !errors.Is(err, team.ErrLeft) {
		t.Errorf("mail from it: %v", err)
	}
	if _, ok, err := w1.Claim(t.Context()); ok || err != nil {
		t.Errorf("it claims: %v, %v", ok, err)
	}
	if _, err := w.inbox(t, mate("w1")).Next(t.Context()); !errors.Is(err, team.ErrLeft) {
		t.Errorf("it reads: %v", err)
	}
	next(t, w.inbox(t, leader))
	again := w.spawn(t, "w1")
	if again.Name != "w1" {
		t.Errorf("the name is not free again: %s", again.Name)
	}
	w.send(t, "w2", "w1", "hello, new one")
	if mails := next(t, w.inbox(t, mate("w1"))); len(mails) != 1 || !strings.Contains(mails[0].Text, "new one") {
		t.Errorf("the new one reads %q", texts(mails))
	}
}

// At the end of a run: who agrees ends by itself, who does not is stopped when
// the time is over, and nobody owns anything any more.
func TestShutdownOfAWholeTeam(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "polite", "stuck", "stubborn")
			own(t, w, "stuck")
			if _, err := w.lists.Update(t.Context(), "alpha", "2", owner("polite")); err != nil {
				t.Fatal(err)
			}
			var mates sync.WaitGroup
			answer := func(name string, approve bool) {
				in := w.inbox(t, mate(name))
				seat := w.seat(t, name)
				mates.Go(func() {
					id := requestIn(t, in)
					time.Sleep(time.Second)
					if err := seat.RespondShutdown(t.Context(), id, approve, "busy"); err != nil {
						t.Error(err)
					}
				})
			}
			answer("polite", true)
			answer("stubborn", false)
			tooLong := errors.New("too long")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, tooLong)
			defer cancel()
			if err := w.Shutdown(ctx, leader); err != nil {
				t.Fatal(err)
			}
			mates.Wait()
			for _, name := range []string{"polite", "stuck", "stubborn"} {
				checkGone(t, w, name)
			}
			causes := make(map[string]error)
			for _, s := range w.backend.stopped {
				causes[s.Who.Agent] = s.Cause
			}
			for name, want := range map[string]error{
				"polite": team.ErrShutdownApproved, "stuck": tooLong, "stubborn": tooLong,
			} {
				if !errors.Is(causes[name], want) {
					t.Errorf("%s was stopped because: %v, want %v", name, causes[name], want)
				}
			}
			roster := of[event.TeamChanged](w.events)
			if last := roster[len(roster)-1]; len(last.Members) != 1 {
				t.Errorf("the last roster told of is %v", last.Members)
			}
		})
	})
}

// requestIn waits for a shutdown request and returns its id.
func requestIn(t *testing.T, in *team.Inbox) string {
	mails, err := in.Next(t.Context())
	if err != nil || len(mails) != 1 {
		t.Errorf("no request: %v, %v", mails, err)
		return ""
	}
	_, rest, _ := strings.Cut(mails[0].Text, `"requestId":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// When all agree nobody waits for the end of the time, and the lead's own reader
// may work beside it.
func TestShutdownEndsWhenAllHaveLeft(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			var others sync.WaitGroup
			lead := w.inbox(t, leader)
			reading, stop := context.WithCancel(t.Context())
			told := 0
			others.Go(func() {
				for {
					mails, err := lead.Next(reading)
					if err != nil {
						return
					}
					told += len(mails)
				}
			})
			for _, name := range []string{"w1", "w2"} {
				in, seat := w.inbox(t, mate(name)), w.seat(t, name)
				others.Go(func() {
					if err := seat.RespondShutdown(t.Context(), requestIn(t, in), true, ""); err != nil {
						t.Error(err)
					}
				})
			}
			begin := time.Now()
			if err := w.Shutdown(t.Context(), leader); err != nil {
				t.Error(err)
			}
			if waited := time.Since(begin); waited > 0 {
				t.Errorf("waited %v", waited)
			}
			synctest.Wait()
			stop()
			others.Wait()
			if told != 2 {
				t.Errorf("the lead was told %d times, want 2", told)
			}
			checkGone(t, w, "w1")
			checkGone(t, w, "w2")
			if len(w.backend.stopped) != 2 {
				t.Errorf("stopped %v", w.backend.stopped)
			}
		})
	})
}

// Whoever abandons a shutdown leaves the teammates in their team, to be resumed.
func TestAbandonedShutdown(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1")
			ctx, abandon := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.Shutdown(ctx, leader) }()
			synctest.Wait()
			abandon(team.ErrAbandoned)
			if err := <-done; !errors.Is(err, team.ErrAbandoned) {
				t.Errorf("shutdown: %v", err)
			}
			if got := w.members(t); len(got) != 2 {
				t.Errorf("members %v, want the lead and w1", got)
			}
			if len(w.backend.stopped) != 0 {
				t.Errorf("stopped %v", w.backend.stopped)
			}
		})
	})
}

func TestShutdownStopsWhomItCannotAsk(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		w.mails.failPost["w1"] = errors.New("disk full")
		if err := w.Shutdown(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		checkGone(t, w, "w1")
		if err := w.Shutdown(t.Context(), mate("w1")); err != nil {
			t.Errorf("without a seat: %v", err)
		}
	})
}

func TestGoneReleasesTasks(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		own(t, w, "w1")
		in := w.inbox(t, leader)
		w.gone(t, "w1", "the model is out of reach")
		checkGone(t, w, "w1")
		mails := next(t, in)
		if len(mails) != 1 || !strings.Contains(mails[0].Text, "w1 has ended: the model is out of reach. 2 task(s) were unassigned") {
			t.Errorf("the lead is told %q", texts(mails))
		}
		if released := of[event.TaskChanged](w.events); len(released) != 2 {
			t.Errorf("told of %d tasks", len(released))
		}
	})
}
