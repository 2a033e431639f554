package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/fakeapi"
)

// arrival is a request as the model's server saw it.
type arrival struct {
	at   time.Time // when its body was whole
	size int       // bytes of the body
}

// model is a mock model on the loopback device. It notes when each request came.
type model struct {
	url    string // the base URL of the Messages API
	server *http.Server
	served chan error

	mu     sync.Mutex
	answer func(n int, req *fakeapi.Request) fakeapi.Reply // n = 1, 2, … since expect
	seen   []arrival
}

// serve starts a model; close ends it.
func serve() (*model, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{url: "http://" + listener.Addr().String(), served: make(chan error, 1)}
	m.server = &http.Server{Handler: fakeapi.Handler(m.reply), ReadHeaderTimeout: time.Minute}
	go func() { m.served <- m.server.Serve(listener) }()
	return m, nil
}

func (m *model) close() error {
	err := m.server.Close()
	if served := <-m.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (m *model) reply(req *fakeapi.Request) fakeapi.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, arrival{req.At, len(req.Raw)})
	return m.answer(len(m.seen), req)
}

// expect forgets what came and sets how the next requests are answered.
func (m *model) expect(answer func(n int, req *fakeapi.Request) fakeapi.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer, m.seen = answer, nil
}

// arrivals lists what came since expect.
func (m *model) arrivals() []arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// subAgents answers the first request with that many calls of Agent, each of their
// requests with text, and then the last one.
func subAgents(agents int) func(int, *fakeapi.Request) fakeapi.Reply {
	return func(n int, _ *fakeapi.Request) fakeapi.Reply {
		switch {
		case n > agents+1:
			return fakeapi.Answer(fakeapi.Text("All of it is done."))
		case n > 1:
			return fakeapi.Answer(fakeapi.Text("My part is done."))
		}
		var calls []fakeapi.Block
		for i := range agents {
			calls = append(calls, fakeapi.ToolUse(fmt.Sprintf("toolu_%05d", i), "Agent", fmt.Sprintf(
				`{"subagent_type":"general-purpose","description":"Part %d","prompt":"Do part %d."}`, i, i)))
		}
		return fakeapi.Answer(calls...)
	}
}

// toolTurns answers with that many calls of the shell, and then with text.
func toolTurns(turns int) func(int, *fakeapi.Request) fakeapi.Reply {
	return func(n int, _ *fakeapi.Request) fakeapi.Reply {
		if n > turns {
			return fakeapi.Answer(fakeapi.Text("All of it is done."))
		}
		return fakeapi.Answer(fakeapi.ToolUse(
			fmt.Sprintf("toolu_%05d", n), "Bash", fmt.Sprintf(`{"command":"true %d","description":"Does nothing"}`, n), // not the same again: cadre would end that
		))
	}
}
