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
)

// fixed reports whether the person is shown something else than the input, which
// an answer therefore cannot change.
func (q *question) fixed() bool {
	return q.ask.Tool != q.call.Name || !bytes.Equal(compact(q.ask.Input), compact(q.call.Input))
}

// What the model reads as the result.
const (
	interruptedAsk = "The turn was interrupted before this call was permitted. It did not run."
	changedWrongly = "The input was changed when it was approved, and is now wrong: "
	nobodyAnswered = "Nobody answered within the time for it, so the answer is no. Do not ask the same again: go on without it, or end your turn and say what you would need."
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
	o.show(life, &question{ask: a, call: call, reply: req.reply, remedy: d.Remedy})
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
	a.Deadline = o.tree.Questions.deadline(a.Asked)
	a.Digest = ask.DigestOf(a.Tool, a.Input)
	return a
}

// show opens a question that is kept: everybody who may answer sees it.
func (o *owner) show(life context.Context, q *question) {
	id := q.ask.ID
	q.session, q.agent, q.onDesk = o.Session, o.agent, true
	q.answer = func(ctx context.Context, answer ask.Answer) error { return o.answer(ctx, id, answer) }
	asked := q.ask // what is sent must not change with the answer
	o.tree.Questions.add(q)
	o.publish(event.Asked{Ask: asked})
	for _, r := range o.tree.Questions.elsewhere() {
		o.pumps.Go(func() {
			if err := r.send(life, asked); err != nil {
				_ = o.put(life, unsent{id, err}) // at the end of the session nobody needs to know
			}
		})
	}
}

// openQuestion is an open question of this session; nil when there is none.
func (o *owner) openQuestion(id string) *question {
	if q := o.tree.Questions.find(id); q != nil && q.session == o.Session {
		return q
	}
	return nil
}

// endUnsent refuses what nobody else can answer: the call would wait for ever.
func (o *owner) endUnsent(life context.Context, u unsent) {
	q := o.openQuestion(u.id)
	if q == nil {
		return
	}
	o.warn(fmt.Errorf("send question %s to who may answer it: %w", u.id, u.err))
	if q.reply == nil || o.tree.Questions.attendedHere() {
		return
	}
	o.endAsk(life, q, ask.Answer{
		By: "relay", Message: "The question could not be sent to who may answer it, so the call did not run: " + u.err.Error(),
	})
}

// handleAnswer answers a question. The first answer counts. done, which may be nil,
// is told when it is stored; that may come later.
func (o *owner) handleAnswer(life context.Context, a answering) {
	q := o.openQuestion(a.id)
	switch {
	case q == nil:
		o.report(a, ask.ErrUnknown)
	case q.accepting:
		o.report(a, ask.ErrAnswered)
	case a.answer.By == ask.ByDeadline:
		o.endAsk(life, q, a.answer)
		o.publish(event.ToolDenied{
			Call: q.call.ID, Tool: q.ask.Tool, Input: q.ask.Input, Reason: "Nobody answered in time.", Remedy: q.remedy,
		})
		o.report(a, nil)
	case o.needsAccepting(a.answer):
		q.accepting = true
		o.accept(life, a)
	default:
		o.report(a, o.keepAnswer(life, q, a.answer))
	}
}

// report says what became of an answer.
func (o *owner) report(a answering, err error) {
	switch {
	case a.done != nil:
		a.done <- err
	case err != nil:
		o.warn(err)
	}
}

// keepAnswer stores an answer and lets the call go on.
func (o *owner) keepAnswer(life context.Context, q *question, answer ask.Answer) error {
	if q.reply == nil {
		return o.keepLateAnswer(life, q, answer)
	}
	if err := o.cfg.Asks.Resolve(context.WithoutCancel(life), q.ask.ID, answer); err != nil {
		return fmt.Errorf("keep the answer to %s: %w", q.ask.ID, err)
	}
	o.conclude(q, answer)
	q.reply <- q.verdict(answer)
	return nil
}

// conclude closes a question whose answer is kept.
func (o *owner) conclude(q *question, answer ask.Answer) {
	o.tree.Questions.remove(q.ask.ID)
	o.clearDesk(q.ask.ID)
	if answer.Allow {
		o.grant(answer.Updates)
	}
	o.publish(event.Answered{ID: q.ask.ID, Answer: answer})
}

func (o *owner) clearDesk(id string) { o.tree.Questions.clear(o.agent, id) }

// verdict is what an answer means for the call.
func (q *question) verdict(a ask.Answer) agent.Verdict {
	if !a.Allow {
		return agent.Verdict{Reason: q.refusal(a), EndTurn: a.Interrupt}
	}
	v := agent.Verdict{Allow: true, Input: a.UpdatedInput}
	if q.fixed() {
		v.Input = nil
	}
	if a.Message != "" {
		v.Note = fmt.Sprintf("Your call of %s was approved with this note: %s", q.call.Name, a.Message)
	}
	return v
}

func (q *question) refusal(a ask.Answer) string {
	switch {
	case a.Message != "":
		return a.Message
	case q.ask.Kind == ask.Plan:
		return planRefused
	}
	return refused
}

// dropAsks ends the questions of a turn that has ended. Those that a killed
// process left open belong to no turn, and stay.
func (o *owner) dropAsks(life context.Context, why string) {
	for _, q := range o.tree.Questions.of(o.Session) {
		if q.reply != nil {
			o.endAsk(life, q, ask.Answer{Message: why, By: "interrupt"})
		}
	}
}

// endAsk answers a question that no person answers any more. When that cannot be
// stored, the call gets the answer all the same; the next opening ends what is
// stored as open.
func (o *owner) endAsk(life context.Context, q *question, answer ask.Answer) {
	err := o.keepAnswer(life, q, answer)
	if err == nil {
		return
	}
	o.fail(err)
	o.tree.Questions.remove(q.ask.ID)
	if q.reply != nil {
		q.reply <- q.verdict(answer)
	}
}
