package team

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Kinds of records of handshakes.
const (
	// RecordPlan holds the newest plan request of a teammate, under its name.
	RecordPlan = "plan"
	// RecordAsk holds a question that a teammate has put to its lead, under the
	// request's id.
	RecordAsk = "ask"
)

// consentOptions is what [Options] says about plans and permissions.
type consentOptions struct {
	mode     func() string
	relay    Relay
	settled  func(ctx context.Context, askID string)
	answered func(ctx context.Context, who mailbox.Address, askID string, answer ask.Answer) error
}

func (o Options) consent() consentOptions {
	h := consentOptions{o.Mode, o.Relay, o.Settled, o.Answered}
	if h.mode == nil {
		h.mode = func() string { return protocol.ModeDefault }
	}
	if h.settled == nil {
		h.settled = func(context.Context, string) {}
	}
	return h
}

// consent is what a seat knows of plans and permissions beyond its records.
type consent struct {
	// turn is held by whoever changes the seat's records: one at a time, also
	// while they are written.
	turn gate

	// The seat's mu guards the rest.
	answering map[string]bool // teammate: requests whose answer is being delivered
	refused   map[string]bool // requests of which a refused answer was told
	plans     map[string]*planAsked
	relays    map[string]*relayed
}

func newConsent() consent {
	return consent{
		turn: make(gate, 1), answering: make(map[string]bool), refused: make(map[string]bool),
		plans: make(map[string]*planAsked), relays: make(map[string]*relayed),
	}
}

// gate lets one goroutine through at a time. It may be held across I/O, since
// waiting for it ends with the context.
type gate chan struct{}

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }

// handshake does what a plan or permission message asks of the runtime, once it
// is known to be protocol. handled is false for any other message. show is
// false for what the model does not get to see; with no IDs left in mail, such a
// message stays unread.
func (t *Teams) handshake(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.Control, mail *Mail) (handled, show bool, err error) {
	switch c := c.(type) {
	case protocol.PlanRequest:
		show, err = t.planRequested(ctx, seat, m, c, mail)
	case protocol.PlanResponse:
		show, err = t.planAnswered(ctx, seat, m, c, mail)
	case protocol.PermissionRequest:
		show, err = t.permissionRequested(ctx, seat, m, c, mail)
	case protocol.PermissionResponse:
		err = t.permissionAnswered(ctx, seat, m, c)
	case protocol.PermissionSettled:
		err = t.permissionSettled(ctx, seat, m, c)
	default:
		return false, false, nil
	}
	return true, show, err
}

// warn tells the people who watch of something that went wrong at a seat.
func (t *Teams) warn(seat *Seat, format string, args ...any) {
	t.publish(seat.agent(), event.Noticed{Level: "warning", Text: fmt.Sprintf(format, args...)})
}

// putRecord keeps v as a record.
func (t *Teams) putRecord(ctx context.Context, team, kind, name string, v any) error {
	doc, err := jsonx.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode record %s of %s: %w", kind, name, err)
	}
	return t.records.Put(ctx, team, kind, name, doc)
}

// getRecord reads a record into v: [roster.ErrNoRecord] when there is none.
func (t *Teams) getRecord(ctx context.Context, team, kind, name string, v any) error {
	return roster.GetRecord(ctx, t.records, team, kind, name, v)
}
