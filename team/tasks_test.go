package team_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// add makes pending tasks with these subjects in the list of alpha.
func add(t *testing.T, w *world, subjects ...string) {
	t.Helper()
	for _, s := range subjects {
		item := task.Task{Subject: s, Description: "How to " + s, Status: task.Pending}
		if _, err := w.Tasks.Create(t.Context(), leader, item); err != nil {
			t.Fatal(err)
		}
	}
}

func owner(name string) task.Change { return task.Change{Owner: &name} }

func status(s task.Status) task.Change { return task.Change{Status: &s} }

func TestUpdateTaskTellsTheNewOwner(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			add(t, w, "test")
			change := owner("w2@alpha")
			change.Subject = new("test it")
			out, err := w.UpdateTask(t.Context(), mate("w1"), "1", change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"subject", "owner"}, out.Fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if _, err := w.UpdateTask(t.Context(), mate("w1"), "1", owner("w2")); err != nil { // no change, no mail
				t.Fatal(err)
			}
			want := []mailbox.Message{{
				From: "w1", Color: "blue", Timestamp: "2000-01-01T00:00:00.000Z",
				Text: `{"type":"task_assignment","taskId":"1","subject":"test","description":"How to test","assignedBy":"w1","timestamp":"2000-01-01T00:00:00.000Z"}`,
			}}
			if diff := cmp.Diff(want, w.mailOf(t, "w2"), ignoreStored); diff != "" {
				t.Errorf("mail (-want +got):\n%s", diff)
			}
			changed := of[event.TaskChanged](w.events)
			if len(changed) != 2 || changed[1].List != "alpha" || changed[1].Task.Owner != "w2" {
				t.Errorf("told of %+v", changed)
			}
			if out, err = w.UpdateTask(t.Context(), leader, "1", owner(" ")); err != nil || out.After.Owner != "" {
				t.Errorf("unassigned: %+v, %v", out, err)
			}
		})
	})
}

func TestUpdateTaskWithAnOwnerWhoIsNot(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "tester")
		add(t, w, "a")
		_, err := w.UpdateTask(t.Context(), leader, "1", owner("testre"))
		unknown, ok := errors.AsType[*roster.UnknownMemberError](err)
		if !ok || len(unknown.Near) != 1 || unknown.Near[0] != "tester" {
			t.Errorf("error %v", err)
		}
		if _, err := w.UpdateTask(t.Context(), leader, "1", owner("../x")); err == nil {
			t.Error("no error for ../x")
		}
		if got := w.tasks(t)[0].Owner; got != "" {
			t.Errorf("owner %q", got)
		}
		helper := tool.Caller{SessionID: "session-1", AgentID: "a1", Depth: 1}
		if _, err := w.UpdateTask(t.Context(), helper, "1", owner("tester")); !errors.Is(err, team.ErrNoTeam) {
			t.Errorf("by a sub-agent: %v", err)
		}
		alone := tool.Caller{SessionID: "session-2"}
		if _, err := w.Tasks.Create(t.Context(), alone, task.Task{Subject: "b", Status: task.Pending}); err != nil {
			t.Fatal(err)
		}
		if out, err := w.UpdateTask(t.Context(), alone, "1", owner("anybody")); err != nil || out.After.Owner != "anybody" {
			t.Errorf("without a team: %+v, %v", out, err)
		}
	})
}

func TestUpdateTaskReportsAnAssignmentThatWasNotSent(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		add(t, w, "a")
		w.mails.failPost["w1"] = errors.New("disk full")
		out, err := w.UpdateTask(t.Context(), leader, "1", owner("w1"))
		if !errors.Is(err, w.mails.failPost["w1"]) || len(out.Fields) != 1 {
			t.Errorf("outcome %+v, error %v", out, err)
		}
	})
}

// A teammate that begins a task takes it, and only one can.
func TestTeammateTakesTheTaskItBegins(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		add(t, w, "a", "b")
		out, err := w.UpdateTask(t.Context(), mate("w1"), "1", status(task.InProgress))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"owner", "status"}, out.Fields); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
		if mail := w.mailOf(t, "w1"); len(mail) != 1 || !strings.Contains(mail[0].Text, `"assignedBy":"w1"`) {
			t.Errorf("w1 has mail %v", mail)
		}
		if _, err := w.UpdateTask(t.Context(), mate("w2"), "1", status(task.InProgress)); !errors.Is(err, task.ErrOwned) {
			t.Errorf("w2 takes it, too: %v", err)
		}
		if out, err := w.UpdateTask(t.Context(), mate("w1"), "1", status(task.InProgress)); err != nil || len(out.Fields) != 0 {
			t.Errorf("w1 begins it again: %+v, %v", out, err)
		}
		if _, err := w.UpdateTask(t.Context(), leader, "2", task.Change{AddBlockedBy: []string{"1"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.UpdateTask(t.Context(), mate("w2"), "2", status(task.InProgress)); !errors.Is(err, task.ErrBlocked) {
			t.Errorf("w2 begins a blocked one: %v", err)
		}
		if out, err := w.UpdateTask(t.Context(), leader, "2", status(task.InProgress)); err != nil || out.After.Owner != "" {
			t.Errorf("the lead begins one: %+v, %v", out, err)
		}
	})
}

