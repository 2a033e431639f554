package session

import (
	"context"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Config is everything a session is made of.
type Config struct {
	Ref   transcript.Ref
	Log   transcript.Log // open, its lease held; the session closes it
	Tree  *Tree
	Agent event.Agent // who its events are about
	// Caller travels in the context of every turn.
	Caller tool.Caller
	// Line fills in what every transcript line of this session says beside the
	// message: working folder, version, branch, team, agent.
	Line func() transcript.Entry

	Model     provider.Model
	ModelName string
	System    []string
	Tools     tool.Source
	Limits    Limits

	Policy permission.Policy
	Asks   ask.Store
	Gate   Gate // nil: nothing stands around a call but the policy

	Voice   Voice // nil: the runtime says nothing
	Life    Life  // nil: nobody follows the session's life
	Sources []Source

	// Lean says that the session shall hold as little as possible while it has
	// nothing to do: the conversation is read back from Log at the start of each
	// turn, and of a Log with a method Rest() error that is called, to close files.
	Lean bool
}

// Limits bound a turn.
type Limits struct {
	Rounds int // 0: none
	// Repeats is after how many equal rounds the model is reminded of it: see
	// [agent.Turn.RepeatsNoted].
	Repeats int
}

// Voice is what the runtime says to the model by itself. The owner calls it.
type Voice interface {
	// Preface is said before the first input of this opening: how things stand, to
	// an agent that comes back. It may read files. "" says nothing.
	Preface(ctx context.Context) string
	// ModeNote says that the permission mode is another than the one that the model
	// knows. It goes before the next input, or before the next request of a
	// turn that runs. It must not block. "" says nothing.
	ModeNote(was, now permission.Mode) string
	// Lost says at opening what became of a call whose result was never stored; it
	// is added to the words that the result is lost. What the receipts identify
	// counts as shown with it.
	Lost(call string) (text string, receipts []string)
}

// Life is what others do at the moments of a session's life.
type Life interface {
	// Begins is called by the owner when a turn begins. It must not block.
	Begins()
	// Idle is called each time the session has become idle, with the turn that just
	// ended, and again with nil on each signal of Wake while it stays idle; not
	// before its first turn. It may return input that it found (a claimed task), or
	// [ErrLeave] to end the session; after any other error it is called again a little
	// later. It runs on its own goroutine and may block; no turn begins before it has
	// returned.
	Idle(ctx context.Context, last *event.Outcome) (*Input, error)
	// Wake is always the same channel, or nil.
	Wake() <-chan struct{}
}

// Gate is what stands around the calls of a session, beside its policy.
type Gate interface {
	// Accept is called with each approval that brings rule changes, before it is
	// stored. It writes those that are meant for settings files, and returns all as
	// they hold in this process, also with an error. It runs on its own goroutine and
	// may wait for files; the call waits for it.
	Accept(ctx context.Context, answer ask.Answer) ([]ask.Suggestion, error)
}

// unattended does nothing: the [Voice] and [Life] of a session that was given none.
type unattended struct{}

func (unattended) Preface(context.Context) string                       { return "" }
func (unattended) ModeNote(_, _ permission.Mode) string                 { return "" }
func (unattended) Lost(string) (text string, receipts []string)         { return "", nil }
func (unattended) Begins()                                              {}
func (unattended) Idle(context.Context, *event.Outcome) (*Input, error) { return nil, nil }
func (unattended) Wake() <-chan struct{}                                { return nil }

// complete gives the parts that may be left out something that does nothing.
func (c *Config) complete() {
	if c.Voice == nil {
		c.Voice = unattended{}
	}
	if c.Life == nil {
		c.Life = unattended{}
	}
}
