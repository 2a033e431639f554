// Package session is the owner of a session: one goroutine with one queue, the
// only writer of the transcript and of the session's state. Prompts, mail,
// notices, answers and interrupts arrive by the same queue; the turn runs in its
// own goroutine and hands each step to the owner, which stores, then publishes,
// then acknowledges. The owner never waits for a model, a tool or a person.
package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Errors of a session.
var (
	// ErrClosed says that the session has ended.
	ErrClosed = errors.New("the session is closed")
	// ErrInterrupt is the cause of a turn that a person interrupted.
	ErrInterrupt = errors.New("interrupted by user")
	// ErrLeave is what [Life.Idle] returns when the session shall end.
	ErrLeave = errors.New("the agent leaves")
)

// Session is the handle that front ends hold. Its methods may be called from
// any goroutine.
type Session struct {
	ref    transcript.Ref
	tree   *Tree
	agent  event.Agent
	caller tool.Caller
	queue  chan message
	gone   chan struct{} // closed when the owner has ended
	end    context.CancelCauseFunc
	state  atomic.Pointer[State]
	coming atomic.Int64   // messages on their way into the state
	failed error          // of giving the transcript back, valid after gone
	pumps  sync.WaitGroup // sources, and questions on their way elsewhere
}

// State is a snapshot of what a session does.
type State struct {
	Busy  bool   // a turn runs, or input is pending, or something is being stored
	Epoch uint64 // grows with every change
	Mode  permission.Mode
	Model string
	// Stalled is how many messages of bulk input wait, after a turn that failed, for
	// something new to come. They do not make the session busy.
	Stalled int
	// Unstored is why the session gets nothing done: it could not store what it did,
	// several times in a row and for a while. It goes on trying. nil: it can.
	Unstored error
}

// Open starts the owner of a session whose transcript is already open. It loads
// what is kept, gives every stored call without a result one that says so, asks
// again what a killed process left open, and returns; the session lives until
// Close, whatever becomes of ctx.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{
		ref: cfg.Ref, tree: cfg.Tree, agent: cfg.Agent, caller: cfg.Caller,
		queue: make(chan message), gone: make(chan struct{}),
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s.end = end
	o := newOwner(s, cfg)
	if err := o.load(ctx, life); err != nil {
		end(err)
		return nil, errors.Join(fmt.Errorf("open session %s: %w", cfg.Ref, err), cfg.Log.Close())
	}
	o.publishState()
	go o.run(life)
	return s, nil
}

// Ref names the session's transcript.
func (s *Session) Ref() transcript.Ref { return s.ref }

// Agent says who the session's events are about.
func (s *Session) Agent() event.Agent { return s.agent }

// Caller is the identity under which its tools run.
func (s *Session) Caller() tool.Caller { return s.caller }

// Send queues input. It returns when the owner has it; [Input.Kept] tells when
// it is in the transcript. A busy session takes it in between two rounds.
func (s *Session) Send(ctx context.Context, in Input) error { return s.put(ctx, in) }

// Prompt queues text and returns when it is in the transcript.
func (s *Session) Prompt(ctx context.Context, text string) error {
	kept := make(chan error, 1)
	in := Text(Prompt, text)
	in.Kept = func(_ context.Context, err error) { kept <- err }
	if err := s.put(ctx, in); err != nil {
		return err
	}
	select {
	case err := <-kept:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Interrupt ends the running turn with this cause; what it did so far is kept.
// Without a turn it does nothing. It returns when the owner knows, not when the
// turn has ended.
func (s *Session) Interrupt(ctx context.Context, cause error) error {
	return s.put(ctx, interrupt{cause})
}

// Answer answers a pending question of this session or of one it started. It
// returns when the answer is kept.
func (s *Session) Answer(ctx context.Context, id string, answer ask.Answer) error {
	return s.tree.Questions.Answer(ctx, id, answer)
}

func (s *Session) answer(ctx context.Context, id string, answer ask.Answer) error {
	done := make(chan error, 1)
	if err := s.put(ctx, answering{id, answer, done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-s.gone:
		return ErrClosed
	}
}

// SetMode changes the permission mode. It holds when SetMode returns: for the next
// decision, and for the tools of the next request.
func (s *Session) SetMode(ctx context.Context, mode permission.Mode) error {
	done := make(chan struct{})
	if err := s.put(ctx, setMode{mode, done}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-s.gone:
		return ErrClosed
	}
}

// SetModel changes the model from the next turn on.
func (s *Session) SetModel(ctx context.Context, m provider.Model, name string) error {
	return s.put(ctx, setModel{m, name})
}

// Attend says that questions can be answered until leave is called.
func (s *Session) Attend() (leave func()) { return s.tree.Questions.Attend() }

// Events are the events of the whole tree after this sequence number; see
// [event.Stream.Subscribe].
func (s *Session) Events(ctx context.Context, after uint64) iter.Seq[event.Event] {
	return s.tree.Stream.Subscribe(ctx, after)
}

// State is what the session does at this moment. Whatever a returned Send has
// brought is in it.
func (s *Session) State() State {
	coming := s.coming.Load() > 0 // before the state: it ends in there
	st := *s.state.Load()
	st.Busy = st.Busy || coming
	return st
}

// Done is closed when the session has ended, by Close or by leaving.
func (s *Session) Done() <-chan struct{} { return s.gone }

// Close interrupts the turn, waits until it has returned and all of it is
// stored, and gives the transcript back. Input that still waits is refused. It
// blocks until the session has ended.
func (s *Session) Close(cause error) error {
	if cause == nil {
		cause = ErrClosed
	}
	s.end(cause)
	<-s.gone
	return s.failed
}

// put hands a message to the owner. From before it is there until it has taken
// effect on the state, it counts as coming.
func (s *Session) put(ctx context.Context, msg message) error {
	s.coming.Add(1)
	select {
	case s.queue <- msg:
		return nil
	case <-s.gone:
		s.coming.Add(-1)
		return ErrClosed
	case <-ctx.Done():
		s.coming.Add(-1)
		return context.Cause(ctx)
	}
}
