package team

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/tool"
)

// Inbox is what one session takes in of its mail: each message once, in an order
// that its model can work with. A teammate's follows its seat; a main session's
// follows the team that it leads, from one to the next.
type Inbox struct {
	teams   *Teams
	session string // the main session's; "" for a teammate
	mate    *Seat  // nil for a main session

	deliveries *deliveries
	shown      atomic.Pointer[[]mailbox.ID] // stood in the transcript when the inbox was opened; nil once that was used
	retry      signal.Signal                // mail was given back, or could not be marked

	// The rest belongs to the caller of Next.
	seat     *Seat           // whose mail is watched
	mail     <-chan struct{} // a signal that its inbox has changed
	stop     func()
	others   *watches // over the inboxes of agents from whom receipts are waited for
	due      bool     // there may be something to read
	failed   bool     // the last reading failed
	reported string   // why, as it was returned
}

// Inbox opens the caller's mail; ok is false for a sub-agent, which has none,
// and for a teammate without a seat. shown are the receipts of the transcript,
// when it is not a new one: mail among them is marked read and not shown again.
// The caller closes the inbox. A session has one at a time.
func (t *Teams) Inbox(by tool.Caller, shown []mailbox.ID) (in *Inbox, ok bool) {
	if by.Depth > 0 {
		return nil, false
	}
	in = &Inbox{
		teams: t, deliveries: newDeliveries(shown), retry: signal.New(), stop: func() {},
		others: newWatches(t.options.Mail),
	}
	in.shown.Store(&shown)
	if by.Team != "" {
		in.mate, ok = t.Seat(by)
		return in, ok
	}
	in.session = by.SessionID
	t.crews.openInbox(in)
	return in, true
}

// Close ends the inbox. It must not be called while Next runs.
func (in *Inbox) Close() {
	in.stop()
	in.others.close()
	if in.mate == nil {
		in.teams.crews.closeInbox(in)
	}
}

// retryTime is how long a reading that failed waits for a signal before it is
// tried again.
const retryTime = 2 * time.Second

// Next blocks until there is mail and returns all of it, sorted. What must be
// done on the way is done: agents that agreed to shut down are let go. It
// returns nothing when what came was not for the model: a caller that waits until no
// mail is unread can check again then. Errors: [ErrLeft] when a teammate has
// left its team (the last call), the cause of ctx, and a store's; after a
// store's, the next call waits a little and tries again, and returns when what it
// finds is another error. Only one goroutine may call it.
func (in *Inbox) Next(ctx context.Context) ([]Mail, error) {
	for {
		seat, changed, notes := in.place()
		if seat != nil && seat.hasLeft() && in.mate != nil {
			return nil, ErrLeft
		}
		if len(notes) > 0 {
			Sort(notes)
			return notes, nil
		}
		in.follow(seat)
		if in.due {
			in.due = false
			mails, silent, err := in.read(ctx, seat)
			in.failed = err != nil
			if err == nil {
				in.reported = ""
			}
			if len(mails) > 0 {
				return mails, nil
			}
			if err != nil && err.Error() != in.reported {
				in.reported = err.Error()
				return nil, err
			}
			if silent {
				return nil, nil
			}
		}
		if in.others.set(in.awaitedReaders()) {
			in.due = in.due || seat != nil
			continue
		}
		if err := in.wait(ctx, changed); err != nil {
			return nil, err
		}
	}
}

// place is whose mail to read now, a channel that is closed when that changes,
// and notes of the runtime.
func (in *Inbox) place() (*Seat, <-chan struct{}, []Mail) {
	if in.mate != nil {
		return in.mate, in.mate.Left(), nil
	}
	return in.teams.crews.drainNotes(in.session)
}

// follow watches the mail of a seat, if it does not already.
func (in *Inbox) follow(seat *Seat) {
	if seat == in.seat {
		return
	}
	in.stop()
	in.others.set(nil)
	in.seat, in.mail, in.stop, in.due, in.failed = seat, nil, func() {}, false, false
	if seat != nil {
		in.mail, in.stop = in.teams.options.Mail.Watch(seat.Address())
		in.due = true
	}
}

// awaitedReaders are the agents whose inboxes tell when a receipt can be given.
func (in *Inbox) awaitedReaders() []mailbox.Address {
	if in.seat == nil {
		return nil
	}
	var at []mailbox.Address
	for _, name := range in.seat.receipts.recipients() {
		at = append(at, mailbox.Address{Team: in.seat.Team, Agent: name})
	}
	return at
}

