package cadre_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

func creating(subject string, more fields) scripted.Call {
	input := fields{"subject": subject, "description": "as it says"}
	for name, value := range more {
		input[name] = value
	}
	return scripted.Use("TaskCreate", input)
}

func updating(id string, change fields) scripted.Call {
	input := fields{"taskId": id}
	for name, value := range change {
		input[name] = value
	}
	return scripted.Use("TaskUpdate", input)
}

// A task is taken by one of the idle teammates; the lead is told that it was
// completed.
func TestTasksAreTakenAndReported(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		for _, name := range []string{"ann", "bob"} {
			w.idles(t, name, 1)
			w.give(t, name, order{On: "Start with task #1", Calls: []scripted.Call{
				scripted.Use("Bash", fields{"command": "echo 1 >> order.txt"}), updating("1", fields{"status": "completed"}),
			}})
			w.isWorking(t, name)
		}
		w.leads(t, creating("the work", nil))
		w.isShown(t, mailbox.LeadName, `"completedTaskId":"1","completedStatus":"completed"`)
		w.settled(t)
		if item := w.task(t, "1"); item.Status != task.Completed || (item.Owner != "ann" && item.Owner != "bob") {
			t.Errorf("the task is %+v", item)
		}
		if got := w.file(t, "order.txt"); got != "1\n" {
			t.Errorf("who took it wrote %q", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var seen []task.Status
		for ev := range w.Session().Events(ctx, 0) {
			if change, ok := ev.Body.(event.TaskChanged); ok {
				seen = append(seen, change.Task.Status)
			}
			if slices.Contains(seen, task.Completed) {
				break
			}
		}
		if want := []task.Status{task.Pending, task.InProgress, task.Completed}; !slices.Equal(seen, want) {
			t.Errorf("the lead's process published %v, want %v", seen, want)
		}
	})
}

// A task that waits for another is taken when that is completed, and not before.
func TestATaskWaitsForItsBlockers(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t)
		// Nobody may take a task before everybody knows what to do with it.
		gate := fields{"metadata": fields{"_internal": true}}
		w.leads(t, creating("gate", gate), creating("first", nil), updating("2", fields{"addBlockedBy": []string{"1"}}),
			creating("second", nil), updating("3", fields{"addBlockedBy": []string{"2"}}),
			spawning("ann", "You are ann."), spawning("bob", "You are bob."))
		for _, name := range []string{"ann", "bob"} {
			for _, id := range []string{"2", "3"} {
				w.give(t, name, order{On: "Start with task #" + id, Calls: []scripted.Call{
					scripted.Use("Bash", fields{"command": "echo " + id + " >> order.txt"}), updating(id, fields{"status": "completed"}),
				}})
			}
		}
		for _, name := range []string{"ann", "bob"} {
			w.isWorking(t, name)
		}
		w.leads(t, updating("1", fields{"status": "completed"}))
		eventually(t, "both are done", func() bool {
			return w.task(t, "2").Status == task.Completed && w.task(t, "3").Status == task.Completed
		})
		if got := w.file(t, "order.txt"); got != "2\n3\n" {
			t.Errorf("they were done in the order %q", got)
		}
		shown := 0
		for _, name := range []string{"ann", "bob"} {
			shown += w.shown(t, name).times("Start with task #")
		}
		if shown != 2 {
			t.Errorf("tasks were handed out %d times", shown)
		}
	})
}

// Who is assigned a task is told; a task that is somebody else's is not taken.
func TestATaskIsAssigned(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		w.leads(t, creating("guard", fields{"metadata": fields{"_internal": true}}), updating("1", fields{"owner": "bob"}))
		w.isShown(t, "bob", `"type":"task_assignment","taskId":"1","subject":"guard"`, `"assignedBy":"team-lead"`)
		contains(t, w.does(t, "ann", updating("1", fields{"status": "in_progress"}))[0], "bob")
		w.does(t, "bob", updating("1", fields{"status": "in_progress"}))
		if item := w.task(t, "1"); item.Owner != "bob" || item.Status != task.InProgress {
			t.Errorf("the task is %+v", item)
		}
	})
}

// A task with a check is completed when the check passes, run where its agent works.
func TestATaskProvesItself(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t)
		w.leads(t, creating("build", fields{"metadata": fields{"check": "test -e built && pwd"}}), spawning("ann", "You are ann."))
		w.isShown(t, "ann", "Start with task #1")
		done := updating("1", fields{"status": "completed"})
		again := updating("1", fields{"status": "completed", "activeForm": "Building"})
		said := w.does(t, "ann", done, updating("1", fields{"metadata": fields{"check": "true"}}), scripted.Use("Bash", fields{"command": "touch built"}), again)
		contains(t, said[0], "its check failed")
		contains(t, said[1], "lead")
		contains(t, said[3], "Its check passed")
		item := w.task(t, "1")
		evidence, ok := item.Checked()
		dir, err := filepath.EvalSymlinks(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		if item.Status != task.Completed || !ok || !evidence.Passed || evidence.By != "ann" || strings.TrimSpace(evidence.Output) != dir {
			t.Errorf("the task is %+v, proved by %+v", item, evidence)
		}
	})
}

