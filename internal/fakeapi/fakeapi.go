// Package fakeapi is a model server for tests and benchmarks. It speaks the
// streams of the Messages API (/v1/messages) and of Chat Completions
// (/v1/chat/completions), is driven by a Go function for each request, records
// what it was sent, and can fail in the ways that servers and networks do.
package fakeapi

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Script answers a request. It is called by the goroutine of the connection, by
// many at once when many requests come.
type Script func(*Request) Reply

// Server is a fake model server. Its methods may be called from any goroutine.
type Server struct {
	// URL is the root of the server: the base URL for the Messages API; that
	// of Chat Completions is URL + "/v1".
	URL string

	script Script
	keep   bool
	test   *httptest.Server // nil: the caller serves

	mu       sync.Mutex
	count    int
	requests []*Request
}

// Handler makes a server that the caller serves: it is an [http.Handler]. It
// keeps no requests, so that it may run for long. A stand-alone process serves
// it on its listener.
func Handler(script Script) *Server { return &Server{script: script} }

// Start serves on a free port of the loopback device until Close.
func Start(script Script) *Server {
	s := prepare(script)
	s.test.Start()
	s.URL = s.test.URL
	return s
}

// StartDiscarding is Start with one reply for all requests, which are not kept:
// for benchmarks.
func StartDiscarding(reply Reply) *Server {
	s := prepare(func(*Request) Reply { return reply })
	s.keep = false
	s.test.Start()
	s.URL = s.test.URL
	return s
}

// StartTLS is Start over HTTPS, with HTTP/2 for those who can, and a certificate
// that only Client trusts.
func StartTLS(script Script) *Server {
	s := prepare(script)
	s.test.EnableHTTP2 = true
	s.test.StartTLS()
	s.URL = s.test.URL
	return s
}

// StartInMemory serves on connections that exist only in this process, for
// tests in a synctest bubble: nothing in it waits for the operating system.
// Only Client reaches it.
func StartInMemory(script Script) *Server {
	s := prepare(script)
	pipes := newPipes()
	s.test.Listener.Close()
	s.test.Listener = pipes
	s.test.Start()
	s.URL = "http://model.test"
	s.test.Client().Transport.(*http.Transport).DialContext = pipes.dial
	return s
}

// prepare makes a server that does not serve yet.
func prepare(script Script) *Server {
	s := &Server{script: script, keep: true}
	s.test = httptest.NewUnstartedServer(s)
	s.test.Config.ErrorLog = log.New(io.Discard, "", 0) // faults are wanted here
	return s
}

// Client reaches the server, by whatever way it was started.
func (s *Server) Client() *http.Client { return s.test.Client() }

// Close ends the server and all its connections.
func (s *Server) Close() {
	s.Client().CloseIdleConnections()
	s.test.CloseClientConnections()
	s.test.Close()
}

// Requests lists the requests so far, in the order in which their bodies were
// whole.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &Request{Path: r.URL.Path, Header: r.Header.Clone(), Remote: r.RemoteAddr, Proto: r.Proto, Length: r.ContentLength}
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		req.Dialect = Chat
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	req.Raw, req.At = body, time.Now()
	s.record(req)
	reply := s.script(req)
	newStream(w, r, req.Dialect, &reply).send()
}

func (s *Server) record(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	req.Seq = s.count
	if s.keep {
		s.requests = append(s.requests, req)
	}
}
