package provider

import (
	"errors"
	"fmt"
	"time"
)

// Outage is a row of passing failures without a whole answer between them. The
// zero Outage is none.
type Outage struct {
	Failures int
	Since    time.Time // when the server last gave a sign, as far as is known
	Last     *Error
}

// with is the outage after one more failure.
func (o Outage) with(failure *Error) Outage {
	if o.Failures == 0 {
		o.Since = time.Now().Add(-failure.Silent)
	}
	o.Failures++
	o.Last = failure
	return o
}

// after is the outage after an answer that broke off because of err; none when
// trying again will not help.
func (o Outage) after(err error) Outage {
	var failure *Error
	if !errors.As(err, &failure) || !failure.Passing() {
		return Outage{}
	}
	return o.with(failure)
}

// abandoned is the error of a request that is not sent again. It says how much
// was tried, so that it does not look like a single failure.
func (o Outage) abandoned() *Error {
	e := *o.Last
	e.Err = o.Last
	if o.Failures > 1 {
		e.Message += fmt.Sprintf(" (gave up after %d attempts in %s)", o.Failures, rounded(time.Since(o.Since)))
	}
	if asked := o.Last.RetryAfter; asked > 0 {
		e.Message += fmt.Sprintf(" (the server asks to wait %s)", rounded(asked))
	}
	return &e
}

// rounded shortens a duration for error texts.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
