package provider

import (
	"errors"
	"fmt"
	"time"
)

// Class says what kind of failure an [Error] is, and so what can be done.
type Class string

// The classes. Only Overloaded, RateLimit, Server, Network and Stalled pass by
// themselves and are retried.
const (
	Auth          Class = "authentication_failed" // 401, 403: no or wrong key
	Billing       Class = "billing_error"         // 402: no credit, quota used up
	RateLimit     Class = "rate_limit"            // 429
	Overloaded    Class = "overloaded"            // 529, 503
	Server        Class = "server_error"          // other 5xx
	Invalid       Class = "invalid_request"       // 400, 413, 422
	TooLong       Class = "prompt_too_long"       // 400 about the context window
	ModelNotFound Class = "model_not_found"       // 404
	Network       Class = "network"               // no connection, reset, TLS, proxy
	Stalled       Class = "stalled"               // nothing meaningful within the idle limit
	Malformed     Class = "malformed_response"    // a response that is not an answer
)

// Classes are all classes.
var Classes = []Class{
	Auth, Billing, RateLimit, Overloaded, Server, Invalid, TooLong, ModelNotFound, Network, Stalled, Malformed,
}

// Error is a failed request.
type Error struct {
	Class      Class
	Status     int           // HTTP status; 0 when there was no response
	Type       string        // the API's own error type, "" when none
	Message    string        // for people; holds no secret
	RequestID  string        //
	RetryAfter time.Duration // as the server asked; 0 when it did not
	Silent     time.Duration // of class Stalled: how long the server gave no sign
	Final      bool          // the cause will not pass, although its class usually does: a bad certificate, a proxy that requires a password
	Err        error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%d %s: %s", e.Status, e.Class, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Class, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Passing reports whether the same request may succeed later.
func (e *Error) Passing() bool {
	if e.Final {
		return false
	}
	switch e.Class {
	case RateLimit, Overloaded, Server, Network, Stalled:
		return true
	}
	return false
}

// ErrNoModel says that no model is configured.
var ErrNoModel = errors.New("no model configured")
