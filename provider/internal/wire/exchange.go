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

// Limits say how long a server may be silent.
type Limits struct {
	Idle     time.Duration // between two pieces of an answer
	Patience time.Duration // while the model may work unseen: before the first piece; twice that inside a thought or call
}

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	if l.Idle <= 0 {
		l.Idle = provider.DefaultIdle
	}
	if l.Patience <= 0 {
		l.Patience = max(provider.DefaultPatience, l.Idle)
	}
	return l
}

// Endpoint is where requests are sent.
type Endpoint struct {
	// Send makes one request through an SDK, whose retries are off, with m
	// as its only middleware.
	Send    func(ctx context.Context, body io.Reader, m Middleware) (*http.Response, error)
	Host    string
	Secrets []string // never shown
	Limits  Limits
}

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
	// Add takes in an event, and emits what it carries for the consumer.
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
	watched, dog := provider.Watch(ctx, e.Limits.Patience)
	defer dog.Stop()
	x := &exchange{Endpoint: e, dog: dog, answer: a, consumer: emit}
	resp, err := x.send(watched, body)
	if err != nil {
		return x.failure(ctx, watched, err)
	}
	defer resp.Body.Close()
	x.id = requestID(resp.Header, "")
	events := NewEvents(resp.Body)
	err = x.read(events)
	if x.stopped {
		return nil
	}
	if err != nil || !a.Whole() {
		if err = x.failure(ctx, watched, err); ctx.Err() != nil || !x.told {
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

// exchange is one attempt.
type exchange struct {
	*Endpoint
	dog      *provider.Watchdog
	answer   Answer
	consumer func(provider.Event) bool
	refused  error // why the response is no answer
	id       string
	told     bool
	stopped  bool
}

// send makes the request and turns a response that is no answer into an error.
func (x *exchange) send(ctx context.Context, body *Body) (*http.Response, error) {
	resp, err := x.Send(ctx, body.Reader(), func(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		req.ContentLength = body.Size()
		req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
		resp, err := next(req)
		if err != nil {
			return nil, err
		}
		if x.refused = x.check(resp); x.refused != nil {
			resp.Body.Close()
			return nil, x.refused
		}
		return resp, nil
	})
	if x.refused != nil { // the SDK prefers the context's error, which then is only ours
		return nil, x.refused
	}
	return resp, err
}

// check tells an answer from a refusal, by status and by what came.
func (x *exchange) check(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		x.dog.Within(errorBodyWithin)
		return refusal(resp)
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if mediaType == "text/event-stream" {
		return nil
	}
	// Servers label streams in many ways, so look at what came.
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

// firstByte peeks the first byte that is no white space.
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

// read takes in events until the answer is done, the stream ends, or the
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
			x.dog.Within(min(afterWhole, x.Limits.Idle))
		case silence == Short:
			x.dog.Within(x.Limits.Idle)
		case silence == Long:
			x.dog.Within(2 * x.Limits.Patience)
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
	x.told = true
	x.dog.Hold()
	x.stopped = x.stopped || !x.consumer(ev)
	x.dog.Within(x.Limits.Idle)
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
		e = unreachable(x.Host, io.ErrUnexpectedEOF)
	default:
		e = unreachable(x.Host, err)
	}
	shown := *e
	shown.Message = redact(e.Message, x.Secrets)
	shown.Type = redact(e.Type, x.Secrets)
	if shown.RequestID == "" {
		shown.RequestID = x.id
	}
	return &shown
}
