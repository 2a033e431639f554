// Package job is running work, which goes on whether anyone waits for it or not: shell commands
// and sub-agents. Running is one thing and waiting another: who waits may leave
// or be sent away, and the job goes on; nothing is started twice. A job ends
// exactly once, and its end reaches exactly one of those who wait for it or,
// when nobody does, its owner's queue of notices.
package job

import (
	"context"
	"errors"
	"time"
)

// Kind is the kind of work.
type Kind string

// The kinds.
const (
	Shell Kind = "shell"
	Agent Kind = "agent"
)

// Status is where a job stands. All but Running are final.
type Status string

// The statuses.
const (
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Killed    Status = "killed"
)

// Errors of waiting and starting, and causes of a job's end.
var (
	ErrDetached = errors.New("the job was moved to the background")
	ErrStopped  = errors.New("the job was stopped")
	ErrClosed   = errors.New("the program is ending")
)

// Spec describes a job to start.
type Spec struct {
	ID    string // "" makes a new one
	Kind  Kind
	Title string // for people: what it is about
	Owner string // key of the session that gets the notice: tool.Caller.Key
	Call  string // the tool_use that started it
	Agent string // of an agent job: id of the agent's session, with which it can be resumed

	// Waited says that the starter will call Wait or WaitOrStop, once. It counts
	// as waiting from the start, so a job that ends at once still ends waited.
	Waited bool

	// Output names the file for what the job says, given its id. A shell job
	// writes it when it is in the background or has much to say; for other jobs
	// it is only named. nil: there is no file.
	Output func(id string) string
}

// Info describes a job. It is a copy.
type Info struct {
	ID         string
	Kind       Kind
	Title      string
	Owner      string
	Call       string
	Status     Status
	Background bool // nobody waits for it
	OutputFile string
	Started    time.Time
	Ended      time.Time // zero while it runs
}

// Result is how a job ended, as its run function returns it. An empty Status is
// filled in: Killed when the job was stopped, Failed when there is an Err, else
// Completed.
type Result struct {
	Status   Status
	ExitCode int    // of a shell job
	Text     string // the last words of an agent
	Tokens   int    // of an agent: in all
	ToolUses int
	Err      error // why it failed or was killed
}

// Job is one piece of running work. All methods may be called by anyone at any
// time.
type Job struct {
	pool   *Pool
	cancel context.CancelCauseFunc
	out    *Output       // nil for jobs that are not shell jobs
	done   chan struct{} // closed when the end is stored and announced
	seq    uint64        // order of starting
	keeper *keeper       // nil when the job is not kept

	// Guarded by pool.mu.
	info      Info
	waiting   map[*waiter]struct{}
	reserved  *waiter // the starter's place, until it calls Wait
	ended     bool    // decided; the rest of the end follows
	announced bool    // its notice, if any, is in the queue, and done is closed
	result    Result
}

// waiter is one who waits for a job.
type waiter struct {
	sent     chan struct{} // closed when it is sent away
	detached bool          // the same, guarded by pool.mu
}

// ID is the id of the job: b and six hexadecimal digits for a shell, a and six
// for an agent (facts: claude-code §10).
func (j *Job) ID() string { return j.info.ID } // set before the job is known to anyone

// Info describes the job.
func (j *Job) Info() Info {
	j.pool.mu.Lock()
	defer j.pool.mu.Unlock()
	return j.describe()
}

// describe needs the pool's lock.
func (j *Job) describe() Info {
	info := j.info
	info.Background = len(j.waiting) == 0
	return info
}

// Output is where a shell job writes what it says; nil for other jobs.
func (j *Job) Output() *Output { return j.out }

// Done is closed when the job has ended and its end was announced. Watching it is
// not waiting: the owner still gets its notice.
func (j *Job) Done() <-chan struct{} { return j.done }

// Result is how the job ended; false while it runs.
func (j *Job) Result() (Result, bool) {
	select {
	case <-j.done:
		return j.result, true
	default:
		return Result{}, false
	}
}

// Stop makes the job end, with this cause (nil: [ErrStopped]). It does not
// wait: see Done. A job that has ended is left alone.
func (j *Job) Stop(cause error) {
	if cause == nil {
		cause = ErrStopped
	}
	j.cancel(cause)
}

// Wait blocks until the job has ended and returns its result. It returns
// [ErrDetached] when the waiting is ended by Detach, and the cause of ctx when
// that ends first: the job goes on in the background in both cases. Who gets
// the result here will find no notice of it. It is for the owner; others watch
// Done.
func (j *Job) Wait(ctx context.Context) (Result, error) {
	w := j.join()
	select {
	case <-j.done:
	case <-w.sent:
	case <-ctx.Done():
	}
	return j.leave(ctx, w)
}

// WaitOrStop is [Job.Wait] for those who do not want the job without their
// waiting: when ctx ends, the job is stopped with its cause, and its result is
// still waited for.
func (j *Job) WaitOrStop(ctx context.Context) (Result, error) {
	w := j.join()
	select {
	case <-j.done:
	case <-w.sent:
	case <-ctx.Done():
		j.Stop(context.Cause(ctx))
		select {
		case <-j.done:
		case <-w.sent:
		}
	}
	return j.leave(ctx, w)
}

// join makes the caller one who waits.
func (j *Job) join() *waiter {
	j.pool.mu.Lock()
	defer j.pool.mu.Unlock()
	if w := j.reserved; w != nil {
		j.reserved = nil
		return w
	}
	w := newWaiter()
	if !j.ended {
		j.waiting[w] = struct{}{}
	}
	return w
}

func newWaiter() *waiter { return &waiter{sent: make(chan struct{})} }

// leave ends the waiting. What happened first, by the pool's lock, decides what
// the caller gets, whichever of the channels woke it.
func (j *Job) leave(ctx context.Context, w *waiter) (Result, error) {
	j.pool.mu.Lock()
	if w.detached {
		j.pool.mu.Unlock()
		return Result{}, ErrDetached
	}
	if j.ended {
		j.pool.mu.Unlock()
		<-j.done
		return j.result, nil
	}
	delete(j.waiting, w)
	alone := len(j.waiting) == 0
	j.pool.mu.Unlock()
	if alone {
		j.keepOutput()
	}
	return Result{}, context.Cause(ctx)
}

// Detach moves the job to the background: the waiting of everybody ends. It
// reports whether somebody was sent away; a job that has ended, or that nobody
// waits for, is left alone.
func (j *Job) Detach() bool {
	if !j.waitedFor() {
		return false
	}
	j.keepOutput() // before those who waited tell where it is
	j.pool.mu.Lock()
	defer j.pool.mu.Unlock()
	if j.ended || len(j.waiting) == 0 {
		return false
	}
	for w := range j.waiting {
		w.detached = true
		close(w.sent)
	}
	clear(j.waiting)
	return true
}

func (j *Job) waitedFor() bool {
	j.pool.mu.Lock()
	defer j.pool.mu.Unlock()
	return !j.ended && len(j.waiting) > 0
}

// keepOutput puts the output into its file, where it can be read from while the
// job runs.
func (j *Job) keepOutput() {
	if j.out != nil {
		_ = j.out.Persist() // Output.Err returns it
	}
}
