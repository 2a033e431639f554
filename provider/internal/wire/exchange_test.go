package wire

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cadre-dev/cadre/provider"
)

// served is a server's response of some pieces, after which it falls silent until the
// request is ended.
type served struct {
	pieces []string
	ctx    context.Context
	reads  int
	closed bool
}

func (s *served) RoundTrip(req *http.Request) (*http.Response, error) {
	s.ctx = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: s}, nil
}

func (s *served) Read(p []byte) (int, error) {
	s.reads++
	if len(s.pieces) == 0 {
		<-s.ctx.Done()
		return 0, context.Cause(s.ctx)
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *served) Close() error {
	s.closed = true
	return nil
}

// texts is an answer that passes on each event, and is whole after so many.
type texts struct{ whole, n int }

func (a *texts) Add(event Event, emit func(provider.Event) bool) (Silence, error) {
	a.n++
	emit(provider.TextDelta{Text: string(event.Data)})
	return Short, nil
}
func (a *texts) Done() bool            { return a.n == a.whole }
func (a *texts) Whole() bool           { return a.Done() }
func (a *texts) Reply() provider.Reply { return provider.Reply{} }

// TestAResponseIsReadAheadAndEnded: the reader is ahead of the consumer by no more than
// its buffers, nothing is lost between the two, and whoever breaks off gets back only
// when nobody reads any more.
func TestAResponseIsReadAheadAndEnded(t *testing.T) {
	long := "data: " + strings.Repeat("x", 9000) + "\n\n"
	for _, c := range []struct {
		name  string
		stop  int // after so many texts
		whole int
		want  int // bytes of text
	}{
		{"consumer breaks off", 2, 9, 9001},
		{"answer is whole", 9, 3, 9002},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &served{pieces: []string{"data: a\n\nda", long[2:], "data: b\n\n", "data: c\n\n", "data: d\n\n"}}
				e, err := NewEndpoint(API{BaseURL: "http://model.test", Client: &http.Client{Transport: server}})
				if err != nil {
					t.Fatal(err)
				}
				got, texted := 0, 0
				err = e.Exchange(t.Context(), &Body{}, &texts{whole: c.whole}, func(ev provider.Event) bool {
					synctest.Wait() // the reader goes as far as it can
					if text, ok := ev.(provider.TextDelta); ok {
						got += len(text.Text)
						texted++
					}
					if texted == 1 && server.reads != 2 {
						t.Errorf("%d reads while the first text is consumed", server.reads)
					}
					return texted < c.stop
				})
				if err != nil || got != c.want {
					t.Errorf("%d bytes, %v", got, err)
				}
				if !server.closed {
					t.Error("the response is not closed")
				}
			})
		})
	}
}
