package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/cadre-dev/cadre/provider"
)

// drainWithin is how long to wait for the end of a stream whose answer is
// whole. A body that was read to its end lets the connection be used again; a
// server that keeps it open is not waited for.
const drainWithin = 50 * time.Millisecond

// afterWhole is how long to wait for what may follow a complete answer: its
// usage, its formal end.
const afterWhole = 5 * time.Second

// Silence says what kind of gap may follow an event.
type Silence int

const (
	// NoProgress: the event carried nothing of the answer; the clock runs on.
	NoProgress Silence = iota
	// Short: more should follow soon.
	Short
	// Long: the model may work unseen for a while.
	Long
)

// Answer collects the events of one answer.
type Answer interface {
	// Add processes an event, and emits what it carries for the consumer.
	Add(event Event, emit func(provider.Event) bool) (Silence, error)
	// Done reports that nothing more will come.
	Done() bool
	// Whole reports that the answer is complete should the stream end here.
	Whole() bool
	// Reply is the answer so far: when it is not whole, its whole blocks.
	Reply() provider.Reply
}

// Exchange sends body and reads the answer into a: the attempt of a
// [provider.Retrier].
func (e *Endpoint) Exchange(ctx context.Context, body *Body, a Answer, emit func(provider.Event) bool) error {
	limit := e.firstByte()
	watched, dog := provider.Watch(ctx, limit)
	defer dog.Stop()
	x := &exchange{
		Endpoint: e, dog: dog, answer: a, consumer: emit,
		limit: limit, progress: time.Now(), remindAt: remindAfter, reminder: time.NewTimer(remindAfter),
	}
	resp := x.open(watched, body)
	defer resp.close()
	header, err := resp.header()
	if x.stopped {
		return nil
	}
	if err != nil {
		if x.refused == nil && isStall(context.Cause(watched)) {
			e.tooSlow(limit)
		}
		return x.failure(ctx, watched, err)
	}
	x.id = requestID(header, "")
	x.limit = e.limits.Patience
	events := NewEvents(resp)
	err = x.read(events)
	if x.stopped {
		return nil
	}
	if err != nil || !a.Whole() {
		if err = x.failure(ctx, watched, err); ctx.Err() != nil || !x.emitted {
			return err
		}
	}
	x.reply(err)
	if a.Done() {
		dog.Within(drainWithin)
		for events.Next() { // what comes after the end of the answer says nothing
		}
	}
	return nil
}

func isStall(err error) bool {
	var e *provider.Error
	return errors.As(err, &e) && e.Class == provider.Stalled
}

// exchange is one attempt.
type exchange struct {
	*Endpoint
	dog      *provider.Watchdog
	answer   Answer
	consumer func(provider.Event) bool
	refused  error // why the response is not an answer
	id       string
	emitted  bool // something of the answer was
	stopped  bool // the consumer broke off

	limit    time.Duration // of the silence that lasts
	unseen   bool          // in the middle of a thought or call
	progress time.Time     // when the silence began
	reminder *time.Timer   // see await
	remindAt time.Duration // of silence
}

// within says that there was progress, and how long the next silence may last.
func (x *exchange) within(limit time.Duration) {
	x.limit, x.progress, x.remindAt = limit, time.Now(), remindAfter
	x.dog.Within(limit)
}

// alive says that the server, although it sent nothing of the answer, is there.
// While the model may be working unseen, that extends the time it has.
func (x *exchange) alive() {
	if x.unseen {
		x.dog.Within(min(x.limits.Patience, 2*x.limits.Patience-time.Since(x.progress)))
	}
}

// send makes the request. A response that is not an answer is an error.
func (x *exchange) send(ctx context.Context, body *Body) (*http.Response, error) {
	req, err := x.request(ctx, body)
	if err != nil {
		return nil, err
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.responds.Store(true)
	if x.refused = x.check(resp); x.refused != nil {
		resp.Body.Close()
		return nil, x.refused
	}
	return resp, nil
}

// check returns the error of a response that is not an answer, judged by its
// status and by how its body begins.
func (x *exchange) check(resp *http.Response) error {
	x.dog.Within(x.limits.Patience)
	if resp.StatusCode != http.StatusOK {
		x.dog.Within(errorBodyWithin)
		return refusal(resp)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if mediaType == "text/event-stream" {
		return nil
	}
	// Servers label streams in many ways, so what came decides.
	peeked := bufio.NewReader(resp.Body)
	first, err := firstByte(peeked)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{peeked, resp.Body}
	if err != nil || (first != '<' && first != '{') {
		return nil
	}
	x.dog.Within(errorBodyWithin)
	e := refusal(resp)
	e.Status = 0
	if e.Class == provider.Malformed {
		e.Message = "not an event stream: " + e.Message
	}
	return e
}

// firstByte peeks at the first byte that is not white space.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)) {
			return c, r.UnreadByte()
		}
	}
}

// maxAnswer bounds the bytes of all events of an answer.
const maxAnswer = 128 << 20

// read processes events until the answer is done, the stream ends, or the
// consumer breaks off.
func (x *exchange) read(events *Events) error {
	size := 0
	for !x.answer.Done() && events.Next() {
		ev := events.Event()
		if size += len(ev.Data); size > maxAnswer {
			return &provider.Error{Class: provider.Malformed, Message: fmt.Sprintf("the answer has more than %d bytes", maxAnswer)}
		}
		silence, err := x.answer.Add(ev, x.emit)
		if err != nil || x.stopped {
			return err
		}
		switch {
		case x.answer.Whole():
			x.within(min(afterWhole, x.limits.Idle))
		case silence == NoProgress:
			x.alive()
		case silence == Short:
			x.unseen = false
			x.within(x.limits.Idle)
		case silence == Long:
			x.unseen = true
			x.within(x.limits.Patience)
		}
	}
	if err := events.Err(); errors.Is(err, errTooLong) {
		return &provider.Error{Class: provider.Malformed, Message: err.Error()}
	} else if err != nil && !x.answer.Whole() {
		return err
	}
	return nil
}

// emit passes an event on. The clock stands while the consumer works.
func (x *exchange) emit(ev provider.Event) bool {
	x.emitted = true
	x.dog.Hold()
	x.stopped = x.stopped || !x.consumer(ev)
	x.within(x.limits.Idle)
	return !x.stopped
}

func (x *exchange) reply(broken error) {
	reply := x.answer.Reply()
	reply.Broken = broken
	if reply.RequestID == "" {
		reply.RequestID = x.id
	}
	x.emit(reply)
}

// failure is what to say of an exchange that ended with err, or in the middle:
// the end of the caller's context first, then that of ours, then what the
// server or the network did.
func (x *exchange) failure(ctx, watched context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *provider.Error
	switch {
	case x.refused == nil && errors.As(context.Cause(watched), &e):
	case errors.As(err, &e):
	case err == nil:
		e = unreachable(x.host, io.ErrUnexpectedEOF)
	default:
		e = unreachable(x.host, err)
	}
	shown := *e
	shown.Message = redact(e.Message, x.secrets) + x.advice(e, x.refused != nil)
	shown.Type = redact(e.Type, x.secrets)
	if shown.Class == provider.Stalled {
		shown.Silent = time.Since(x.progress)
	}
	if shown.RequestID == "" {
		shown.RequestID = x.id
	}
	return &shown
}
