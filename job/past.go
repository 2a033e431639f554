package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A job ends with its process at the latest. What a killed one could not say is
// said by the next process that opens the session: [Lost] is the end of what ran,
// a call that never got its result learns what became of its job, and each end
// that nobody heard of becomes the notice that it would have been.

// errLost is why a job ended that nobody ended.
var errLost = errors.New("the program was stopped while it ran")

// Lost is the end of a job that ran when its process ended.
func Lost() End {
	return End{Status: Killed, At: time.Now(), Unwaited: true, Error: errLost.Error()}
}

// keeper is where the jobs of an owner are kept. The pool's lock guards used.
type keeper struct {
	store Store
	used  map[string]bool // ids
}

// Adopt lets the jobs of an owner be kept in a store from now on, until
// [Pool.Disown], and returns what earlier processes have kept there. Jobs of an
// owner that was not adopted are not kept.
func (p *Pool) Adopt(ctx context.Context, owner string, store Store) (*Past, error) {
	records, err := store.All(ctx)
	if err != nil {
		return nil, err
	}
	k := &keeper{store, make(map[string]bool, len(records))}
	for _, r := range records {
		k.used[r.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepers[owner] = k
	return &Past{p, owner, records}, nil
}

// Disown forgets where the jobs of an owner are kept. Those that still run are
// kept to their end.
func (p *Pool) Disown(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keepers, owner)
}

// Past is the jobs that earlier processes ran for an owner. All have ended.
type Past struct {
	pool    *Pool
	owner   string
	records []Record
}

// Receipt identifies the notice of a job beside a transcript.
func Receipt(id string) string { return "job-" + id }

// OfCall says what became of the jobs of a call whose result was never kept, for
// the model; "" when it had none. Where the text stands in the transcript, the
// receipts do too: no notice of those jobs is needed.
func (p *Past) OfCall(call string) (text string, receipts []string) {
	var lines []string
	for _, r := range p.records {
		if r.Call == call && call != "" {
			lines, receipts = append(lines, r.fate()), append(receipts, Receipt(r.ID))
		}
	}
	return strings.Join(lines, " "), receipts
}

// Recall queues a notice for each job that ended while nobody waited and whose
// receipt is not among those of the transcript.
func (p *Past) Recall(receipts []string) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	for _, r := range p.records {
		if r.End != nil && r.End.Unwaited && !slices.Contains(receipts, Receipt(r.ID)) {
			p.pool.queue(p.owner).push(r.notice(p.owner))
		}
	}
}

// fate is one or two sentences on what became of a job.
func (r Record) fate() string {
	what := "command"
	if r.Kind == Agent {
		what = "sub-agent"
	}
	var b strings.Builder
	switch {
	case r.End == nil || r.End.Error == errLost.Error():
		fmt.Fprintf(&b, "The %s (ID: %s) was still running then, and was ended.", what, r.ID)
	case r.Kind == Shell:
		fmt.Fprintf(&b, "The command itself (ID: %s) had ended before: %s, exit code %d.", r.ID, r.End.Status, r.End.ExitCode)
	default:
		fmt.Fprintf(&b, "The sub-agent (ID: %s) had ended before: %s.", r.ID, r.End.Status)
	}
	if hint := r.hint(); hint != "" {
		b.WriteString(" " + hint)
	}
	return b.String()
}

// hint says what is left of a job.
func (r Record) hint() string {
	switch {
	case r.Kind == Agent && r.Agent != "":
		return fmt.Sprintf("What it did is kept: it can be resumed with its agentId, %s.", r.Agent)
	case r.Kind == Shell && r.hasOutput():
		return fmt.Sprintf("What it printed until then is in %s.", r.OutputFile)
	}
	return ""
}

// hasOutput reports whether the output was put into its file.
func (r Record) hasOutput() bool {
	info, err := os.Stat(r.OutputFile)
	return err == nil && info.Mode().IsRegular()
}

// notice is the one that the process which ran the job did not deliver any more.
func (r Record) notice(owner string) Notice {
	n := Notice{
		Job: Info{
			ID: r.ID, Kind: r.Kind, Title: r.Title, Owner: owner, Call: r.Call, Status: r.End.Status,
			Background: true, Started: r.Started, Ended: r.End.At,
		},
		Result: Result{
			Status: r.End.Status, ExitCode: r.End.ExitCode, Text: r.End.Text, Tokens: r.End.Tokens, ToolUses: r.End.ToolUses,
		},
	}
	if r.End.Error != "" {
		n.Result.Err = errors.New(r.End.Error)
	}
	if r.hasOutput() {
		n.Job.OutputFile = r.OutputFile
	}
	if r.Kind == Agent && n.Result.Text == "" {
		n.Result.Text = r.hint()
	}
	return n
}

// begin keeps a job that is about to run.
func (j *Job) begin(ctx context.Context, agent string) error {
	if j.keeper == nil {
		return nil
	}
	i := j.info // set before the job is known to anyone
	return j.keeper.store.Begin(ctx, Record{
		ID: i.ID, Kind: i.Kind, Title: i.Title, Call: i.Call, Agent: agent, OutputFile: i.OutputFile, Started: i.Started,
	})
}

// keepEnd keeps the end of a job, before anybody hears of it.
func (j *Job) keepEnd(ctx context.Context, info Info, r Result, unwaited bool) error {
	if j.keeper == nil {
		return nil
	}
	e := End{
		Status: r.Status, At: info.Ended, Unwaited: unwaited, ExitCode: r.ExitCode, Tokens: r.Tokens, ToolUses: r.ToolUses,
	}
	if unwaited {
		e.Text = r.Text
	}
	if r.Err != nil {
		e.Error = r.Err.Error()
	}
	return j.keeper.store.End(ctx, info.ID, e)
}
