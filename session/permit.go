package session

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
)

// permitFunc is what the loop calls from the goroutine of each call. It gives
// up with the context, whatever the owner does.
func (o *owner) permitFunc() func(context.Context, tool.Tool, tool.Call) agent.Verdict {
	s := o.Session
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
	return func(ctx context.Context, t tool.Tool, call tool.Call) agent.Verdict {
		req := permitRequest{call: call, spec: t.Spec(), access: t.Access(ctx, call)}
		v := decide(ctx, req)
		if !v.Allow || v.Input == nil || bytes.Equal(v.Input, call.Input) {
			return v
		}
		return permitChanged(ctx, t, req, v, decide)
	}
}

// permitChanged checks input that the person changed while approving: it must
// fit the schema, and an approval never overrides a deny.
func permitChanged(ctx context.Context, t tool.Tool, req permitRequest, v agent.Verdict,
	decide func(context.Context, permitRequest) agent.Verdict) agent.Verdict {
	input, err := req.spec.Schema.Normalize(req.spec.Name, v.Input)
	if err != nil {
		return agent.Verdict{Reason: changedWrongly + err.Error()}
	}
	req.call.Input, req.approved = input, true
	req.access = t.Access(ctx, req.call)
	again := decide(ctx, req)
	if again.Allow {
		again.Input, again.Note = input, v.Note
	}
	return again
}

// permit decides a call, or asks a person.
func (o *owner) permit(life context.Context, req permitRequest) {
	d := permission.Decide(o.cfg.Policy.With(o.tree.Granted()), permission.Call{Spec: req.spec, Input: req.call.Input, Access: req.access})
	switch {
	case d.Behavior == permission.Deny:
		o.deny(req, d, d.Reason)
	case o.useApproval(life, req), d.Behavior == permission.Allow, req.approved:
		req.reply <- agent.Verdict{Allow: true}
	case o.closing != nil || o.turn == nil:
		req.reply <- agent.Verdict{Reason: interruptedAsk}
	case !o.tree.Questions.Attended():
		o.deny(req, d, d.Reason+" "+nobodyToAsk)
	default:
		o.ask(life, req, d)
	}
}

func (o *owner) deny(req permitRequest, d permission.Decision, reason string) {
	o.publish(event.ToolDenied{
		Call: req.call.ID, Tool: req.spec.Name, Input: req.call.Input, Reason: d.Reason, Remedy: d.Remedy,
	})
	if a := req.access; a.As != "" && a.Command != "" { // the call does not show what was judged
		reason = fmt.Sprintf("This call would run the command %q, which the rules for %s judge. %s", a.Command, a.As, reason)
	}
	req.reply <- agent.Verdict{Reason: reason}
}

// offered leaves out what the present mode does not allow. It is called by the
// turn before each request; whatever changes the mode has published it by then.
func (o *owner) offered() func(tool.Spec) bool {
	s, policy := o.Session, o.cfg.Policy
	return func(spec tool.Spec) bool {
		policy.Mode = s.state.Load().Mode
		return policy.Offers(spec)
	}
}

// needsAccepting reports whether an answer brings rule changes for [Gate.Accept].
func (o *owner) needsAccepting(answer ask.Answer) bool {
	return o.cfg.Gate != nil && answer.Allow && len(answer.Updates) > 0
}

// accept has the rule changes of an answer written to where they belong, which may
// have to wait for a lock, and hands the result back to the owner. The answer is
// stored after that: a call that is killed in between needs no answer any more.
func (o *owner) accept(life context.Context, a answering) {
	o.accepting++
	s, gate := o.Session, o.cfg.Gate
	o.pumps.Go(func() {
		updates, err := gate.Accept(life, a.answer)
		a.answer.Updates = updates
		if s.put(life, accepted{a, err}) != nil && a.done != nil {
			a.done <- ErrClosed
		}
	})
}

// endAccept stores the answer. When its turn has ended meanwhile, the call has got
// another one, but the person has changed the rules.
func (o *owner) endAccept(life context.Context, a accepted) {
	o.accepting--
	if a.err != nil {
		o.warn(a.err)
	}
	q := o.openQuestion(a.id)
	if q == nil {
		o.grant(a.answer.Updates)
		o.report(a.answering, ask.ErrUnknown)
		return
	}
	q.accepting = false
	o.report(a.answering, o.keepAnswer(life, q, a.answer))
}

// grant applies the rule changes that came with an approval: rules and folders
// for the whole tree, so that no other agent asks the same; a mode for this
// session alone.
func (o *owner) grant(updates []ask.Suggestion) {
	var own, shared []ask.Suggestion
	for _, u := range updates {
		if u.Type == ask.SetMode {
			own = append(own, u)
		} else {
			shared = append(shared, u)
		}
	}
	o.cfg.Policy = o.cfg.Policy.With(own)
	o.tree.Grant(shared)
}
