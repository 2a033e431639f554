package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/transcript"
)

// load reads the transcript, stores a result for each call that never got one, and
// reopens the questions that have no answer yet.
func (o *owner) load(ctx, life context.Context) error {
	entries, err := o.cfg.Log.Entries(ctx)
	if err != nil {
		return err
	}
	if n := len(entries); n > 0 {
		o.lastUUID = entries[n-1].UUID
	}
	o.dangling = transcript.Dangling(entries)
	asks, err := o.sortAsks(ctx, entries)
	if err != nil {
		return err
	}
	lost, err := o.storeLost(ctx, asks.results)
	if err != nil {
		return err
	}
	entries = append(entries, lost...)
	o.unanswered = unansweredIn(entries)
	o.conversation = transcript.Conversation(entries)
	o.announceReceipts(entries)
	o.reopenAsks(life, asks)
	return nil
}

// announceReceipts says to the sources what the transcript shows. Nothing is asked about
// the past again.
func (o *owner) announceReceipts(entries []transcript.Entry) {
	var receipts []string
	for _, e := range entries {
		receipts = append(receipts, e.Receipts...)
	}
	for _, src := range o.cfg.Sources {
		src.Opened(receipts)
	}
	o.opened = true
}

// storeDanglingResults stores a result for each call that has none: those of a turn
// whose results could not be stored.
func (o *owner) storeDanglingResults(life context.Context) error {
	_, err := o.storeLost(context.WithoutCancel(life), nil)
	return err
}

// storeLost gives the dangling calls their results: what is known of a call, by
// its id, else that the result is lost.
func (o *owner) storeLost(ctx context.Context, known map[string]string) ([]transcript.Entry, error) {
	if len(o.dangling) == 0 {
		return nil, nil
	}
	lost := make([]transcript.Entry, len(o.dangling))
	for i, call := range o.dangling {
		text, ok := known[call.ID]
		var receipts []string
		if !ok {
			text, receipts = o.lostResult(call.ID)
		}
		lost[i] = o.entry(transcript.KindUser, transcript.Message{
			Role:    transcript.User,
			Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: call.ID, Text: text, IsError: true}},
		})
		lost[i].Receipts = receipts
		if i > 0 {
			lost[i].ParentUUID = lost[i-1].UUID
		}
	}
	if err := o.cfg.Log.Append(ctx, lost...); err != nil {
		o.unstored.add(err)
		return nil, err
	}
	o.lastUUID = lost[len(lost)-1].UUID
	o.dangling = nil
	return lost, nil
}

// lostResult is the result of a call of which nobody knows how it ended.
func (o *owner) lostResult(call string) (text string, receipts []string) {
	if o.opened { // the call was made, and its result lost, in this process
		return transcript.LostResult, nil
	}
	more, receipts := o.cfg.Voice.Lost(call)
	return strings.TrimSpace(transcript.LostResult + " " + more), receipts
}

// entry makes the next line of the transcript.
func (o *owner) entry(kind transcript.Kind, m transcript.Message) transcript.Entry {
	e := o.cfg.Line()
	e.UUID = ids.UUID()
	e.ParentUUID = o.lastUUID
	e.Kind = kind
	e.SessionID = o.cfg.Ref.Session
	e.AgentID = o.cfg.Ref.Agent
	e.Sidechain = o.cfg.Ref.Agent != ""
	e.At = time.Now()
	e.Message = m
	return e
}

// store keeps entries, also while the session is being closed: what happened
// must be kept. It chains what follows to the last one, and publishes them.
func (o *owner) store(life context.Context, t *turn, entries ...transcript.Entry) error {
	for i := 1; i < len(entries); i++ {
		entries[i].ParentUUID = entries[i-1].UUID
	}
	if err := o.cfg.Log.Append(context.WithoutCancel(life), entries...); err != nil {
		o.unstored.add(err)
		return err
	}
	o.lastUUID = entries[len(entries)-1].UUID
	t.entries = append(t.entries, entries...)
	for _, e := range entries {
		o.publish(event.Stored{Entry: e})
	}
	return nil
}

