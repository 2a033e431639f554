package builtin

import (
	"context"
	"sync"

	"github.com/cadre-dev/cadre/tool"
)

// Ledger knows which agent of the runtime last changed which file, and lets
// only one of them change a file at a time. All sessions share it. It is safe
// for use by many goroutines.
type Ledger struct {
	mu      sync.Mutex // never held across I/O
	moment  uint64     // counts changes
	changes map[string]change
	busy    map[string]chan struct{} // files that are being changed; closed at the end
}

// change is an agent's last change of a file.
type change struct {
	by     string // tool.Caller.Key
	name   string // of the agent, for others
	moment uint64
}

// NewLedger makes an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{changes: map[string]change{}, busy: map[string]chan struct{}{}}
}

// now is the moment of the latest change: a file read after this call shows
// every change up to it.
func (l *Ledger) now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moment
}

func (l *Ledger) last(path string) (change, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.changes[path]
	return c, ok
}

// begin claims a file for a change, and blocks while another agent holds it. It
// returns the cause of ctx when that ends first. The caller must call end.
func (l *Ledger) begin(ctx context.Context, path string) (end func(), err error) {
	for {
		l.mu.Lock()
		released, busy := l.busy[path]
		if !busy {
			mine := make(chan struct{})
			l.busy[path] = mine
			l.mu.Unlock()
			return func() { l.release(path, mine) }, nil
		}
		l.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *Ledger) release(path string, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, path)
	close(mine)
}

// note records that the caller changed the file, and returns the moment of it.
func (l *Ledger) note(caller tool.Caller, path string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moment++
	l.changes[path] = change{by: caller.Key(), name: nameFor(caller), moment: l.moment}
	return l.moment
}

// nameFor is how the caller is called towards other agents.
func nameFor(caller tool.Caller) string {
	switch {
	case caller.AgentName == "":
		return "another agent"
	case caller.Team != "" && caller.Depth == 0:
		return `teammate "` + caller.AgentName + `"`
	default:
		return `agent "` + caller.AgentName + `"`
	}
}
