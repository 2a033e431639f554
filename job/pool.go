package job

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
)

// Pool holds the jobs of one runtime. It is safe for use by many goroutines.
type Pool struct {
	report  func(owner string, body event.Body)
	running sync.WaitGroup
	over    chan struct{} // closed when the pool is closed and empty

	mu      sync.Mutex // never held across I/O or a call of report
	jobs    map[string]*Job
	ended   []string // ids of kept jobs that have ended, oldest first
	queues  map[string]*queue
	seq     uint64
	keepers map[string]*keeper // of owners whose jobs are kept
	closed  bool
}

// keepEnded is how many ended jobs can still be asked about.
const keepEnded = 256

// NewPool makes an empty pool. report is called with every start and every end, with
// the key of the job's owner; it must not block. It may be nil.
func NewPool(report func(owner string, body event.Body)) *Pool {
	if report == nil {
		report = func(string, event.Body) {}
	}
	return &Pool{report: report, over: make(chan struct{}), jobs: map[string]*Job{}, queues: map[string]*queue{}, keepers: map[string]*keeper{}}
}

// Start starts run in a goroutine of its own and returns at once. run has the
// values of ctx, but not its end: its context ends when the job is stopped. Its
// cause is then the cause of the stop. It is kept before it runs ([Pool.Adopt]).
// Errors: [ErrClosed], that the id is in use, that the job could not be kept.
func (p *Pool) Start(ctx context.Context, spec Spec, run func(ctx context.Context, j *Job) Result) (*Job, error) {
	asked := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	j := &Job{pool: p, cancel: cancel, done: make(chan struct{}), waiting: map[*waiter]struct{}{}}
	if err := p.add(j, spec); err != nil {
		cancel(err)
		return nil, err
	}
	if err := j.begin(asked, spec.Agent); err != nil {
		cancel(err)
		p.discard(j, err)
		return nil, err
	}
	if !spec.Waited {
		j.keepOutput()
	}
	p.report(spec.Owner, event.JobStarted{ID: j.info.ID, Kind: string(spec.Kind), Title: spec.Title})
	go func() {
		defer p.running.Done()
		defer cancel(nil)
		result := Result{Status: Failed, Err: fmt.Errorf("job %s did not return", j.info.ID)}
		defer func() { p.finish(context.WithoutCancel(ctx), j, result) }()
		result = run(ctx, j)
		result.complete(ctx)
	}()
	return j, nil
}

// add makes the job known.
func (p *Pool) add(j *Job, spec Spec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	id := spec.ID
	j.keeper = p.keepers[spec.Owner]
	if id == "" {
		id = p.newID(spec.Kind, j.keeper)
	} else if p.jobs[id] != nil {
		return fmt.Errorf("start job %s: the id is in use", id)
	}
	p.seq++
	j.seq = p.seq
	j.info = Info{
		ID: id, Kind: spec.Kind, Title: spec.Title, Owner: spec.Owner, Call: spec.Call, Status: Running, Started: time.Now(),
	}
	if spec.Output != nil {
		j.info.OutputFile = spec.Output(id)
	}
	if spec.Kind == Shell {
		j.out = newOutput(j.info.OutputFile)
	}
	if spec.Waited {
		j.reserved = newWaiter()
		j.waiting[j.reserved] = struct{}{}
	}
	if j.keeper != nil {
		j.keeper.used[id] = true
	}
	p.jobs[id] = j
	p.running.Add(1)
	return nil
}

// newID finds an id that no job has, nor one that is kept for the same owner.
func (p *Pool) newID(kind Kind, k *keeper) string {
	prefix := "b"
	if kind == Agent {
		prefix = "a"
	}
	for {
		id := prefix + ids.Hex(6)
		if p.jobs[id] == nil && (k == nil || !k.used[id]) {
			return id
		}
	}
}

// discard removes a job that could not be stored, and so must not run.
func (p *Pool) discard(j *Job, err error) {
	p.mu.Lock()
	j.ended, j.announced, j.result = true, true, Result{Status: Failed, Err: err}
	j.info.Status, j.info.Ended = Failed, time.Now()
	delete(p.jobs, j.info.ID)
	p.mu.Unlock()
	close(j.done)
	p.running.Done()
}

// complete fills in what the run function left open.
func (r *Result) complete(ctx context.Context) {
	if r.Status == "" {
		switch {
		case ctx.Err() != nil:
			r.Status = Killed
		case r.Err != nil:
			r.Status = Failed
		default:
			r.Status = Completed
		}
	}
	if r.Status == Killed && r.Err == nil {
		r.Err = context.Cause(ctx)
	}
}

// finish ends the job. Whether it ended waited is decided once, under the lock;
// those who waited then leave with the result however their waiting ends. The end
// is kept before anybody hears of it.
func (p *Pool) finish(ctx context.Context, j *Job, result Result) {
	p.mu.Lock()
	unwaited := len(j.waiting) == 0
	j.ended, j.result = true, result
	j.info.Status, j.info.Ended = result.Status, time.Now()
	info := j.describe()
	p.mu.Unlock()

	if j.out != nil {
		j.out.finish(unwaited)
	}
	if err := j.keepEnd(ctx, info, result, unwaited); err != nil {
		p.report(info.Owner, event.Noticed{Level: "warning", Text: err.Error()})
	}
	p.report(info.Owner, event.JobEnded{
		ID: info.ID, Kind: string(info.Kind), Title: info.Title, Status: string(info.Status), Unwaited: unwaited,
	})
	p.mu.Lock()
	j.announced = true
	if unwaited {
		p.keep(info.ID)
		p.queue(info.Owner).push(Notice{Job: info, Result: result})
	} else {
		delete(p.jobs, info.ID)
	}
	close(j.done) // under the lock: who has the notice finds the job ended
	p.mu.Unlock()
}

// keep leaves an ended job in the pool, and lets the oldest such go.
func (p *Pool) keep(id string) {
	p.ended = append(p.ended, id)
	if len(p.ended) > keepEnded {
		delete(p.jobs, p.ended[0])
		p.ended = slices.Delete(p.ended, 0, 1)
	}
}

// Job finds a job that runs, or that ended unwaited not too many jobs ago.
func (p *Pool) Job(id string) (*Job, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j, ok := p.jobs[id]
	return j, ok
}

// Active lists the running jobs of an owner in the order of their starting; all
// of them when owner is "". A job is among them until its notice, if there is one,
// waits in the queue.
func (p *Pool) Active(owner string) []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var jobs []*Job
	for _, j := range p.jobs {
		if !j.announced && (owner == "" || j.info.Owner == owner) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *Job) int { return int(a.seq) - int(b.seq) })
	infos := make([]Info, len(jobs))
	for i, j := range jobs {
		infos[i] = j.describe()
	}
	return infos
}

// Close stops all jobs, waits until they have ended, and lets those who wait
// for notices go. Nothing can be started any more. It may be called again.
func (p *Pool) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	for _, j := range p.jobs {
		j.Stop(ErrClosed) // does not block; an ended job ignores it
	}
	p.mu.Unlock()
	p.running.Wait()
	if first {
		close(p.over)
	}
}

// Release stops the jobs of an owner that has ended, waits for them, and forgets the
// owner ([Pool.Disown]).
func (p *Pool) Release(owner string, cause error) {
	for _, info := range p.Active(owner) {
		if j, ok := p.Job(info.ID); ok {
			j.Stop(cause)
			<-j.Done()
		}
	}
	p.Disown(owner)
}
