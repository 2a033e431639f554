package session

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// restTime is how long a tree is at rest before memory is given back to the system. A
// team whose members work in turns does not get there.
const restTime = time.Second

// worthwhile is how much memory that nothing uses the process keeps for what comes
// next: to give it back takes a collection, and the next turns have to ask for it again.
const worthwhile = 16 << 20

// giveBack returns memory to the system that a crowd of agents needed while it worked.
// Left alone, Go keeps as much again as is in use, for as long as the team waits.
type giveBack struct {
	idle func() bool // no session works
	do   func()

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// later is called whenever a session has come to rest.
func (g *giveBack) later() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case g.timer == nil:
		g.timer = time.AfterFunc(restTime, g.now)
	default:
		g.timer.Reset(restTime)
	}
}

func (g *giveBack) now() {
	if g.idle() {
		g.do()
	}
}

// close stops what has not begun.
func (g *giveBack) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// giveMemoryBack returns what nothing uses, if it is much.
func giveMemoryBack() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	free, objects, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	if free+objects > live+worthwhile {
		debug.FreeOSMemory()
	}
}
