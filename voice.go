package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
)

// voice is what the runtime says to the model of one session ([session.Voice]).
type voice struct {
	preface func(context.Context) string // nil: nothing
	notices *notices
}

// Preface implements [session.Voice].
func (v *voice) Preface(ctx context.Context) string {
	if v.preface == nil {
		return ""
	}
	return v.preface(ctx)
}

// ModeNote implements [session.Voice].
func (v *voice) ModeNote(was, now permission.Mode) string { return policy.ModeNote(was, now) }

// Lost implements [session.Voice].
func (v *voice) Lost(call string) (text string, receipts []string) {
	return v.notices.past.OfCall(call)
}

// prefaced is a preface that begins with text; the rest of it may be nil.
func prefaced(text string, rest func(context.Context) string) func(context.Context) string {
	return func(ctx context.Context) string {
		if rest == nil {
			return text
		}
		return text + "\n\n" + rest(ctx)
	}
}