func TestUpdateTaskRefusesCycles(t *testing.T) {
	w := alphaTeam(t)
	add(t, w, "a", "b")
	if _, err := w.UpdateTask(t.Context(), leader, "2", task.Change{AddBlockedBy: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]task.Change{
		"cycle": {AddBlockedBy: []string{"2"}}, "itself": {AddBlocks: []string{"1"}}, "missing": {AddBlocks: []string{"9"}},
	} {
		_, err := w.UpdateTask(t.Context(), leader, "1", change)
		if !errors.Is(err, task.ErrCycle) && !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An edge is told of from both of its ends.
func TestUpdateTaskPublishesBothEnds(t *testing.T) {
	w := alphaTeam(t)
	add(t, w, "a", "b")
	told := func() (last []string) {
		for _, c := range of[event.TaskChanged](w.events) {
			last = append(last, c.Task.ID+" "+string(c.Task.Status)+" "+strings.Join(c.Task.BlockedBy, ","))
		}
		w.events.bodies = nil
		return last
	}
	told()
	if _, err := w.UpdateTask(t.Context(), leader, "1", task.Change{AddBlocks: []string{"2"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 pending ", "2 pending 1"}, told()); diff != "" {
		t.Errorf("new edge (-want +got):\n%s", diff)
	}
	if _, err := w.UpdateTask(t.Context(), leader, "1", status(task.Deleted)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 deleted ", "2 pending "}, told()); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestClaim(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		w1, w2 := w.seat(t, "w1"), w.seat(t, "w2")
		signal, stop := w1.WatchTasks()
		defer stop()
		add(t, w, "P4", "after it", "other")
		<-signal
		if _, err := w.UpdateTask(t.Context(), leader, "2", task.Change{AddBlockedBy: []string{"1"}}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := w.seat(t, mailbox.LeadName).Claim(t.Context()); ok || err != nil {
			t.Errorf("the lead claims: %v, %v", ok, err)
		}
		mail, ok, err := w1.Claim(t.Context())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		want := team.Mail{
			Kind: team.KindTask, From: "task-list", Preview: "task #1: P4", IDs: []mailbox.ID{"task-1"},
			Text: "<teammate-message teammate_id=\"task-list\">\nComplete all open tasks. Start with task #1: \n\n P4\n\nHow to P4\n</teammate-message>",
		}
		if diff := cmp.Diff(want, mail); diff != "" {
			t.Errorf("mail (-want +got):\n%s", diff)
		}
		if got := w.tasks(t)[0]; got.Owner != "w1" || got.Status != task.InProgress {
			t.Errorf("task %+v", got)
		}
		if _, ok, err := w1.Claim(t.Context()); ok || err != nil {
			t.Errorf("w1 claims a second task: %v, %v", ok, err)
		}
		if mail, ok, err = w2.Claim(t.Context()); err != nil || !ok || mail.Preview != "task #3: other" {
			t.Errorf("w2 claims %+v, %v, %v", mail, ok, err)
		}
		if _, err := w.UpdateTask(t.Context(), mate("w1"), "1", status(task.Completed)); err != nil {
			t.Fatal(err)
		}
		if mail, ok, err = w1.Claim(t.Context()); err != nil || !ok || mail.Preview != "task #2: after it" {
			t.Errorf("w1 goes on with %+v, %v, %v", mail, ok, err)
		}
		if err := w1.NotifyIdle(t.Context(), protocol.Available, ""); err != nil {
			t.Fatal(err)
		}
		note := w.mailOf(t, "team-lead")
		if len(note) != 1 || !strings.HasSuffix(note[0].Text, `"completedTaskId":"1","completedStatus":"completed"}`) {
			t.Errorf("note %v", note)
		}
	})
}

func TestGiveBackTasks(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		add(t, w, "claimed", "assigned")
		if _, err := w.UpdateTask(t.Context(), leader, "2", owner("w1")); err != nil {
			t.Fatal(err)
		}
		w1 := w.seat(t, "w1")
		if _, ok, err := w1.Claim(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := w1.GiveBackTasks(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range w.tasks(t) {
			got = append(got, item.Subject+" "+string(item.Status)+" "+item.Owner)
		}
		if diff := cmp.Diff([]string{"claimed pending ", "assigned pending w1"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWaiting(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) { testWaiting(t, alpha) })
	})
}

func testWaiting(t *testing.T, alpha start) {
	w := alpha(t, "w1", "w2")
	check := func(what string, want bool) {
		t.Helper()
		if got, err := w.Waiting(t.Context(), leader); err != nil || (got != "") != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	check("at first", false)
	in := w.inbox(t, mate("w2"))
	w.send(t, "w1", "w2", "x")
	check("mail for w2", true)
	mails := next(t, in)
	check("mail that is not shown yet", true)
	if err := in.Shown(t.Context(), mailIDs(mails)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // synthetic time, in which it would have said that it works
	check("mail that is shown", false)
	add(t, w, "a", "b", "c")
	check("a task to claim", true)
	for _, name := range []string{"w1", "w2"} {
		if _, ok, err := w.seat(t, name).Claim(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	check("a task that nobody is free for", false)
	alone, err := w.Waiting(t.Context(), tool.Caller{SessionID: "session-2"})
	if err != nil || alone != "" {
		t.Errorf("without a team: %v, %v", alone, err)
	}
}
