package session

import (
	"context"

	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/transcript"
)

// Rank orders waiting input: lower goes first (the order of an idle teammate's
// input in the design).
type Rank int

// The ranks.
const (
	Prompt     Rank = iota // from a person or a program in front
	Shutdown               // a request to end
	LeadMail               // the lead's mail, and the runtime's own words
	PeerMail               // mail of other agents
	Notice                 // the end of a job that nobody waited for
	TaskToTake             // a task that was claimed for this agent
)

// Input is something for the model to see: it starts a turn, or is added to the
// running one between two rounds.
type Input struct {
	Rank    Rank
	Content []transcript.Block
	Title   string // one line for people
	// Receipts identify the input beside the transcript, so that it is shown
	// once even when its source offers it again after a crash.
	Receipts []string
	// Quiet input does not end a tool's waiting ([tool.Arrived]); it comes with the
	// next round.
	Quiet bool
	// Bulk input may come in any amount: no more than [MaxBulk] of it, and no more than
	// its context window has room for, is given to the model at once. What is left is not in the transcript, comes with the next rounds
	// in its order, and starts a turn when the session would be idle otherwise; after
	// a turn that failed, when something new comes.
	Bulk bool
	// WholeAt is where the whole text of bulk input can be read: then it may be cut to
	// what the model's context window has room for. "": it is never cut.
	WholeAt string
	// Mode, unless "", is the permission mode in which the session goes on as soon
	// as the input is in the transcript: what an approved plan says.
	Mode permission.Mode
	// Kept, when set, is called exactly once: with nil as soon as the input is
	// in the transcript, or with the reason why it never will be. It runs on a
	// goroutine of the session's and may block for a short while; ctx ends when
	// the session is closed and has no patience left.
	Kept func(ctx context.Context, err error)

	// stored, when set, makes the input one that is never given up: the owner
	// calls it once when the input is in the transcript, and offers the input
	// again with the next when it could not be kept.
	stored func(life context.Context)
}

// Text makes an input of plain text.
func Text(rank Rank, text string) Input {
	return Input{Rank: rank, Content: []transcript.Block{transcript.TextBlock(text)}, Title: firstLine(text)}
}

// Source is where input comes from by itself: a mailbox, the ends of jobs. One
// that is an [io.Closer] is closed after its last Next.
type Source interface {
	// Opened is called by the owner once, before the first Next, with the receipts of
	// the entries that stand in the transcript: what they identify was shown. It must
	// not block.
	Opened(receipts []string)
	// Next blocks until there is input and returns all that waits, or ends with
	// ctx. It may return nothing when it dealt with something by itself. An error other
	// than ctx's is shown to the person, and Next is called again after a pause.
	Next(ctx context.Context) ([]Input, error)
}

const titleLen = 120

// firstLine shortens text to a line for people.
func firstLine(text string) string {
	for i, r := range text {
		if r == '\n' || i >= titleLen {
			if i == 0 {
				return firstLine(text[1:])
			}
			return text[:i] + "…"
		}
	}
	return text
}

// Await blocks until done is closed; the error is why ctx ended, if it ended first.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
