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

// pendingAsk is a question on its way to a person.
type pendingAsk struct {
	ask  ask.Ask
	call tool.Call // by the tool's own name, its input as the tool expects it
	// reply is where the call waits; nil when it was lost with its process.
	reply chan agent.Verdict
}

// fixed reports whether the person is shown something else than the input, which
// an answer therefore cannot change.
func (p *pendingAsk) fixed() bool {
	return p.ask.Tool != p.call.Name || !bytes.Equal(compact(p.ask.Input), compact(p.call.Input))
}

// What models are told.
const (
	interruptedAsk = "The turn was interrupted before this call was permitted. It did not run."
	changedWrongly = "The input was changed when it was approved, and is now wrong: "
	nobodyAnswered = "Nobody answered the question within its time, so the call did not run. Go on without it, or say what you would need."
	nobodyToAsk    = "Nobody can be asked in this run, so the answer is no. Find a way that needs no permission, or say in your answer what you would need."
	refused        = "The person said no to this call. It did not run. Do not try the same by another way; ask what they want instead, or go on without it."
	planRefused    = "The plan was not approved. Ask what should change, or revise it, and present it again."
)

// ask stores the question, remembers who waits, and lets people see it.
func (o *owner) ask(life context.Context, req permitRequest, d permission.Decision) {
	a := o.question(req)
	a.Reason, a.Suggestions = d.Reason, d.Suggestions
	if err := o.cfg.Asks.Put(context.WithoutCancel(life), a); err != nil {
		req.reply <- agent.Verdict{Reason: "The question could not be kept, so nobody was asked: " + err.Error()}
		return
	}
	call := req.call
	call.Name = req.spec.Name
	o.show(life, &pendingAsk{a, call, req.reply})
}

// AskPrefix begins the ids of the questions of sessions.
const AskPrefix = "ask-"

// question words what a person is asked about a call.
func (o *owner) question(req permitRequest) ask.Ask {
	a := ask.Ask{
		ID: AskPrefix + ids.Hex(8), Kind: ask.Permission, SessionID: o.ref.Session,
		AgentID: o.ref.Agent, AgentName: o.agent.Name, Team: o.cfg.Caller.Team,
		Tool: req.spec.Name, ToolUseID: req.call.ID, Input: req.call.Input,
		Question: fmt.Sprintf("May %s run?", req.spec.Name), Asked: time.Now(),
	}
	if req.access.Detail != nil {
		a.Input = req.access.Detail
		if as := req.access.As; as != "" {
			a.Tool, a.Question = as, fmt.Sprintf("May %s run for %s?", as, req.spec.Name)
		}
	}
	switch {
	case req.access.Plan:
		a.Kind, a.Question = ask.Plan, "Is this plan good?"
	case req.access.Ask:
		a.Kind, a.Question = ask.Choice, "The agent has a question."
	}
	if o.cfg.AskDeadline > 0 {
		a.Deadline = a.Asked.Add(o.cfg.AskDeadline)
	}
	a.Digest = ask.DigestOf(a.Tool, a.Input)
	return a
}

// show lets everybody who may answer see a question that is kept.
func (o *owner) show(life context.Context, p *pendingAsk) {
	id := p.ask.ID
	o.asks[id] = p
	o.tree.wait(o.agent, p.ask, func(ctx context.Context, answer ask.Answer) error {
		return o.answer(ctx, id, answer)
	})
	if o.cfg.Desk != nil {
		if err := o.cfg.Desk.Lay(context.WithoutCancel(life), p.ask); err != nil {
			o.warn(fmt.Errorf("lay question %s on the desk: %w", id, err))
		}
	}
	o.publish(event.Asked{Ask: p.ask})
	asked := p.ask // what is sent must not change with the answer
	for _, r := range o.tree.elsewhere() {
		o.pumps.Go(func() {
			if err := r.send(life, asked); err != nil {
				_ = o.put(life, unsent{id, err}) // at the end of the session nobody needs to know
			}
		})
	}
	o.armDeadline()
}

// unsent says that a question could not be sent to where its answer would come
// from.
type unsent struct {
	id  string
	err error
}

