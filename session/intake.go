package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/transcript"
)

// MaxBulk is how much text of [Input.Bulk], in bytes, a model is given before it
// has answered: what is beyond it waits for the next round. One piece that is
// larger than that comes alone.
const MaxBulk = 192 << 10

// intake is the input that waits for the model, and how much of it goes into the next
// request.
type intake struct {
	pending    []Input // sorted by rank, stable
	again      []Input // could not be stored, and goes with the next input
	unanswered int     // bytes of bulk input that the model was given and has not answered
	held       bool    // the last portion held bulk input back, and nothing new has come since
	stalled    bool    // what was held back waits for something new: see [intake.stall]
	order      order
}

// order keeps bulk input in its order when some of it could not be stored. What is behind
// a gap is refused as well, so that its source offers all of it again; and since more of
// it may be on its way already, so is everything that the source was asked for before it
// knew of the refusals.
type order struct {
	open    bool         // something was refused, and its source does not know yet
	gaps    int          // that were closed until now
	waiting []chan<- int // sources that are asked again when the gap is closed
}

// errBehindGap is why input is refused that might be stored, but not in its order.
var errBehindGap = errors.New("what comes before it was not stored")

// isBehindGap reports whether bulk input has to come again, from a source that was asked
// after so many gaps.
func (d *order) isBehindGap(gaps int) bool { return d.open || gaps < d.gaps }

// closeGap is called when the sources know of all refusals.
func (d *order) closeGap() {
	if !d.open {
		return
	}
	d.open = false
	d.gaps++
	for _, next := range d.waiting {
		next <- d.gaps
	}
	d.waiting = nil
}

// add puts input behind what is waiting with the same rank.
func (w *intake) add(in Input) {
	if len(w.again) > 0 {
		w.pending, w.again = append(w.again, w.pending...), nil
	}
	w.held, w.stalled = false, false
	at := len(w.pending)
	for at > 0 && w.pending[at-1].Rank > in.Rank {
		at--
	}
	w.pending = slices.Insert(w.pending, at, in)
}

// portion removes from the waiting input what goes into the next round: all that is
// not bulk, and of the bulk as much as may be, in order. What stands unanswered after
// a failure, an interruption or a kill counts, so that it may be nothing. room is how
// many bytes the model's context window still takes; a message that is larger than that
// comes alone, and cut.
func (w *intake) portion(room int) (given []Input) {
	var left []Input
	size, fresh := w.unanswered, 0
	for _, in := range w.pending {
		if !in.Bulk {
			given = append(given, in)
			continue
		}
		n := in.size()
		if len(left) > 0 || size > 0 && size+n > MaxBulk || fresh > 0 && fresh+n > room {
			left = append(left, in)
			continue
		}
		in = in.cut(room)
		size, fresh = size+in.size(), fresh+n
		given = append(given, in)
	}
	w.pending, w.held = left, len(left) > 0
	if len(given) > 0 && len(left) > 0 {
		given = append(given, moreNote(left))
	}
	return given
}

// drop removes all that waits, and returns it.
func (w *intake) drop() []Input {
	all := w.pending
	w.pending = nil
	return all
}

// wakes reports whether something waits that ends a tool's waiting.
func (w *intake) wakes() bool {
	return slices.ContainsFunc(w.pending, func(in Input) bool { return !in.Quiet })
}

// size is the text of an input as a model gets it, in bytes.
func (in Input) size() (n int) {
	for _, b := range in.Content {
		n += len(b.Text)
	}
	return n
}

// moreNote says to a model that there is more than it was given.
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

// stall is called when a turn has failed. What it held back waits for something new
// then: given to a model that cannot answer, it would pile up in the conversation,
// until no request could carry that any more.
func (w *intake) stall() { w.stalled = w.held && len(w.pending) > 0 }

// stalledMessages is how much waits for something new.
func (w *intake) stalledMessages() int {
	if !w.stalled {
		return 0
	}
	return messages(w.pending)
}

// isDue reports whether waiting input is to be given to the model now.
func (w *intake) isDue() bool { return len(w.pending) > 0 && !w.stalled }
