package session

import (
	"fmt"

	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/transcript"
)

// MaxBulk is how much text of [Input.Bulk], in bytes, a model is given before it
// has answered: what is beyond it waits for the next round. One piece that is
// larger than that comes alone.
const MaxBulk = 192 << 10

// take decides what of the waiting input goes into the next round: all that is not
// bulk, and of the bulk as much as may be, in order. What stands unanswered after a
// failure, an interruption or a kill counts, so that it may be nothing.
func (o *owner) take() (taken []Input) {
	var left []Input
	size := o.unanswered
	for _, in := range o.pending {
		if in.Bulk && (len(left) > 0 || size > 0 && size+in.size() > MaxBulk) {
			left = append(left, in)
			continue
		}
		if in.Bulk {
			size += in.size()
		}
		taken = append(taken, in)
	}
	o.pending, o.left = left, len(left) > 0
	if len(taken) > 0 && len(left) > 0 {
		taken = append(taken, moreNote(left))
	}
	return taken
}

// size is the text of an input as a model gets it, in bytes.
func (in Input) size() (n int) {
	for _, b := range in.Content {
		n += len(b.Text)
	}
	return n
}

// moreNote tells a model that there is more than it was given.
func moreNote(left []Input) Input {
	text := "1 more message waits for you: it comes"
	if n := messages(left); n > 1 {
		text = fmt.Sprintf("%d more messages wait for you: they come", n)
	}
	in := Text(PeerMail, prompt.Reminder(text+" with your next rounds, or as soon as your turn ends."))
	in.Bulk = true // when it cannot be kept, neither is what is left
	return in
}

// unansweredIn is the text of input in these entries that nothing was answered to.
// Only input that comes by itself has receipts.
func unansweredIn(entries []transcript.Entry) (n int) {
	for _, e := range entries {
		switch {
		case e.Kind == transcript.KindAssistant:
			n = 0
		case len(e.Receipts) > 0:
			n += Input{Content: e.Message.Content}.size()
		}
	}
	return n
}

// messages counts what inputs are made of: several messages may have become one.
func messages(inputs []Input) (n int) {
	for _, in := range inputs {
		n += max(1, len(in.Receipts))
	}
	return n
}

// stall is called when a turn has failed. What it left waits for something new
// then: given to a model that cannot answer, it would pile up in the conversation,
// until no request could carry that any more.
func (o *owner) stall() { o.stalled = o.left && len(o.pending) > 0 }

// stalledMessages is how much waits for something new.
func (o *owner) stalledMessages() int {
	if !o.stalled {
		return 0
	}
	return messages(o.pending)
}

// isDue reports whether waiting input is to be given to the model now.
func (o *owner) isDue() bool { return len(o.pending) > 0 && !o.stalled }
