package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// A question survives the process that asked it. When the session is opened
// again, the call that waited gets the result that it did not run, and the
// question stays open. Its answer is stored in the ask itself, and then shown to the
// model as input; an approval lets exactly that call pass once. Only then is the
// ask resolved, so that a kill at any point loses neither question nor answer,
// and nothing is shown twice.

// stillOpen is the result of a call whose question is still open. That it stands
// in the transcript says that the model was promised an answer.
const stillOpen = "This agent was restarted while the question whether this call may run was waiting for an answer. The call did not run. The question is still open, and you will be told the answer; go on with something else meanwhile, or end your turn."

// reopening sorts the asks that are pending when a session is opened.
type reopening struct {
	results  map[string]string // what becomes of calls without a result, by tool_use id; for the others it is unknown
	open     []*question       // questions that go on
	answered []*question       // whose answer the model has yet to be shown, or to act on
	over     []overAsk
	shown    map[string]bool // ids of asks whose answer stands in the transcript
}

// overAsk is a question that nothing waits for any more.
type overAsk struct {
	id     string
	answer ask.Answer
	tool   string // what an answer that came meanwhile was about; "": nobody has answered
}

// sortAsks decides what becomes of the pending asks, without changing anything.
func (o *owner) sortAsks(ctx context.Context, entries []transcript.Entry) (reopening, error) {
	r := reopening{results: make(map[string]string), shown: make(map[string]bool)}
	asks, err := o.cfg.Asks.Pending(ctx)
	if err != nil || len(asks) == 0 {
		return r, err
	}
	calls, promised := waitingCalls(entries)
	dangling := make(map[string]bool)
	for _, call := range o.dangling {
		dangling[call.ID] = true
	}
	for _, e := range entries {
		for _, id := range e.Receipts {
			r.shown[id] = true
		}
	}
	for _, a := range asks {
		p := &question{ask: a, call: o.asked(calls[a.ToolUseID])}
		switch {
		case a.Answer != nil:
			r.answered = append(r.answered, p)
		case dangling[a.ToolUseID]:
			r.reopen(p, o.answerMeanwhile(ctx, a))
		case promised[a.ToolUseID]:
			p.ask.Answer = o.answerMeanwhile(ctx, a)
			r.open = append(r.open, p)
		default:
			r.over = append(r.over, overAsk{a.ID, ask.Answer{By: "interrupt", Message: "nothing waits for the answer any more"}, ""})
		}
	}
	return r, nil
}

// reopen sorts a question whose call has no result yet. A denial that came
// meanwhile is that result.
func (r *reopening) reopen(p *question, meanwhile *ask.Answer) {
	if meanwhile != nil && !meanwhile.Allow {
		r.results[p.call.ID] = p.refusal(*meanwhile)
		r.over = append(r.over, overAsk{p.ask.ID, *meanwhile, p.ask.Tool})
		return
	}
	r.results[p.call.ID] = stillOpen
	p.ask.Answer = meanwhile
	r.open = append(r.open, p)
}

// answerMeanwhile is the answer that a question got while no process was there:
// one that was left on the desk, or that of its deadline. nil: none.
func (o *owner) answerMeanwhile(ctx context.Context, a ask.Ask) *ask.Answer {
	answer, ok, err := o.tree.Questions.left(ctx, a)
	if err != nil {
		o.warn(err)
	}
	if ok {
		return &answer
	}
	if expired(a, time.Now()) {
		answer := expiry
		return &answer
	}
	return nil
}

// waitingCalls finds the calls in a transcript, and which of them were promised
// an answer.
func waitingCalls(entries []transcript.Entry) (calls map[string]transcript.Block, promised map[string]bool) {
	calls, promised = make(map[string]transcript.Block), make(map[string]bool)
	for _, e := range entries {
		for _, b := range e.Message.Content {
			switch {
			case b.Type == transcript.ToolUse:
				calls[b.ID] = b
			case b.Type == transcript.ToolResult && b.Text == stillOpen:
				promised[b.ToolUseID] = true
			}
		}
	}
	return calls, promised
}

// asked is a stored call as it was when it was asked about.
func (o *owner) asked(use transcript.Block) tool.Call {
	call := tool.Call{ID: use.ID, Name: use.Name, Input: use.Input}
	t, ok := o.cfg.Tools.Tools().Lookup(use.Name)
	if !ok {
		return call
	}
	call.Name = t.Spec().Name
	if input, err := t.Spec().Schema.Normalize(call.Name, call.Input); err == nil {
		call.Input = input
	}
	return call
}

// reopenAsks carries out what sortAsks decided, once the results are stored.
func (o *owner) reopenAsks(life context.Context, r reopening) {
	for _, gone := range r.over {
		if err := o.cfg.Asks.Resolve(context.WithoutCancel(life), gone.id, gone.answer); err != nil {
			o.warn(fmt.Errorf("close question %s: %w", gone.id, err))
			continue
		}
		o.clearDesk(gone.id)
		if gone.tool != "" {
			o.reportMeanwhile(gone.tool, gone.answer)
		}
	}
	for _, p := range r.open {
		answer := p.ask.Answer
		p.ask.Answer = nil
		o.show(life, p)
		if answer == nil {
			continue
		}
		o.handleAnswer(life, answering{id: p.ask.ID, answer: *answer})
	}
	for _, p := range r.answered {
		o.clearDesk(p.ask.ID)
		if !r.shown[p.ask.ID] {
			o.reportMeanwhile(p.ask.Tool, *p.ask.Answer)
		}
		o.bring(life, p, r.shown[p.ask.ID])
	}
}

