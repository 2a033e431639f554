package team_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// waiting is an Await that runs.
type waiting struct {
	stop context.CancelFunc
	done chan struct{}
	team.Progress
	err error
}

// await starts to wait inside a bubble of synctest, and returns when it blocks or
// is over.
func await(t *testing.T, teams *team.Teams, by tool.Caller, w team.Awaited) *waiting {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	a := &waiting{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.Progress, a.err = teams.Await(ctx, by, w)
	}()
	synctest.Wait()
	return a
}

// over reports whether the wait has ended, once everything has settled.
func (a *waiting) over(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return true
	default:
		return false
	}
}

func (p *parley) task(t *testing.T, subject string) string {
	t.Helper()
	created, err := p.Tasks.Create(t.Context(), leader, task.Task{Subject: subject, Status: task.Pending})
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

func (p *parley) setStatus(t *testing.T, by tool.Caller, id string, s task.Status) {
	t.Helper()
	if _, err := p.UpdateTask(t.Context(), by, id, status(s)); err != nil {
		t.Fatal(err)
	}
}

func (p *parley) idle(t *testing.T, name string, reason protocol.IdleReason, failure string) {
	t.Helper()
	if err := p.seat(t, name).NotifyIdle(t.Context(), reason, failure); err != nil {
		t.Fatal(err)
	}
}

// within runs a test in a bubble, where waiting takes no time and nothing may
// be left waiting.
func within(t *testing.T, test func(t *testing.T, p *parley), mates ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newParley(t, team.Policy{}, mates...)) })
}

func TestAwaitTasks(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		one, two := p.task(t, "one"), p.task(t, "two")
		begin := time.Now()
		anyOf := await(t, p.Teams, leader, team.Awaited{Tasks: []string{one, "#" + two}})
		all := await(t, p.Teams, leader, team.Awaited{Tasks: []string{one, two, one}, All: true})
		if anyOf.over(t) || all.over(t) {
			t.Fatal("nothing is done, and the wait is over")
		}
		p.setStatus(t, mate("w1"), one, task.InProgress)
		if anyOf.over(t) {
			t.Fatal("a begun task counts as done")
		}
		p.setStatus(t, mate("w1"), one, task.Completed)
		if !anyOf.over(t) || all.over(t) {
			t.Fatal("any and all are mixed up")
		}
		want := []team.AwaitedTask{
			{ID: one, Subject: "one", Owner: "w1", Status: task.Completed, Done: true}, {ID: two, Subject: "two", Status: task.Pending},
		}
		if diff := cmp.Diff(team.Progress{Done: true, Tasks: want}, anyOf.Progress); diff != "" {
			t.Errorf("any (-want +got):\n%s", diff)
		}
		p.setStatus(t, leader, two, task.Deleted)
		if !all.over(t) {
			t.Fatal("a deleted task is waited for")
		}
		want[1] = team.AwaitedTask{ID: two, Status: task.Deleted, Done: true}
		if diff := cmp.Diff(team.Progress{Done: true, Tasks: want}, all.Progress); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("polled: it took %v", waited)
		}
	}, "w1")
}

func TestAwaitAgents(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		id := p.task(t, "work")
		p.setStatus(t, mate("w1"), id, task.InProgress)
		begin := time.Now()
		anyOf := await(t, p.Teams, leader, team.Awaited{})
		all := await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1", "w2@alpha", "w3"}, All: true})
		if anyOf.over(t) {
			t.Fatal("over before anybody is idle")
		}
		p.setStatus(t, mate("w1"), id, task.Completed)
		take(t, p.inbox(t, mate("w1"))) // its assignment
		p.idle(t, "w1", protocol.Available, "")
		p.idle(t, "w2", protocol.IdleFailed, "API down")
		if !anyOf.over(t) || all.over(t) {
			t.Fatal("any and all are mixed up")
		}
		if err := p.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: "w3"}, "killed"); err != nil {
			t.Fatal(err)
		}
		if !all.over(t) {
			t.Fatal("a dead agent is waited for")
		}
		want := team.Progress{Done: true, Agents: []team.AwaitedAgent{
			{Name: "w1", State: team.AgentIdle, Done: true, Reason: protocol.Available, CompletedTask: id},
			{Name: "w2", State: team.AgentIdle, Done: true, Reason: protocol.IdleFailed, Failure: "API down"},
			{Name: "w3", State: team.AgentGone, Done: true},
		}}
		if diff := cmp.Diff(want, all.Progress); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("polled: it took %v", waited)
		}
		// It has left before: that is what a wait for it waits for.
		if late := await(t, p.Teams, leader, team.Awaited{Agents: []string{"w3"}}); !late.over(t) || late.Agents[0].State != team.AgentGone {
			t.Errorf("progress %+v", late.Progress)
		}
	}, "w1", "w2", "w3")
}

