package wire

import (
	"context"
	"net/http"
	"time"

	"github.com/cadre-dev/cadre/provider"
)

// remindAfter is how long a server is waited for before that is announced. Each
// further announcement comes after twice the time.
const remindAfter = 10 * time.Second

// await receives what the server sends next. A long silence meanwhile is announced
// to the consumer, which may be called from this goroutine only; when it breaks off,
// the request is ended first.
func await[T any](x *exchange, next <-chan T) T {
	select {
	case v := <-next:
		return v
	default:
	}
	x.reminder.Reset(time.Until(x.progress.Add(x.remindAt)))
	defer x.reminder.Stop()
	for {
		select {
		case v := <-next:
			return v
		case <-x.reminder.C:
			x.remind()
			x.reminder.Reset(time.Until(x.progress.Add(x.remindAt)))
		}
	}
}

// remind announces the silence that lasts.
func (x *exchange) remind() {
	silent := x.remindAt
	x.remindAt *= 2
	if x.stopped || silent >= x.limit {
		return
	}
	x.stopped = !x.consumer(provider.Waiting{Host: x.host, Silent: silent, Limit: x.limit})
	if x.stopped {
		x.dog.Stop()
	}
}

// response is what a server sends, received by one goroutine for the whole exchange:
// it reads a piece ahead, so that the end of an answer is mostly there when it is
// asked for, and no goroutine is started for each read.
type response struct {
	x     *exchange
	heads chan head
	full  chan piece  // what was read
	free  chan []byte // what can be read into; closed: nothing more is wanted
	ended chan struct{}

	buffers [2][2 << 10]byte
	current piece
	rest    []byte // of the current piece
}

// head is the beginning of a response.
type head struct {
	resp *http.Response
	err  error
}

// piece is what one read of the body returned.
type piece struct {
	bytes []byte
	err   error
}

// open sends the request. The caller must close the response.
func (x *exchange) open(ctx context.Context, body *Body) *response {
	r := &response{x: x, heads: make(chan head, 1), ended: make(chan struct{})}
	r.full, r.free = make(chan piece, len(r.buffers)), make(chan []byte, len(r.buffers))
	for i := range r.buffers {
		r.free <- r.buffers[i][:]
	}
	go r.receive(ctx, body)
	return r
}

func (r *response) receive(ctx context.Context, body *Body) {
	defer close(r.ended)
	resp, err := r.x.send(ctx, body)
	r.heads <- head{resp, err}
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for buf := range r.free {
		n, err := resp.Body.Read(buf)
		r.full <- piece{buf[:n], err}
		if err != nil {
			return
		}
	}
}

// header waits for the beginning of the response, whose body is read with Read.
func (r *response) header() (http.Header, error) {
	h := await(r.x, r.heads)
	if h.err != nil {
		return nil, h.err
	}
	return h.resp.Header, nil
}

// Read implements [io.Reader].
func (r *response) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.current.err == nil {
		if r.current.bytes != nil {
			r.free <- r.current.bytes[:cap(r.current.bytes)]
		}
		r.current = await(r.x, r.full)
		r.rest = r.current.bytes
	}
	if len(r.rest) == 0 {
		return 0, r.current.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// close ends the request, if it still goes on, and waits for that.
func (r *response) close() {
	r.x.dog.Stop()
	close(r.free)
	<-r.ended
}
