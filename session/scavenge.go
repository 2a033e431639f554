package session

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// idleTime is how long a tree is idle before memory is returned to the system. A
// team whose members work in turns does not get there.
const idleTime = time.Second

// minScavenged is how much unused memory is worth returning: it takes a collection, and
// the next turns have to ask for the memory again.
const minScavenged = 16 << 20

// scavenger returns memory to the system that a crowd of agents needed while it worked.
// Left alone, Go keeps as much again as is in use, for as long as the team waits.
type scavenger struct {
	idle func() bool // no session works
	do   func()

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// later is called whenever a session has become idle.
func (g *scavenger) later() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
	case g.timer == nil:
		g.timer = time.AfterFunc(idleTime, g.now)
	default:
		g.timer.Reset(idleTime)
	}
}

func (g *scavenger) now() {
	if g.idle() {
		g.do()
	}
}

// close stops what has not begun.
func (g *scavenger) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// scavenge returns unused memory to the system, if it is much. What is in use is known
// since the last collection, as half of what sets off the next.
func scavenge() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapSys-m.HeapReleased > m.NextGC/2+minScavenged {
		debug.FreeOSMemory()
	}
}