func (in *Inbox) wait(ctx context.Context, changed <-chan struct{}) error {
	var receipts <-chan struct{}
	if in.seat != nil {
		receipts = in.seat.receipts.changed
	}
	var retry <-chan time.Time
	if in.failed {
		timer := time.NewTimer(retryTime)
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-in.mail:
		in.due = true
	case <-in.others.any:
		in.due = true
	case <-receipts:
		in.due = true
	case <-retry:
		in.due = true
	case <-in.retry:
		in.failed = true // what could not be kept just now is tried again a little later
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// read reads the new mail of a seat; silent says that some of it was not for the model.
// It may return both mail and an error: then some could not be dealt with, and comes
// again.
func (in *Inbox) read(ctx context.Context, seat *Seat) (mails []Mail, silent bool, err error) {
	// The receipts come before the own inbox: that says which of the messages that are
	// marked read were returned instead of shown.
	var shown []mailbox.ID
	if opened := in.shown.Load(); opened != nil {
		shown = *opened
	}
	if err := seat.receipts.load(ctx, shown); err != nil {
		return nil, false, err
	}
	in.shown.Store(nil) // nothing asks again
	read, err := seat.receipts.read(ctx)
	if err != nil {
		return nil, false, err
	}
	in.deliveries.beginReading()
	unread, err := in.teams.options.Mail.Unread(ctx, seat.Address())
	if err != nil {
		in.deliveries.abortReading()
		return nil, false, err
	}
	var arrivals []arrival
	failed := make(map[string]bool) // senders of whom a message comes again
	for _, m := range in.deliveries.handOut(seat.Address(), unread) {
		if failed[m.From] { // it must not be shown before that one
			in.deliveries.offerAgain(m.ID)
			continue
		}
		a, receiveErr := in.teams.receive(ctx, seat, m)
		switch {
		case receiveErr != nil:
			err = receiveErr
			failed[m.From] = true
			in.deliveries.offerAgain(m.ID)
			continue
		case a.show:
			arrivals = append(arrivals, a)
		default:
			silent = true
			in.deliveries.queueMark(a.mail.IDs...) // without ids it stays unread
		}
		in.teams.outbox.publishArrival(seat, m, a.from)
	}
	if markErr := in.markRead(ctx); err == nil {
		err = markErr
	}
	if err != nil {
		read = nil // what could not be dealt with may be a return
	}
	mails = append(digested(seat, arrivals), seat.receipts.notes(read)...)
	Sort(mails)
	return mails, silent, err
}

// Shown marks mail read. Call it when the transcript has the mail; ids that are
// no mail's are left alone. When it fails the mail is not shown again, and is
// marked a little later: whoever waits for a team waits for its unread mail. Any
// goroutine may call it.
func (in *Inbox) Shown(ctx context.Context, ids []mailbox.ID) error {
	in.deliveries.queueMark(ids...)
	err := in.markRead(ctx)
	if err != nil {
		in.retryLater()
	}
	if seat := in.owner(); seat != nil {
		err = errors.Join(err, seat.receipts.removeNoted(ctx, ids))
	}
	return err
}

// owner is the seat whose mail the session gets now; nil for a main session
// without a team.
func (in *Inbox) owner() *Seat {
	if in.mate != nil {
		return in.mate
	}
	return in.teams.crews.ledBy(in.session)
}

// GiveBack says that mail could not be shown after all: it comes again. Any
// goroutine may call it.
func (in *Inbox) GiveBack(ids []mailbox.ID) {
	seat := in.owner()
	for _, id := range ids {
		in.deliveries.offerAgain(id)
		if seat != nil {
			seat.receipts.offerAgain(id)
		}
	}
	in.retryLater()
}

// retryLater has the inbox read once more, a little later.
func (in *Inbox) retryLater() { in.retry.Raise() }

// markRead marks messages in the store that were handed out and need not be shown
// again.
func (in *Inbox) markRead(ctx context.Context) error {
	var first error
	for at, ids := range in.deliveries.drainMarks() {
		if err := in.teams.options.Mail.MarkRead(ctx, at, ids); err != nil {
			in.deliveries.requeueMarks(at, ids)
			if first == nil {
				first = err
			}
			continue
		}
		in.deliveries.noteRead(ids)
	}
	return first
}

// markLeadRead marks mail of a lead read. While its inbox is open, that does it, since
// it keeps account of what is marked.
func (t *Teams) markLeadRead(ctx context.Context, lead *Seat, ids []mailbox.ID) error {
	if inbox := t.crews.inbox(lead.session); inbox != nil {
		return inbox.Shown(ctx, ids)
	}
	return t.options.Mail.MarkRead(ctx, lead.Address(), ids)
}

// watches is a watch over several inboxes at once. Its methods belong to one
// goroutine.
type watches struct {
	mail mailbox.Store
	any  signal.Signal // one of the inboxes may have changed

	stops   map[mailbox.Address]func()
	running sync.WaitGroup // what passes the signals on
}

func newWatches(mail mailbox.Store) *watches {
	return &watches{mail: mail, any: signal.New(), stops: make(map[mailbox.Address]func())}
}

// set says which inboxes to watch from now on. It reports whether one of them was not
// watched before: what came there until now gives no signal.
func (w *watches) set(at []mailbox.Address) (added bool) {
	for watched, stop := range w.stops {
		if !slices.Contains(at, watched) {
			stop()
			delete(w.stops, watched)
		}
	}
	for _, one := range at {
		if w.stops[one] == nil {
			w.stops[one], added = w.watch(one), true
		}
	}
	return added
}

func (w *watches) watch(at mailbox.Address) (stop func()) {
	changed, unwatch := w.mail.Watch(at)
	over := make(chan struct{})
	w.running.Go(func() {
		for {
			select {
			case <-changed:
				w.any.Raise()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		unwatch()
	}
}

// close ends all watches and waits until nothing of them runs.
func (w *watches) close() {
	w.set(nil)
	w.running.Wait()
}