// An agent is not done before its lead can know why.
func TestAwaitAgentThatTellsWhy(t *testing.T) {
	w := alphaTeam(t, "w1")
	look := func() team.AwaitedAgent {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		p, err := w.Await(over, leader, team.Awaited{Agents: []string{"w1"}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Agents[0]
	}
	var before team.AwaitedAgent
	w.mails.beforePost = func() { before = look() }
	if err := w.seat(t, "w1").NotifyIdle(t.Context(), protocol.IdleFailed, "API down"); err != nil {
		t.Fatal(err)
	}
	if after := look(); before.State != team.AgentWorking || after.State != team.AgentIdle || after.Failure != "API down" {
		t.Errorf("before its note %+v, after it %+v", before, after)
	}
}

// An idle agent that is about to work is not done: mail or a task waits for it.
func TestAwaitAgentThatIsAboutToWork(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		p.idle(t, "w1", protocol.Available, "")
		p.send(t, mailbox.LeadName, "w1", "one more thing")
		a := await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1"}})
		if a.over(t) {
			t.Fatal("an agent with unread mail counts as idle")
		}
		p.seat(t, "w1").Working()
		take(t, p.inbox(t, mate("w1")))
		p.idle(t, "w1", protocol.IdleInterrupted, "")
		if !a.over(t) || a.Agents[0].Reason != protocol.IdleInterrupted {
			t.Fatalf("progress %+v", a.Progress)
		}
		p.task(t, "for anybody")
		if a = await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1"}}); a.over(t) {
			t.Fatal("an agent with a task to take counts as idle")
		}
		p.seat(t, "w1").Working()
		if _, ok, err := p.seat(t, "w1").Claim(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		p.setStatus(t, mate("w1"), "1", task.Completed)
		p.idle(t, "w1", protocol.Available, "")
		if !a.over(t) {
			t.Fatal("still waiting")
		}
	}, "w1")
}

// Mail that starts no turn leaves no signal, and does not make a wait hang.
func TestAwaitAgentWhoseMailWasConsumed(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		p.idle(t, "w1", protocol.Available, "")
		p.send(t, "w2", "w1", "hi")
		a := await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1"}})
		if a.over(t) {
			t.Fatal("over too early")
		}
		take(t, p.inbox(t, mate("w1")))
		time.Sleep(2 * time.Second) // synthetic time
		if !a.over(t) {
			t.Fatal("still waiting")
		}
	}, "w1", "w2")
}

func TestAwaitWhatThereIsNot(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1", "w2")
	own := p.task(t, "own")
	p.setStatus(t, mate("w1"), own, task.InProgress)
	wait := func(by tool.Caller, w team.Awaited) error {
		_, err := p.Await(t.Context(), by, w)
		return err
	}
	unknown, ok := errors.AsType[*roster.UnknownMemberError](wait(leader, team.Awaited{Agents: []string{"w1", "w22"}}))
	if !ok || unknown.Name != "w22" {
		t.Errorf("unknown agent: %+v", unknown)
	}
	if err := wait(leader, team.Awaited{Tasks: []string{own, "77"}}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("unknown task: %v", err)
	}
	if _, ok := errors.AsType[*roster.NameError](wait(mate("w1"), team.Awaited{Agents: []string{"team-lead"}})); !ok {
		t.Error("the lead was waited for")
	}
	if err := wait(mate("w1"), team.Awaited{Agents: []string{"w1"}}); !errors.Is(err, team.ErrEndlessWait) {
		t.Errorf("oneself: %v", err)
	}
	if err := wait(mate("w1"), team.Awaited{Tasks: []string{own}}); !errors.Is(err, team.ErrEndlessWait) {
		t.Errorf("one's own task: %v", err)
	}
	solo := tool.Caller{SessionID: "solo"}
	for _, w := range []team.Awaited{{}, {Agents: []string{"w1"}}} {
		if err := wait(solo, w); !errors.Is(err, team.ErrNoTeam) {
			t.Errorf("without a team, %+v: %v", w, err)
		}
	}
}

// A session without a team waits for the tasks of its own list.
func TestAwaitWithoutATeam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParley(t, team.Policy{})
		solo := tool.Caller{SessionID: "solo"}
		if _, err := p.Tasks.Create(t.Context(), solo, task.Task{Subject: "one"}); err != nil {
			t.Fatal(err)
		}
		a := await(t, p.Teams, solo, team.Awaited{Tasks: []string{"1"}})
		if a.over(t) {
			t.Fatal("over too early")
		}
		p.setStatus(t, solo, "1", task.Completed)
		if !a.over(t) {
			t.Fatal("still waiting")
		}
	})
}

// The end of the context is no error: it says how far things are.
func TestAwaitEndsWithItsContext(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		id := p.task(t, "one")
		p.setStatus(t, mate("w1"), id, task.InProgress)
		a := await(t, p.Teams, leader, team.Awaited{Tasks: []string{id}, Agents: []string{"w1"}})
		a.stop()
		want := team.Progress{
			Tasks:  []team.AwaitedTask{{ID: id, Subject: "one", Owner: "w1", Status: task.InProgress}},
			Agents: []team.AwaitedAgent{{Name: "w1", State: team.AgentWorking}},
		}
		if !a.over(t) {
			t.Fatal("still waiting")
		}
		if diff := cmp.Diff(want, a.Progress); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if p, err := p.Await(ended, leader, team.Awaited{Tasks: []string{id}}); err != nil || len(p.Tasks) != 1 {
			t.Errorf("with no time at all: %+v, %v", p, err)
		}
	}, "w1")
}

