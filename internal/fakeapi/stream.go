package fakeapi

import (
	"io"
	"maps"
	"net/http"
)

// stream sends one reply.
type stream struct {
	w       http.ResponseWriter
	gone    <-chan struct{} // closed when the client goes away
	dialect Dialect
	reply   *Reply
}

func newStream(w http.ResponseWriter, r *http.Request, d Dialect, reply *Reply) *stream {
	return &stream{w: w, gone: r.Context().Done(), dialect: d, reply: reply}
}

func (s *stream) send() {
	f := s.reply.Faults
	if !s.pass(f.Gate) {
		return
	}
	if f.CutHeaders {
		cut()
	}
	maps.Copy(s.w.Header(), s.reply.Header)
	if s.reply.Status != 0 {
		s.refuse()
	} else {
		s.answer()
	}
	if f.HoldOpen {
		<-s.gone
	}
}

func (s *stream) refuse() {
	s.w.WriteHeader(s.reply.Status)
	if s.reply.Body != nil {
		_, _ = io.Copy(s.w, s.reply.Body) // the client may go away before the end
	}
	s.flush()
}

func (s *stream) answer() {
	if s.w.Header().Get("Content-Type") == "" {
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if s.dialect == Messages {
		s.w.Header().Set("Request-Id", "req_fake")
	} else {
		s.w.Header().Set("X-Request-Id", "req_fake")
	}
	s.w.WriteHeader(http.StatusOK)
	s.flush()
	s.events(s.reply.Faults)
}

func (s *stream) events(f Faults) {
	for k, event := range s.reply.EventsOf(s.dialect) {
		if f.Cut && k >= f.CutAfter {
			cut()
		}
		if f.EventGate != nil && !s.pass(f.EventGate(k)) {
			return
		}
		s.write(event, f.Trickle)
	}
	if f.Cut {
		cut()
	}
}

func (s *stream) write(event []byte, trickle bool) {
	if !trickle {
		_, _ = s.w.Write(event)
		s.flush()
		return
	}
	for i := range event {
		_, _ = s.w.Write(event[i : i+1])
		s.flush()
	}
}

func (s *stream) flush() { _ = http.NewResponseController(s.w).Flush() }

// pass waits at a gate, and reports whether the client is still there.
func (s *stream) pass(gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-s.gone:
		return false
	}
}

// cut closes the connection without a proper end. net/http does so on
// this panic.
func cut() { panic(http.ErrAbortHandler) }
