package session

import (
	"context"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
)

// message is what comes to an owner by its queue: all kinds are in this file. The
// owner calls reach, which must not block.
type message interface {
	reach(life context.Context, o *owner)
}

// Input comes from a front end ([Session.Send]).
func (in Input) reach(_ context.Context, o *owner) { o.queueInput(in) }

// sourceInput comes from a [Source].
type sourceInput struct {
	inputs []Input
	gaps   int        // as the owner last told it, when the source was asked
	next   chan<- int // of capacity one: the source may be asked again, and the gaps until now
}

func (m sourceInput) reach(_ context.Context, o *owner) {
	behind := false
	for _, in := range m.inputs {
		if in.Bulk && o.order.isBehindGap(m.gaps) {
			behind = true
			o.refuse(errBehindGap, in)
			continue
		}
		o.queueInput(in)
	}
	if behind {
		o.order.waiting = append(o.order.waiting, m.next)
		return
	}
	m.next <- o.order.gaps
}

// sourceError comes from a [Source] that failed.
type sourceError struct{ err error }

func (m sourceError) reach(_ context.Context, o *owner) { o.warn(m.err) }

// interrupt comes from a person ([Session.Interrupt]).
type interrupt struct{ cause error }

func (m interrupt) reach(_ context.Context, o *owner) {
	if o.turn != nil {
		o.turn.interrupt(m.cause)
	}
}

// setMode comes from a person, or from a tool that ends planning.
type setMode struct {
	mode permission.Mode
	done chan<- struct{} // closed when it holds
}

func (m setMode) reach(_ context.Context, o *owner) {
	o.changeMode(m.mode)
	close(m.done)
}

// setModel comes from a person.
type setModel struct {
	model provider.Model
	name  string
}

func (m setModel) reach(_ context.Context, o *owner) { o.cfg.Model, o.cfg.ModelName = m.model, m.name }

// permitRequest comes from a call of the running turn: may it run?
type permitRequest struct {
	call     tool.Call
	spec     tool.Spec
	access   tool.Access
	approved bool // a person has approved; only a deny can still stop it
	reply    chan agent.Verdict
}

func (m permitRequest) reach(life context.Context, o *owner) { o.permit(life, m) }

// answering is the answer to a question, from any front end.
type answering struct {
	id     string
	answer ask.Answer
	done   chan<- error // nil: nobody waits
}

func (m answering) reach(life context.Context, o *owner) { o.handleAnswer(life, m) }

// accepted comes from [Gate.Accept]: the rule changes of an answer are written where
// they belong, or not, for the reason of err. They count in this session all the same.
type accepted struct {
	answering
	err error
}

func (m accepted) reach(life context.Context, o *owner) { o.endAccept(life, m) }

// unsent comes from a relay that could not send a question to where its answer would
// come from.
type unsent struct {
	id  string
	err error
}

func (m unsent) reach(life context.Context, o *owner) { o.endUnsent(life, m) }
