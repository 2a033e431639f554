package session

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/transcript"
)

// rester is a [transcript.Log] that can let go of what only an append needs.
type rester interface {
	// Rest gives back open files and the like until the next Append. The lease
	// stays held.
	Rest() error
}

// rest lets go of what only a turn needs, while there is nothing to do. A
// thousand agents wait at once, and few of them work.
func (o *owner) rest() {
	if !o.cfg.Lean || o.resting {
		return
	}
	o.resting, o.conversation = true, nil
	if log, ok := o.cfg.Log.(rester); ok {
		if err := log.Rest(); err != nil {
			o.warn(err)
		}
	}
}

// rise reads the conversation back for the next turn.
func (o *owner) rise(life context.Context) error {
	if !o.resting {
		return nil
	}
	entries, err := o.cfg.Log.Entries(context.WithoutCancel(life))
	if err != nil {
		return fmt.Errorf("read the conversation back: %w", err)
	}
	o.resting, o.conversation = false, transcript.Conversation(entries)
	return nil
}

func (o *owner) warn(err error) {
	o.publish(event.Noticed{Level: "warning", Text: err.Error()})
}

func (o *owner) fail(err error) {
	o.publish(event.Noticed{Level: "error", Text: err.Error()})
}
