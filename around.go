package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/teammate"
)

// around is what the runtime does for one session: what it says to the model
// ([session.Voice]), and what it does when the session begins, works and rests
// ([session.Life]).
type around struct {
	spec session.Spec
	mail *teammate.Mail
	past *job.Past // nil once the session is open
}

// Preface implements [session.Voice].
func (a *around) Preface(ctx context.Context) string {
	if a.spec.Preface == nil {
		return ""
	}
	return a.spec.Preface(ctx)
}

// ModeNote implements [session.Voice].
func (a *around) ModeNote(was, now permission.Mode) string { return policy.ModeNote(was, now) }

// Lost implements [session.Voice].
func (a *around) Lost(call string) (text string, receipts []string) { return a.past.OfCall(call) }

// Opened implements [session.Life]: what was shown does not come again.
func (a *around) Opened(receipts []string) {
	a.mail.Recall(receipts)
	a.past.Recall(receipts)
	a.past = nil
}

// Begins implements [session.Life].
func (a *around) Begins() {
	if a.spec.Begins != nil {
		a.spec.Begins()
	}
}

// Idle implements [session.Life].
func (a *around) Idle(ctx context.Context, last *event.Outcome) (*session.Input, error) {
	if a.spec.Idle == nil {
		return nil, nil
	}
	return a.spec.Idle(ctx, last)
}

// Wake implements [session.Life].
func (a *around) Wake() <-chan struct{} { return a.spec.Wake }

// sayFirst is a preface that begins with text; the rest of it may be nil.
func sayFirst(text string, then func(context.Context) string) func(context.Context) string {
	return func(ctx context.Context) string {
		if then == nil {
			return text
		}
		return text + "\n\n" + then(ctx)
	}
}