// reportMeanwhile shows people the answer to a question that was asked by an earlier
// process, and is not asked again.
func (o *owner) reportMeanwhile(tool string, answer ask.Answer) {
	o.publish(event.Noticed{Level: "info", Text: fmt.Sprintf("the question about %s, asked before the restart, %s", tool, answer.Outcome())})
}

// keepLateAnswer stores the answer to a question whose call is gone.
func (o *owner) keepLateAnswer(life context.Context, p *question, answer ask.Answer) error {
	answered := p.ask
	answered.Answer = &answer
	if err := o.cfg.Asks.Put(context.WithoutCancel(life), answered); err != nil {
		return fmt.Errorf("keep the answer to %s: %w", p.ask.ID, err)
	}
	o.conclude(p, answer)
	p.ask = answered
	o.bring(life, p, false)
	return nil
}

// bring makes an answer count: an approval lets the call pass when it is made
// again, and the model is shown the answer, unless it was already.
func (o *owner) bring(life context.Context, p *question, shown bool) {
	text, call, allowed := o.answerText(p)
	if allowed {
		o.approvals[callKey(call, p.shown())] = p.ask.ID
	}
	done := func(life context.Context) {
		if !allowed {
			o.resolve(life, p.ask.ID, *p.ask.Answer)
		}
	}
	if shown {
		done(life)
		return
	}
	in := Text(LeadMail, prompt.Reminder(text))
	in.Title = fmt.Sprintf("the answer about %s", p.call.Name)
	in.Receipts = []string{p.ask.ID}
	in.stored = done
	if allowed {
		in.Content = append(in.Content, transcript.TextBlock(string(compact(call.Input))))
	}
	o.queueInput(in)
}

// answerText words an answer for the model. allowed is whether the call may be
// made now, call the one that may.
func (o *owner) answerText(p *question) (text string, call tool.Call, allowed bool) {
	answer, call := *p.ask.Answer, p.call
	text = fmt.Sprintf("The question about your call of %s, which was open when this agent was restarted, has its answer: ", call.Name)
	if !answer.Allow {
		return text + "no. The call did not run. " + p.refusal(answer), call, false
	}
	if answer.UpdatedInput != nil && !p.fixed() {
		call.Input = answer.UpdatedInput
		if t, ok := o.cfg.Tools.Tools().Lookup(call.Name); ok {
			input, err := t.Spec().Schema.Normalize(call.Name, call.Input)
			if err != nil {
				return text + "yes, but the call did not run. " + changedWrongly + err.Error(), call, false
			}
			call.Input = input
		}
	}
	text += "yes. The call has not run yet. If it is still needed, make it again with exactly the input that follows; the approval is for that one call."
	if answer.Message != "" {
		text += " It came with this note: " + answer.Message
	}
	return text, call, true
}

// useApproval reports whether a call is one that was approved after its process
// was gone. It is good for one time.
func (o *owner) useApproval(life context.Context, req permitRequest) bool {
	if len(o.approvals) == 0 {
		return false
	}
	call := req.call
	call.Name = req.spec.Name
	key := callKey(call, req.access.Detail)
	id, ok := o.approvals[key]
	if !ok {
		return false
	}
	delete(o.approvals, key)
	return o.resolve(life, id, ask.Answer{Allow: true, By: "person"})
}

// resolve ends an ask of which nothing is left to do.
func (o *owner) resolve(life context.Context, id string, answer ask.Answer) bool {
	err := o.cfg.Asks.Resolve(context.WithoutCancel(life), id, answer)
	if err != nil && !errors.Is(err, ask.ErrAnswered) {
		o.warn(fmt.Errorf("close question %s: %w", id, err))
	}
	return err == nil
}

// shown is what the person saw in place of the input; nil when that was it.
func (q *question) shown() json.RawMessage {
	if q.fixed() {
		return q.ask.Input
	}
	return nil
}

// callKey names exactly this call, whatever the spaces in its JSON, and what is
// shown of it to people.
func callKey(call tool.Call, shown json.RawMessage) string {
	return ask.DigestOf(call.Name, slices.Concat(compact(call.Input), []byte{0}, compact(shown)))
}

func compact(input json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, input) != nil {
		return input
	}
	return out.Bytes()
}

// abandonAsks ends what a killed process left open, when the agent leaves for
// good. At any other end those questions stay for the next opening.
func (o *owner) abandonAsks(life context.Context) {
	for _, q := range o.tree.Questions.of(o.Session) {
		id := q.ask.ID
		if errors.Is(o.closing, ErrLeave) && o.resolve(life, id, ask.Answer{By: "interrupt", Message: "the agent has left"}) {
			o.clearDesk(id)
		}
		o.tree.Questions.remove(id)
	}
}
