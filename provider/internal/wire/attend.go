package wire

import (
	"io"
	"time"

	"github.com/cadre-dev/cadre/provider"
)

// remindAfter is how long a server is waited for before that is announced. Each
// further announcement comes after twice the time.
const remindAfter = 10 * time.Second

// attend runs do, which waits for the server, in a goroutine of its own, and
// returns what do returns. A long silence meanwhile is announced to the consumer,
// which may be called from this goroutine only; when it breaks off, the request
// is ended first.
func attend[T any](x *exchange, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	x.reminder.Reset(time.Until(x.progress.Add(x.remindAt)))
	defer x.reminder.Stop()
	for {
		select {
		case o := <-done:
			return o.value, o.err
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

// attended is the body of a response, read with [attend].
type attended struct {
	x    *exchange
	body io.Reader
}

// Read implements [io.Reader].
func (a attended) Read(p []byte) (int, error) {
	return attend(a.x, func() (int, error) { return a.body.Read(p) })
}
