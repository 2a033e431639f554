//go:build unix

package proc

import (
	"os"
	"sync"

	"github.com/cadre-dev/cadre/internal/ids"
)

// underWay are the runs of this process. They belong to the process, not to a
// caller, because they are kept for its death.
var underWay runs

// runs keeps the list of what this process is running, and a watchdog that ends
// what the list names when this process dies.
type runs struct {
	open sync.Once
	base string // what the marks of this process begin with
	list *list  // nil when it cannot be had

	mu   sync.Mutex
	dir  string // where the list lies; "": it has no name
	last int    // number of the latest run
	dog  *watchdog
}

// run is one run, from before its program starts until its group is gone.
type run struct {
	mark  string // stands in the environment of all that it starts
	entry *entry // nil without a list
}

// begin writes a run down, before its program starts: were it done afterwards,
// this process could be killed in between. For the same reason the first run
// starts the watchdog before its program, and others wait for that. Without
// one programs run all the same, and the next run tries again.
func (rs *runs) begin() *run {
	rs.open.Do(rs.openList)
	r := &run{mark: rs.nextMark()}
	if rs.list != nil {
		r.entry = rs.list.add(r.mark)
		rs.watch()
	}
	return r
}

// started tells which process group the run's program leads.
func (r *run) started(group int) {
	if r.entry != nil {
		r.entry.started(group)
	}
}

// end says that nothing of the run is left, but what has left its group.
func (r *run) end() {
	if r.entry != nil {
		r.entry.remove()
	}
}

func (rs *runs) nextMark() string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last++
	return markOf(rs.base, rs.last)
}

// watch starts a watchdog when there is none that lives. It returns when there is
// one, or there cannot be.
func (rs *runs) watch() {
	rs.mu.Lock()
	old := rs.dog
	if old.dead() {
		rs.dog = &watchdog{up: make(chan struct{})}
	}
	dog := rs.dog
	rs.mu.Unlock()
	if dog != old {
		dog.start(rs.base, rs.list)
	}
	<-dog.up
}

// openList makes the list, in the folder that was named for it or else without a
// name.
func (rs *runs) openList() {
	rs.mu.Lock()
	dir := rs.dir
	rs.mu.Unlock()
	rs.base = ids.Hex(baseLength)
	if dir != "" {
		rs.list = newRegistry(dir, rs.base)
	}
	if rs.list != nil {
		return
	}
	if file, err := os.CreateTemp("", "cadre-runs-"); err == nil {
		os.Remove(file.Name())
		rs.list = &list{file: file}
	}
}