// endUnsent refuses what nobody else can answer: the call would wait for ever.
func (o *owner) endUnsent(life context.Context, u unsent) {
	p := o.asks[u.id]
	if p == nil {
		return
	}
	o.warn(fmt.Errorf("send question %s to who may answer it: %w", u.id, u.err))
	if p.reply == nil || o.tree.attendedHere() {
		return
	}
	o.endAsk(life, p, ask.Answer{
		By: "relay", Message: "The question could not be sent to who may answer it, so the call did not run: " + u.err.Error(),
	})
}

// settleAsk keeps an answer and lets the call go on. The first answer counts.
func (o *owner) settleAsk(life context.Context, id string, answer ask.Answer) error {
	p := o.asks[id]
	switch {
	case p == nil:
		return ask.ErrUnknown
	case p.reply == nil:
		return o.settleReopened(life, p, answer)
	}
	o.accept(life, &answer)
	if err := o.cfg.Asks.Resolve(context.WithoutCancel(life), id, answer); err != nil {
		return fmt.Errorf("keep the answer to %s: %w", id, err)
	}
	o.conclude(life, p, answer)
	p.reply <- p.verdict(answer)
	return nil
}

// conclude takes away a question whose answer is kept.
func (o *owner) conclude(life context.Context, p *pendingAsk, answer ask.Answer) {
	delete(o.asks, p.ask.ID)
	o.tree.settled(p.ask.ID)
	o.clearDesk(life, p.ask.ID)
	if answer.Allow {
		o.grant(answer.Updates)
	}
	o.publish(event.Answered{ID: p.ask.ID, Answer: answer})
	o.armDeadline()
}

func (o *owner) clearDesk(life context.Context, id string) {
	if o.cfg.Desk == nil {
		return
	}
	if err := o.cfg.Desk.Clear(context.WithoutCancel(life), id); err != nil {
		o.warn(fmt.Errorf("clear question %s from the desk: %w", id, err))
	}
}

// accept has the rule changes of an answer written to where they belong. That comes
// before the answer is kept: after a kill in between, the call needs no answer any
// more.
func (o *owner) accept(life context.Context, answer *ask.Answer) {
	if !answer.Allow || len(answer.Updates) == 0 || o.cfg.Accept == nil {
		return
	}
	updates, err := o.cfg.Accept(context.WithoutCancel(life), *answer)
	if err != nil {
		o.warn(err)
	}
	answer.Updates = updates
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

// verdict is what an answer means for the call.
func (p *pendingAsk) verdict(a ask.Answer) agent.Verdict {
	if !a.Allow {
		return agent.Verdict{Reason: p.refusal(a), EndTurn: a.Interrupt}
	}
	v := agent.Verdict{Allow: true, Input: a.UpdatedInput}
	if p.fixed() {
		v.Input = nil
	}
	if a.Message != "" {
		v.Note = fmt.Sprintf("Your call of %s was approved with this note: %s", p.call.Name, a.Message)
	}
	return v
}

func (p *pendingAsk) refusal(a ask.Answer) string {
	switch {
	case a.Message != "":
		return a.Message
	case p.ask.Kind == ask.Plan:
		return planRefused
	}
	return refused
}

// dropAsks ends the questions of a turn that has ended. Those that a killed
// process left open belong to no turn, and stay.
func (o *owner) dropAsks(life context.Context, why string) {
	for _, p := range o.asks {
		if p.reply == nil {
			continue
		}
		o.endAsk(life, p, ask.Answer{Message: why, By: "interrupt"})
	}
}

// endAsk answers a question that no person answers any more. When that cannot be
// kept, the call is told all the same; the next opening settles what is kept.
func (o *owner) endAsk(life context.Context, p *pendingAsk, answer ask.Answer) {
	err := o.settleAsk(life, p.ask.ID, answer)
	if err == nil {
		return
	}
	o.fail(err)
	delete(o.asks, p.ask.ID)
	o.tree.settled(p.ask.ID)
	if p.reply != nil {
		p.reply <- p.verdict(answer)
	}
}

// expireAsks ends the questions whose deadline has passed with a denial.
func (o *owner) expireAsks(life context.Context) {
	now := time.Now()
	for _, p := range o.asks {
		if expired(p.ask, now) {
			o.endAsk(life, p, expiry)
		}
	}
	o.armDeadline()
}

var expiry = ask.Answer{By: "deadline", Message: nobodyAnswered}

func expired(a ask.Ask, now time.Time) bool {
	return !a.Deadline.IsZero() && !a.Deadline.After(now)
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
