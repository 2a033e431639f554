package wire

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// retryAfter is how long the server asks to wait: retry-after-ms, or
// retry-after in seconds or as a date (RFC 9110 §10.2.3). It is 0 when the
// server does not ask, or for less than nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	asked := h.Get("Retry-After")
	if d, ok := number(asked, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(asked)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent // the server's clock against itself, since ours may be wrong
	}
	return max(0, at.Sub(now))
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	if n *= float64(unit); n > math.MaxInt64/2 {
		return math.MaxInt64 / 2, true
	}
	return max(0, time.Duration(n)), true
}
