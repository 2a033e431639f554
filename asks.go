package cadre

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// follow does what events ask of the runtime. Answers from other processes are
// looked for from the first question on: a run in which nobody asks does not pay
// for a watch. It returns when the stream of events has ended.
func (r *Runtime) follow(ctx context.Context, events func(yield func(event.Event) bool)) {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watch := sync.OnceFunc(func() { watching.Go(func() { r.watchDesk(ctx) }) })
	for ev := range events {
		switch body := ev.Body.(type) {
		case event.Asked:
			watch()
		case event.Answered:
			r.withdraw(ctx, ev.Agent, body.ID)
			r.clearRelayed(ctx, body.ID)
		case event.ToolEnded:
			if body.Writes {
				r.progress(ev.Agent)
			}
		}
	}
}

// progress notes that a teammate does something beside writing mail.
func (r *Runtime) progress(agent event.Agent) {
	caller := r.leadCaller()
	if m, ok := r.members.find(agent.ID); ok {
		caller = m.caller
	}
	if seat, ok := r.teams.Seat(caller); ok {
		seat.Progress()
	}
}

// watchDesk hands answers that were left on the desk to the sessions that wait
// for them, and ends relayed ones at their deadline.
func (r *Runtime) watchDesk(ctx context.Context) {
	left, unwatch := r.stores.desk.Watch()
	defer unwatch()
	over := time.NewTimer(time.Hour)
	defer over.Stop()
	for {
		for _, a := range r.tree.Pending() {
			if err := r.takeAnswer(ctx, a); err != nil && ctx.Err() == nil {
				r.warn(err)
			}
		}
		over.Stop()
		if next := r.expireRelayed(ctx); !next.IsZero() {
			over.Reset(time.Until(next))
		}
		select {
		case <-left:
		case <-r.relays.changed:
		case <-over.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runtime) takeAnswer(ctx context.Context, a ask.Ask) error {
	answer, ok, err := r.stores.desk.Left(ctx, a)
	if err != nil || !ok {
		return err
	}
	err = r.tree.Answer(ctx, a.ID, answer)
	if errors.Is(err, ask.ErrUnknown) || errors.Is(err, ask.ErrAnswered) {
		return nil // somebody was faster
	}
	return err
}

// clearDesk takes away the questions of a killed process of this session that
// nobody waits for any more: those of its sub-agents, which do not come back.
func (r *Runtime) clearDesk(ctx context.Context) {
	open, err := r.stores.desk.Open(ctx)
	for _, a := range open { // other ids are those of relayed ones
		isOurs := a.SessionID == r.info.SessionID && strings.HasPrefix(a.ID, session.AskPrefix)
		if isOurs && !r.isPending(a.ID) {
			err = errors.Join(err, r.stores.desk.Clear(ctx, a.ID))
		}
	}
	if err != nil {
		r.warn(fmt.Errorf("take old questions from the desk: %w", err))
	}
}

// withdraw tells the lead that a question of a teammate needs its answer no more.
// One that runs in the lead's process may have sent it from a process of its own,
// which was killed.
func (r *Runtime) withdraw(ctx context.Context, agent event.Agent, id string) {
	seat := r.seat
	if m, ok := r.members.find(agent.ID); ok && seat == nil {
		seat, _ = r.teams.Seat(m.caller)
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
func (r *Runtime) relayAsk(ctx context.Context, from team.Member, a ask.Ask, answer func(context.Context, ask.Answer) error) error {
	agent := r.leadAgent()
	agent.Name, agent.Color = from.Name, from.Color
	d := r.ruleOn(ctx, from, a)
	switch {
	case d.Behavior == permission.Allow:
		return answer(ctx, ask.Answer{Allow: true, By: "rule"})
	case d.Behavior == permission.Deny && d.Rule != "":
		return answer(ctx, ask.Answer{Message: d.Reason, By: "rule"})
	case !r.tree.Attended():
		r.tree.Stream.Publish(agent, event.ToolDenied{Call: a.ToolUseID, Tool: a.Tool, Input: a.Input, Reason: d.Reason, Remedy: d.Remedy})
		return answer(ctx, ask.Answer{By: "rule", Message: strings.TrimSpace(d.Reason + " " + nobodyAtTheLead)})
	}
	r.tree.Relay(agent, r.layRelayed(ctx, from, a), func(ctx context.Context, given ask.Answer) error {
		if err := answer(ctx, given); err != nil {
			return err
		}
		r.acceptRelayed(ctx, given)
		return nil
	})
	return nil
}

// ruleOn is what the rules of this session say of a teammate's call. What they
// neither allow nor deny is for a person, and so is what they cannot judge: the
// zero Decision.
func (r *Runtime) ruleOn(ctx context.Context, from team.Member, a ask.Ask) permission.Decision {
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
	if r.tree.Settle(id, ask.Answer{By: "elsewhere"}) {
		return
	}
	if err := r.stores.desk.Clear(ctx, id); err != nil {
		r.warn(fmt.Errorf("take question %s from the desk: %w", id, err))
	}
}

// answeredAsk hands the lead's answer to the session of this process that asked.
func (r *Runtime) answeredAsk(ctx context.Context, _ mailbox.Address, askID string, answer ask.Answer) error {
	return r.tree.Answer(ctx, askID, answer)
}