// storeInput stores these inputs, one entry each, and returns
// it as messages. Input that cannot be kept is refused, and with bulk input all that
// is behind it, so that it comes again in its order. What comes with input counts from
// now on.
func (o *owner) storeInput(life context.Context, t *turn, input []Input) (messages []transcript.Message) {
	if len(input) > 0 {
		input = append(o.preface(life), input...)
	}
	if len(input) > 0 || o.turn != nil {
		input = append(o.modeNote(), input...)
	}
	var gap error // why there is one in the bulk
	for _, in := range input {
		if in.Bulk && gap != nil {
			o.refuse(gap, in)
			continue
		}
		m, err := o.storeOne(life, t, in)
		switch {
		case err == nil:
			messages = append(messages, m)
		case in.Bulk:
			gap = err
		}
	}
	if gap != nil {
		o.refuse(gap, o.intake.drop()...)
	}
	t.arrived.renew()
	if o.intake.wakes() {
		t.arrived.signal()
	}
	return messages
}

// storeOne keeps one input, or refuses it.
func (o *owner) storeOne(life context.Context, t *turn, in Input) (transcript.Message, error) {
	m := transcript.Message{Role: transcript.User, Content: in.Content}
	e := o.entry(transcript.KindUser, m)
	e.Receipts = in.Receipts
	if err := o.store(life, t, e); err != nil {
		o.fail(err)
		o.refuse(err, in)
		return m, err
	}
	o.acks.add(in, nil)
	if in.Bulk {
		o.unanswered += in.size()
	}
	if in.stored != nil {
		in.stored(life)
	}
	if in.Mode != "" {
		o.changeMode(in.Mode)
	}
	return m, nil
}

// preface is what goes before the first input.
func (o *owner) preface(life context.Context) []Input {
	if o.prefaced {
		return nil
	}
	o.prefaced = true
	text := o.cfg.Voice.Preface(life)
	if text == "" {
		return nil
	}
	in := Text(Prompt, text)
	in.stored = func(context.Context) {} // it must not be given up
	return []Input{in}
}

// refuse says that input could not be kept. What must not be given up waits for
// the next input; of bulk input nothing is taken until its source knows.
func (o *owner) refuse(err error, inputs ...Input) {
	for _, in := range inputs {
		o.acks.add(in, err)
		o.order.open = o.order.open || in.Bulk && in.Kept != nil
		if in.stored != nil {
			o.again = append(o.again, in)
		}
	}
}

// storeReply keeps a reply, one entry per content block.
func (o *owner) storeReply(life context.Context, t *turn, r agent.Reply) error {
	entries := make([]transcript.Entry, len(r.Message.Content))
	for i, block := range r.Message.Content {
		m := r.Message
		m.Content = []transcript.Block{block}
		entries[i] = o.entry(transcript.KindAssistant, m)
		entries[i].RequestID = r.RequestID
		if block.Type == transcript.ToolUse {
			t.callEntry[block.ID] = entries[i].UUID
		}
	}
	t.outcome.Rounds++
	t.outcome.APITime += r.Took
	t.outcome.StopReason = r.Message.StopReason
	if text := transcript.JoinText(r.Message.Content); text != "" {
		t.outcome.Text = text
	}
	if err := o.store(life, t, entries...); err != nil {
		return err
	}
	o.unanswered = 0
	return nil
}

// shownText is how much of a result goes into an event.
const shownText = 2000

// storeResult keeps the result of a call.
func (o *owner) storeResult(life context.Context, t *turn, r agent.Result) error {
	e := o.entry(transcript.KindUser, transcript.Message{
		Role: transcript.User, Content: []transcript.Block{r.Result.Block(r.Call)},
	})
	e.ToolUseResult = r.Result.Structured
	e.SourceAssistant = t.callEntry[r.Call.ID]
	if err := o.store(life, t, e); err != nil {
		return fmt.Errorf("keep the result of %s: %w", r.Call.Name, err)
	}
	if r.Denied {
		t.outcome.Denied = append(t.outcome.Denied, event.Denied{Tool: r.Spec.Name, Call: r.Call.ID, Input: r.Call.Input})
	}
	text := e.Message.Content[0].ResultText()
	if len(text) > shownText {
		text = text[:shownText]
	}
	o.publish(event.ToolEnded{
		Call: r.Call.ID, Tool: cmp.Or(r.Spec.Name, r.Call.Name), Writes: r.Spec.Writes,
		IsError: r.Result.IsError, Text: text, Took: r.Took,
	})
	return nil
}
