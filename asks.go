package cadre

import (
	"context"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// follow does what events ask of the runtime. It returns when the stream of events
// has ended.
func (r *Runtime) follow(ctx context.Context, events func(yield func(event.Event) bool)) {
	for ev := range events {
		switch body := ev.Body.(type) {
		case event.Answered:
			r.withdraw(ctx, ev.Agent, body.ID)
		case event.ToolEnded:
			if body.Writes {
				r.progress(ev.Agent)
			}
		}
	}
}

// progress notes that a teammate does something beside writing mail.
func (r *Runtime) progress(agent event.Agent) {
	s, ok := r.tree.Sessions.Find(agent.ID)
	if !ok {
		return
	}
	if seat, ok := r.teams.Seat(s.Caller()); ok {
		seat.Progress()
	}
}

// withdraw tells the lead that a question of a teammate needs its answer no more.
// One that runs in the lead's process may have sent it from a process of its own,
// which was killed.
func (r *Runtime) withdraw(ctx context.Context, agent event.Agent, id string) {
	seat := r.seat
	if s, ok := r.tree.Sessions.Find(agent.ID); ok && seat == nil {
		seat, _ = r.teams.Seat(s.Caller())
	}
	if seat == nil || seat.Lead {
		return
	}
	if err := seat.WithdrawPermission(ctx, id); err != nil {
		r.warn(fmt.Errorf("withdraw question %s: %w", id, err))
	}
}

// relayAsk puts a question of a teammate with a process of its own before whoever
// may answer it ([team.Relay]): the rules of this session, then the person. Where
// nobody can be asked the answer is no, as for every agent.
func (r *Runtime) relayAsk(ctx context.Context, from roster.Member, a ask.Ask, answer func(context.Context, ask.Answer) error) error {
	agent := r.leadAgent()
	agent.Name, agent.Color = from.Name, from.Color
	d := r.ruleOn(ctx, from, a)
	switch {
	case d.Behavior == permission.Allow:
		return answer(ctx, ask.Answer{Allow: true, By: "rule"})
	case d.Behavior == permission.Deny && d.Rule != "":
		return answer(ctx, ask.Answer{Message: d.Reason, By: "rule"})
	case !r.tree.Questions.Attended():
		r.tree.Stream.Publish(agent, event.ToolDenied{Call: a.ToolUseID, Tool: a.Tool, Input: a.Input, Reason: d.Reason, Remedy: d.Remedy})
		return answer(ctx, ask.Answer{By: "rule", Message: strings.TrimSpace(d.Reason + " " + nobodyAtTheLead)})
	}
	r.tree.Questions.Relay(ctx, r.relayed(ctx, agent, from, a), func(ctx context.Context, given ask.Answer) error {
		if err := answer(ctx, given); err != nil {
			return err
		}
		updates, err := r.approvals.AcceptForTeam(ctx, given)
		if err != nil {
			r.warn(err)
		}
		r.tree.Grant(updates)
		return nil
	})
	return nil
}

// ruleOn is what the rules of this session say of a teammate's call. What they
// neither allow nor deny is for a person, and so is what they cannot judge: the
// zero Decision.
func (r *Runtime) ruleOn(ctx context.Context, from roster.Member, a ask.Ask) permission.Decision {
	if a.Kind != ask.Permission {
		return permission.Decision{}
	}
	caller := tool.Caller{SessionID: r.info.SessionID, AgentName: from.Name, Cwd: from.Cwd}
	p := part{caller: caller, ref: r.lead.Ref()}
	t, ok := r.toolSet(p).Lookup(a.Tool)
	if !ok {
		return permission.Decision{}
	}
	spec := t.Spec()
	input, err := spec.Schema.Normalize(spec.Name, a.Input)
	if err != nil {
		return permission.Decision{}
	}
	call := tool.Call{ID: a.ToolUseID, Name: spec.Name, Input: input}
	return permission.Decide(r.policyFor(p).With(r.tree.Granted()), permission.Call{
		Spec: spec, Input: input, Access: t.Access(tool.WithCaller(ctx, caller), call),
	})
}

// settledAsk takes a relayed question away that was answered where it was asked, or
// before this process came.
func (r *Runtime) settledAsk(ctx context.Context, id string) {
	r.tree.Questions.Settle(ctx, id, ask.Answer{By: "elsewhere"})
}

// answeredAsk hands the lead's answer to the session of this process that asked.
func (r *Runtime) answeredAsk(ctx context.Context, _ mailbox.Address, askID string, answer ask.Answer) error {
	return r.tree.Questions.Answer(ctx, askID, answer)
}
