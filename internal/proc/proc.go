// Package proc runs other programs so that none of them outlives its run: each gets a
// session and process group of its own, no terminal and no input, and when it ends or
// is terminated, so is everything that it started.
package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// Command is a program to run.
type Command struct {
	Path string   // absolute; see [os/exec.LookPath]
	Args []string // with the program's name as the first
	Dir  string
	Env  []string // the whole environment; nil means that of this process

	Stdout io.Writer // gets the output; nil discards it. Not used after Run has returned
	Stderr io.Writer // nil: both go to Stdout, in the order in which they were written

	Grace time.Duration // between asking it to end and killing it; 0 means [DefaultGrace]
}

// DefaultGrace is how long programs have to end when they are asked to.
const DefaultGrace = time.Second

// leftoverGrace is how long processes that a program leaves behind have to end by
// themselves: often they are just the last stage of a pipe.
const leftoverGrace = 100 * time.Millisecond

// drain is how long output is awaited after all processes of the group are gone: a
// process that left the group may hold the pipe open forever.
const drain = 100 * time.Millisecond

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit code; 128 + the signal's number when a signal ended it
	Signal string // the signal that ended it, "" otherwise
	Killed bool   // it ended because ctx did
	Left   bool   // it ended by itself, but left processes behind, which were terminated
}

// Run starts the program and blocks until it has ended, its output is written
// and its process group is gone. When ctx ends, the group is asked to end
// (SIGTERM), and killed after the grace; then processes that left the group are
// killed as well where the system lets us find them (Linux). The error is about
// starting only; when writing to Stdout or Stderr fails, output is lost and the
// program runs on.
//
// When this process dies, in whatever way, what the run has started is terminated by
// a watchdog, a small process that the first run starts (Unix); on Windows the system
// does it. A process that has left its group on purpose may outlive its run but not
// this process: the watchdog kills it when this process is gone (Linux).
func Run(ctx context.Context, c Command) (Exit, error) {
	r := underWay.begin()
	defer r.end()
	p, err := start(c, r)
	if err != nil {
		return Exit{}, err
	}
	state, killed := await(ctx, p.process, p.exited, grace(c))
	exit := exitOf(state)
	exit.Killed = killed
	if !gone(p.process.Pid, leftoverGrace) {
		exit.Left = !killed
		terminateRest(p.process.Pid)
		if !gone(p.process.Pid, grace(c)) {
			killGroup(p.process.Pid)
			gone(p.process.Pid, leftoverGrace)
		}
	}
	if killed {
		killMarked(r.mark)
	}
	p.finish()
	return exit, nil
}

func grace(c Command) time.Duration {
	if c.Grace > 0 {
		return c.Grace
	}
	return DefaultGrace
}

// await waits for the program's end, and terminates it when ctx ends first.
func await(ctx context.Context, p *os.Process, exited <-chan *os.ProcessState, grace time.Duration) (state *os.ProcessState, killed bool) {
	select {
	case state := <-exited:
		return state, false
	case <-ctx.Done():
	}
	terminateGroup(p)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case state := <-exited:
		return state, true
	case <-timer.C:
	}
	killGroup(p.Pid)
	_ = p.Kill() // where there are no groups
	return <-exited, true
}

// gone waits until no process of the group is left, but no longer than limit.
func gone(pid int, limit time.Duration) bool {
	return poll(limit, func() bool { return !groupAlive(pid) })
}

// poll waits until done returns true, but no longer than limit. It is for changes
// that the system has no event for.
func poll(limit time.Duration, done func() bool) bool {
	if done() {
		return true
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return done()
		case <-tick.C:
			if done() {
				return true
			}
		}
	}
}

// running is a started program with its output pipes.
type running struct {
	process *os.Process
	exited  chan *os.ProcessState // gets one, when the program has ended
	pipes   []*os.File            // our ends
	drained chan struct{}         // closed when all output was read
}

// start starts the program and the reading of its output.
func start(c Command, r *run) (*running, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer null.Close()
	p := &running{exited: make(chan *os.ProcessState, 1), drained: make(chan struct{})}
	files := []*os.File{null}
	defer func() {
		for _, f := range files[1:] {
			f.Close()
		}
	}()
	for _, w := range []io.Writer{c.Stdout, c.Stderr} {
		if w == nil && len(files) == 2 {
			break
		}
		ours, theirs, err := os.Pipe()
		if err != nil {
			p.closePipes()
			return nil, fmt.Errorf("start %s: %w", c.Path, err)
		}
		p.pipes = append(p.pipes, ours)
		files = append(files, theirs)
	}
	attrFiles := files
	if c.Stderr == nil {
		attrFiles = []*os.File{null, files[1], files[1]}
	}
	if err := p.launch(c, r, &os.ProcAttr{
		Dir: c.Dir, Env: withMark(c.Env, r.mark), Files: attrFiles, Sys: separate(),
	}); err != nil {
		p.closePipes()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	go p.copy(c.Stdout, c.Stderr)
	return p, nil
}

// launch starts the program, and waits for its end in a goroutine of its own. That
// keeps its thread until then, because the parent-death signal comes when the thread
// that started the program ends. Nothing else runs on this thread: to wake a goroutine
// that is bound to a thread costs a switch of threads each time.
func (p *running) launch(c Command, r *run, attr *os.ProcAttr) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		process, err := os.StartProcess(c.Path, c.Args, attr)
		if err != nil {
			started <- err
			return
		}
		r.started(process.Pid) // at once: should we be killed, the watchdog finds the group by it
		p.process = process
		started <- nil
		state, _ := process.Wait() // fails only when called twice
		p.exited <- state
	}()
	return <-started
}

// copy reads all pipes to their ends.
func (p *running) copy(writers ...io.Writer) {
	defer close(p.drained)
	var others []chan struct{}
	for i := 1; i < len(p.pipes); i++ {
		done := make(chan struct{})
		others = append(others, done)
		go func() {
			defer close(done)
			pour(writers[i], p.pipes[i])
		}()
	}
	pour(writers[0], p.pipes[0])
	for _, done := range others {
		<-done
	}
}

// pour reads r to its end, also when w is nil or its writes fail: a program must not
// block or die because its output is not wanted.
func pour(w io.Writer, r io.Reader) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := r.Read(*buf)
		if n > 0 && w != nil {
			if _, failed := w.Write((*buf)[:n]); failed != nil {
				w = nil
			}
		}
		if err != nil {
			return
		}
	}
}

// buffers are what output is read with; most programs write little.
var buffers = sync.Pool{New: func() any {
	buf := make([]byte, 32<<10)
	return &buf
}}

// finish waits for the last output, but not for a process that holds the pipe
// open without being in our group.
func (p *running) finish() {
	limit := time.NewTimer(drain)
	defer limit.Stop()
	select {
	case <-p.drained:
	case <-limit.C:
	}
	p.closePipes() // ends a read that is still under way
	<-p.drained
}

func (p *running) closePipes() {
	for _, f := range p.pipes {
		f.Close()
	}
}