// A lead waits for tasks and agents without talking.
func TestALeadWaits(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		w.idles(t, "ann", 1)
		w.idles(t, "bob", 1)
		w.give(t, "ann", order{On: "Start with task #1", Calls: []scripted.Call{w.untilThere("go"), updating("1", fields{"status": "completed"})}})
		w.isWorking(t, "ann")
		w.give(t, "bob", order{Fault: "silent", Until: w.path("over")})
		w.isWorking(t, "bob")
		w.leads(t, creating("build", nil))
		w.isThere(t, "begun")
		contains(t, w.leads(t, scripted.Use("Wait", fields{"tasks": []string{"1"}, "timeout": 1}))[0], "The time is up", "- [ ] task #1 build: in_progress, owned by ann")
		contains(t, w.leads(t, scripted.Use("Wait", fields{"agents": []string{"ann", "bob"}, "timeout": 2}))[0], "- [ ] ann: at work", "- [ ] bob: at work")
		waiting := w.give(t, mailbox.LeadName, order{Calls: []scripted.Call{
			scripted.Use("Wait", fields{"tasks": []string{"1"}}), scripted.Use("Wait", fields{"agents": []string{"ann", "bob"}, "mode": "any"}),
		}})
		w.write(t, w.path("go"), "", 0o600)
		said := w.results(t, mailbox.LeadName, waiting, 2)
		contains(t, said[0], "- [x] task #1 build: completed, owned by ann")
		contains(t, said[1], "- [x] ann: idle", "- [ ] bob: at work")
		w.idles(t, "ann", 2)
		w.rests(t, "ann")
		contains(t, w.leads(t, scripted.Use("Wait", fields{"agents": []string{"ann"}, "timeout": 0}))[0], "- [x] ann: idle; it last completed task #1")
		w.stop(t, "bob", true)
		w.leaves(t, "bob")
		contains(t, w.leads(t, scripted.Use("Wait", fields{"agents": []string{"bob"}}))[0], "- [x] bob: gone")
	})
}

// A run does not end while a teammate is at work, also in the moments in which that
// begins.
func TestSettledWaitsForTheTeam(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.open(t, nil)
		work := order{ID: "work", Calls: []scripted.Call{w.untilThere("go"), scripted.Use("Bash", fields{"command": "touch ended"})}}
		w.give(t, mailbox.LeadName, order{Calls: append(forming(), spawning("ann", work.text()))})
		settled := make(chan error, 1)
		go func() {
			err := w.Settled(t.Context())
			if err == nil && !exists(w.path("ended")) {
				err = errors.New("it returned while the teammate was at work")
			}
			settled <- err
		}()
		w.isThere(t, "begun")
		w.write(t, w.path("go"), "", 0o600)
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
	})
}

// A teammate with a process of its own posts its idle note before the roster says that
// it is idle: a run that finds everybody idle has the notes of all.
func TestAnIdleNoteComesBeforeTheRosterSaysIdle(t *testing.T) {
	w := newTeamWorld(t, inPanes)
	w.form(t, "ann")
	w.idles(t, "ann", 1)
	w.give(t, "ann", order{Calls: []scripted.Call{w.untilThere("go")}})
	w.isThere(t, "begun")
	stop := errors.New("nothing is to be written")
	_, err := w.state.Rosters().Update(t.Context(), alpha, func(*roster.Roster) error { // nobody else can write it
		w.write(t, w.path("go"), "", 0o600)
		w.idles(t, "ann", 2)
		return stop
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	w.rests(t, "ann")
}

// rests waits until the roster says of a teammate with a process of its own that it is
// idle.
func (w *teamWorld) rests(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the roster says that "+name+" is idle", func() bool {
		m := w.member(t, name)
		return m != nil && (m.IsActive == nil || !*m.IsActive)
	})
}

// Who waits for a team gives up at a ceiling, and is told what was open.
func TestSettledGivesUpAtItsCeiling(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.open(t, func(c *cadre.Config) { c.Settings = `{"printWaitCeilingMs": 100}` })
		w.form(t, "ann")
		w.leads(t, creating("Endless", nil))
		w.isShown(t, "ann", "Start with task #1")
		w.give(t, "ann", order{Fault: "silent"})
		w.isWorking(t, "ann")
		var open *cadre.OpenWorkError
		if err := w.Settled(t.Context()); !errors.As(err, &open) {
			t.Fatalf("settled: %v", err)
		}
		contains(t, open.Error(), "ann is at work", "task #1 is in_progress (Endless)")
	})
}