// Nobody waits for somebody who waits for him, but only if that could not end.
func TestAwaitInACircle(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		agents := func(names ...string) team.Awaited { return team.Awaited{Agents: names} }
		first := await(t, p.Teams, mate("w1"), agents("w2"))
		second := await(t, p.Teams, mate("w2"), agents("w3"))
		refused := await(t, p.Teams, mate("w3"), agents("w1"))
		if !errors.Is(refused.err, team.ErrEndlessWait) {
			t.Fatalf("w3 waits: %v", refused.err)
		}
		both := agents("w1", "w4")
		both.All = true
		if refused = await(t, p.Teams, mate("w3"), both); !errors.Is(refused.err, team.ErrEndlessWait) {
			t.Fatalf("w3 waits for both: %v", refused.err)
		}
		either := await(t, p.Teams, mate("w3"), agents("w1", "w4"))
		if either.over(t) {
			t.Fatal("over too early")
		}
		p.idle(t, "w4", protocol.Available, "")
		if !either.over(t) || first.over(t) || second.over(t) {
			t.Fatal("w4 is idle, and w3 alone may go on")
		}
		first.stop()
		if !first.over(t) {
			t.Fatal("stopped, and still waiting")
		}
		if fine := await(t, p.Teams, mate("w3"), agents("w1")); fine.over(t) {
			t.Fatal("over too early")
		}
	}, "w1", "w2", "w3", "w4")
}

// Of an agent in a pane, the roster and its process tell.
func TestAwaitAgentOfAnotherProcess(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		pane := mailbox.Address{Team: "alpha", Agent: "w1"}
		edit := func(change func(*roster.Member)) {
			_, err := p.rosters.Update(t.Context(), "alpha", func(c *roster.Roster) error {
				change(c.Find("w1"))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		edit(func(m *roster.Member) { m.BackendType, m.PaneID = "tmux", "%1" })
		a := await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1"}})
		if a.over(t) {
			t.Fatal("it has not begun, and counts as idle")
		}
		own := p.process()
		seat, err := own.Join(t.Context(), mate("w1"))
		if err != nil {
			t.Fatal(err)
		}
		edit(func(m *roster.Member) { m.IsActive = new(true) })
		time.Sleep(2 * time.Second) // synthetic time
		if a.over(t) {
			t.Fatal("it is active, and counts as idle")
		}
		edit(func(m *roster.Member) { m.IsActive = new(false) })
		if err := seat.NotifyIdle(t.Context(), protocol.IdleFailed, "API down"); err != nil {
			t.Fatal(err)
		}
		want := []team.AwaitedAgent{{Name: "w1", State: team.AgentIdle, Done: true, Reason: protocol.IdleFailed, Failure: "API down"}}
		if !a.over(t) {
			t.Fatal("still waiting")
		}
		if diff := cmp.Diff(want, a.Agents); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		edit(func(m *roster.Member) { m.IsActive = new(true) })
		a = await(t, p.Teams, leader, team.Awaited{Agents: []string{"w1"}})
		p.places.set(pane, false)   // killed
		time.Sleep(2 * time.Second) // synthetic time
		if !a.over(t) || a.Agents[0].State != team.AgentGone {
			t.Errorf("progress %+v", a.Progress)
		}
	}, "w1")
}

// Of an agent inside the lead's process, others know what it told the lead.
func TestAwaitAgentOfTheLeadsProcess(t *testing.T) {
	within(t, func(t *testing.T, p *parley) {
		own := p.process()
		if _, err := own.Join(t.Context(), mate("w2")); err != nil {
			t.Fatal(err)
		}
		a := await(t, own, mate("w2"), team.Awaited{Agents: []string{"w1"}})
		if a.over(t) {
			t.Fatal("over too early")
		}
		p.idle(t, "w1", protocol.Available, "")
		if !a.over(t) || a.Agents[0].State != team.AgentIdle {
			t.Fatalf("progress %+v", a.Progress)
		}
		time.Sleep(time.Second) // synthetic time
		p.send(t, mailbox.LeadName, "w1", "go on")
		a = await(t, own, mate("w2"), team.Awaited{Agents: []string{"w1"}})
		take(t, p.inbox(t, mate("w1")))
		time.Sleep(2 * time.Second) // synthetic time
		if a.over(t) {
			t.Fatal("it has work, and counts as idle")
		}
		p.seat(t, "w1").Working()
		p.idle(t, "w1", protocol.Available, "")
		if !a.over(t) {
			t.Fatal("still waiting")
		}
	}, "w1", "w2")
}

// Everything that a wait rests on may fail.
func TestAwaitWithBrokenStores(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1")
	p.mails.failRead = errors.New("disk on fire")
	if _, err := p.Await(t.Context(), leader, team.Awaited{}); !errors.Is(err, p.mails.failRead) {
		t.Errorf("error %v", err)
	}
}
