package session

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
)

// permitRequest asks the owner for a permission decision.
type permitRequest struct {
	call     tool.Call
	spec     tool.Spec
	access   tool.Access
	approved bool // a person has approved; only a deny can still stop it
	reply    chan agent.Verdict
}

// pendingAsk is a question on its way to a person, with the call that waits.
type pendingAsk struct {
	ask   ask.Ask
	reply chan agent.Verdict
}

// permitFunc is what the loop calls from the goroutine of each call. It gives
// up with the context, whatever the owner does.
func (o *owner) permitFunc() func(context.Context, tool.Call, tool.Access) agent.Verdict {
	s, tools := o.Session, o.cfg.Tools
	decide := func(ctx context.Context, req permitRequest) agent.Verdict {
		req.reply = make(chan agent.Verdict, 1)
		if err := s.put(ctx, req); err != nil {
			return agent.Verdict{Reason: interruptedAsk}
		}
		select {
		case v := <-req.reply:
			return v
		case <-ctx.Done():
			return agent.Verdict{Reason: interruptedAsk}
		}
	}
	return func(ctx context.Context, call tool.Call, access tool.Access) agent.Verdict {
		t, _ := tools.Lookup(call.Name)
		req := permitRequest{call: call, spec: t.Spec(), access: access}
		v := decide(ctx, req)
		if !v.Allow || v.Input == nil || bytes.Equal(v.Input, call.Input) {
			return v
		}
		return o.permitChanged(ctx, t, req, v, decide)
	}
}

// permitChanged checks input that the person changed while approving: it must
// fit the schema, and an approval never overrides a deny.
func (o *owner) permitChanged(ctx context.Context, t tool.Tool, req permitRequest, v agent.Verdict,
	decide func(context.Context, permitRequest) agent.Verdict) agent.Verdict {
	input, err := req.spec.Schema.Normalize(req.spec.Name, v.Input)
	if err != nil {
		return agent.Verdict{Reason: "The input was changed when it was approved, and is now wrong: " + err.Error()}
	}
	req.call.Input, req.approved = input, true
	req.access = t.Access(ctx, req.call)
	again := decide(ctx, req)
	if again.Allow {
		again.Input = input
	}
	return again
}

const interruptedAsk = "The turn was interrupted before this call was permitted. It did not run."

// permit decides a call, or asks a person.
func (o *owner) permit(life context.Context, req permitRequest) {
	d := permission.Decide(o.cfg.Policy.With(o.tree.granted()), permission.Call{
		Tool: req.spec.Name, Aliases: req.spec.Aliases, ReadOnly: req.spec.ReadOnly,
		Input: req.call.Input, Access: req.access,
	})
	switch {
	case d.Behavior == permission.Allow, req.approved && d.Behavior == permission.Ask:
		req.reply <- agent.Verdict{Allow: true}
	case d.Behavior == permission.Deny:
		o.deny(req, d, d.Reason)
	case o.closing != nil || o.turn == nil:
		req.reply <- agent.Verdict{Reason: interruptedAsk}
	case !o.tree.attended():
		o.deny(req, d, d.Reason+" Nobody can be asked in this run, so the answer is no. Find a way that needs no permission, or say in your answer what you would need.")
	default:
		o.ask(life, req, d)
	}
}

func (o *owner) deny(req permitRequest, d permission.Decision, reason string) {
	o.publish(event.ToolDenied{
		Call: req.call.ID, Tool: req.spec.Name, Input: req.call.Input, Reason: d.Reason, Remedy: d.Remedy,
	})
	req.reply <- agent.Verdict{Reason: reason}
}

