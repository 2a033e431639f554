package cadre_test

import (
	"context"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// stop asks, from outside, that a teammate ends: what `cadre team stop` does.
func (w *teamWorld) stop(t *testing.T, name string, force bool) {
	t.Helper()
	if _, err := w.state.Teams().RequestStop(t.Context(), alpha, name, "the person says so", force); err != nil {
		t.Fatal(err)
	}
}

// isWorking waits until a teammate has been given what was said to it last.
func (w *teamWorld) isWorking(t *testing.T, name string) {
	t.Helper()
	defer w.tellShown(t, name)
	eventually(t, name+" has taken its mail", func() bool { return w.unread(t, name) == 0 })
}

// settled waits until nothing is at work any more.
func (w *teamWorld) settled(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Settled(ctx); err != nil {
		config, _ := w.state.Rosters().Load(t.Context(), alpha)
		for _, m := range config.Members {
			if m.IsActive != nil {
				t.Logf("%s active: %v", m.Name, *m.IsActive)
			}
			t.Logf("%s unread: %d", m.Name, w.unread(t, m.Name))
		}
		t.Fatal(err)
	}
}

// Whatever an agent is stuck in, a person can end it; its tasks are nobody's again,
// and the lead is told.
func TestAStuckTeammateIsStopped(t *testing.T) {
	for name, stuck := range map[string]order{
		"model is down":   {Fault: "down"},
		"model is silent": {Fault: "silent"},
		"context is full": {Fault: "full"},
		"command runs on": {Calls: []scripted.Call{scripted.Use("Bash", fields{"command": "echo $$ > begun; while :; do sleep 0.05; done"})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overBackends(t, func(t *testing.T, w *teamWorld) {
				w.form(t, "ann")
				w.idles(t, "ann", 1)
				w.leads(t, scripted.Use("TaskCreate", fields{"subject": "Guard", "description": "stay at it"}))
				w.isShown(t, "ann", "Start with task #1")
				w.give(t, "ann", stuck)
				w.isWorking(t, "ann")
				if stuck.Calls != nil {
					w.isThere(t, "begun")
				}
				w.stop(t, "ann", true)
				w.leaves(t, "ann")
				w.isShown(t, mailbox.LeadName, `"type":"teammate_terminated"`, `1 task(s) were unassigned: #1 \"Guard\"`)
				if item := w.task(t, "1"); item.Owner != "" || item.Status != task.Pending {
					t.Errorf("its task is %+v", item)
				}
			})
		})
	}
}

// A request to shut down is agreed to by the runtime when the model can't.
func TestAModelThatIsDownNeedNotAgree(t *testing.T) {
	for _, fault := range []string{"down", "full"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			overBackends(t, func(t *testing.T, w *teamWorld) {
				w.form(t, "ann")
				w.idles(t, "ann", 1)
				w.give(t, "ann", order{Fault: fault})
				failed := w.idles(t, "ann", 2)[1]
				if failed.IdleReason != protocol.IdleFailed || failed.FailureReason == "" {
					t.Errorf("the lead was told %+v", failed)
				}
				w.leads(t, scripted.Use("SendMessage", fields{"type": "shutdown_request", "recipient": "ann"}))
				w.leaves(t, "ann")
				w.isShown(t, mailbox.LeadName, `"type":"teammate_terminated"`, "ann has shut down")
			})
		})
	}
}

// A teammate may refuse to end, and goes on.
func TestAShutdownIsRefused(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann")
		w.give(t, "ann", order{On: `"type":"shutdown_request"`, Calls: []scripted.Call{approving(false, "I am not done.")}})
		w.leads(t, scripted.Use("SendMessage", fields{"type": "shutdown_request", "recipient": "ann", "content": "Enough?"}))
		w.isShown(t, "ann", `"reason":"Enough?"`)
		w.isShown(t, mailbox.LeadName, `"type":"shutdown_rejected"`, `"reason":"I am not done."`)
		contains(t, w.does(t, "ann", writing("team-lead", "Now I am.", "done"))[0], `"success": true`)
		if w.member(t, "ann") == nil {
			t.Error("it left all the same")
		}
	})
}

// at is the address of an agent of the team.
func at(name string) mailbox.Address { return mailbox.Address{Team: alpha, Agent: name} }
