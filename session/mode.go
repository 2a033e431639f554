package session

import (
	"context"

	"github.com/cadre-dev/cadre/permission"
)

// changeMode changes the permission mode, and lets everybody see it: the turn may
// be about to make its next request.
func (o *owner) changeMode(mode permission.Mode) {
	o.cfg.Policy.Mode = mode
	o.publishState()
}

// modeNote is the note to the model about a change of mode since its last input.
func (o *owner) modeNote() []Input {
	was, now := o.seenMode, o.cfg.Policy.Mode
	o.seenMode = now
	if was == now {
		return nil
	}
	text := o.cfg.Voice.ModeNote(was, now)
	if text == "" {
		return nil
	}
	in := Text(Prompt, text)
	in.stored = func(context.Context) {} // it must not be given up
	return []Input{in}
}