// ask stores the question, remembers who waits, and publishes it.
func (o *owner) ask(life context.Context, req permitRequest, d permission.Decision) {
	a := ask.Ask{
		ID: "ask-" + ids.Hex(8), Kind: ask.Permission, SessionID: o.ref.Session,
		AgentID: o.ref.Agent, AgentName: o.agent.Name,
		Tool: req.spec.Name, ToolUseID: req.call.ID, Input: req.call.Input,
		Digest:   ask.DigestOf(req.spec.Name, req.call.Input),
		Question: fmt.Sprintf("May %s run?", req.spec.Name), Reason: d.Reason, Suggestions: d.Suggestions,
		Asked: time.Now(),
	}
	if req.access.Ask {
		a.Kind, a.Question = ask.Choice, "The agent has a question."
	}
	if o.cfg.AskDeadline > 0 {
		a.Deadline = a.Asked.Add(o.cfg.AskDeadline)
	}
	if err := o.cfg.Asks.Put(context.WithoutCancel(life), a); err != nil {
		req.reply <- agent.Verdict{Reason: "The question could not be kept, so nobody was asked: " + err.Error()}
		return
	}
	o.asks[a.ID] = &pendingAsk{a, req.reply}
	o.tree.askedBy(a.ID, o.Session)
	o.publish(event.Asked{Ask: a})
	o.armDeadline()
}

// settleAsk keeps an answer and lets the call go on. The first answer counts.
func (o *owner) settleAsk(life context.Context, id string, answer ask.Answer) error {
	p := o.asks[id]
	if p == nil {
		return ask.ErrUnknown
	}
	if err := o.cfg.Asks.Resolve(context.WithoutCancel(life), id, answer); err != nil {
		return fmt.Errorf("keep the answer to %s: %w", id, err)
	}
	delete(o.asks, id)
	o.tree.settled(id)
	if answer.Allow {
		o.grant(answer.Updates)
	}
	o.publish(event.Answered{ID: id, Answer: answer})
	p.reply <- verdictOf(answer)
	o.armDeadline()
	return nil
}

// grant applies the rule changes that came with an approval: rules and folders
// for the whole tree, so that no other agent asks the same; a mode for this
// session alone.
func (o *owner) grant(updates []ask.Suggestion) {
	var own, shared []ask.Suggestion
	for _, u := range updates {
		if u.Type == "setMode" {
			own = append(own, u)
		} else {
			shared = append(shared, u)
		}
	}
	o.cfg.Policy = o.cfg.Policy.With(own)
	o.tree.grant(shared)
}

func verdictOf(a ask.Answer) agent.Verdict {
	if a.Allow {
		return agent.Verdict{Allow: true, Input: a.UpdatedInput}
	}
	reason := a.Message
	if reason == "" {
		reason = "The person said no to this call. It did not run. Do not try the same by another way; ask what they want instead, or go on without it."
	}
	return agent.Verdict{Reason: reason, EndTurn: a.Interrupt}
}

// dropAsks ends the questions that nobody waits for any more.
func (o *owner) dropAsks(life context.Context, why string) {
	for id := range o.asks {
		if err := o.settleAsk(life, id, ask.Answer{Message: why, By: "interrupt"}); err != nil {
			o.publish(event.Noticed{Level: "error", Text: err.Error()})
			delete(o.asks, id)
			o.tree.settled(id)
		}
	}
}

// expireAsks ends the questions whose deadline has passed with a denial.
func (o *owner) expireAsks(life context.Context) {
	now := time.Now()
	for id, p := range o.asks {
		if p.ask.Deadline.IsZero() || p.ask.Deadline.After(now) {
			continue
		}
		err := o.settleAsk(life, id, ask.Answer{
			By:      "deadline",
			Message: "Nobody answered the question within its time, so the call did not run. Go on without it, or say what you would need.",
		})
		if err != nil {
			o.publish(event.Noticed{Level: "error", Text: err.Error()})
		}
	}
	o.armDeadline()
}

// armDeadline sets the timer to the next deadline.
func (o *owner) armDeadline() {
	var next time.Time
	for _, p := range o.asks {
		if d := p.ask.Deadline; !d.IsZero() && (next.IsZero() || d.Before(next)) {
			next = d
		}
	}
	o.deadline.Stop()
	if !next.IsZero() {
		o.deadline.Reset(max(time.Until(next), 0))
	}
}
