package job

import (
	"context"
	"fmt"
	"strings"
)

// Notice says to a job's owner that the job ended while nobody waited for it.
type Notice struct {
	Job    Info
	Result Result
}

// queue holds the notices of one owner. The pool's lock guards it.
type queue struct {
	notices        []Notice
	more           chan struct{} // closed when a notice comes
	readers        int           // blocked in Next
	unacknowledged int           // returned by Next
}

func (q *queue) push(n Notice) {
	q.notices = append(q.notices, n)
	close(q.more)
	q.more = make(chan struct{})
}

// queue finds or makes an owner's queue; it needs the lock.
func (p *Pool) queue(owner string) *queue {
	q := p.queues[owner]
	if q == nil {
		q = &queue{more: make(chan struct{})}
		p.queues[owner] = q
	}
	return q
}

// leaveQueue lets a queue go that nobody needs any more; it needs the lock.
func (p *Pool) leaveQueue(owner string, q *queue) {
	q.readers--
	p.dropQueue(owner, q)
}

func (p *Pool) dropQueue(owner string, q *queue) {
	if q.readers == 0 && q.unacknowledged == 0 && len(q.notices) == 0 {
		delete(p.queues, owner)
	}
}

// Next returns and removes the oldest notice of the owner, and blocks until there is one. The
// caller calls [Pool.Acknowledge] when the notice has reached its model. Next returns the
// cause of ctx when that ends, and [ErrClosed] when the pool is closed and nothing
// is left.
func (p *Pool) Next(ctx context.Context, owner string) (Notice, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queue(owner)
	q.readers++
	defer p.leaveQueue(owner, q)
	over := false
	for {
		switch {
		case ctx.Err() != nil:
			return Notice{}, context.Cause(ctx)
		case len(q.notices) > 0:
			n := q.notices[0]
			q.notices = q.notices[1:]
			q.unacknowledged++
			return n, nil
		case over:
			return Notice{}, ErrClosed
		}
		more := q.more
		p.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
		case <-p.over:
			over = true
		}
		p.mu.Lock()
	}
}

// Acknowledge says that a notice which Next returned has reached the owner's model, or
// never will: it does not count as waiting any more.
func (p *Pool) Acknowledge(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[owner]; q != nil && q.unacknowledged > 0 {
		q.unacknowledged--
		p.dropQueue(owner, q)
	}
}

// Waiting counts the notices that the owner has not acknowledged.
func (p *Pool) Waiting(owner string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[owner]; q != nil {
		return len(q.notices) + q.unacknowledged
	}
	return 0
}

// Text is the notice as the owner's model reads it (facts: claude-code §10).
// What others wrote in it cannot pass for a part of the frame.
func (n Notice) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<task-notification>\n<task-id>%s</task-id>\n", n.Job.ID)
	if n.Job.Kind == Shell {
		if n.Job.OutputFile != "" {
			fmt.Fprintf(&b, "<output-file>%s</output-file>\n", n.Job.OutputFile)
		}
		fmt.Fprintf(&b, "<status>%s</status>\n<summary>%s</summary>\n</task-notification>", n.Result.Status, framed(n.Summary()))
		if n.Job.OutputFile != "" {
			fmt.Fprintf(&b, "\nRead the output file to retrieve the result: %s", n.Job.OutputFile)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "<status>%s</status>\n<summary>%s</summary>\n<result>%s</result>\n", n.Result.Status, framed(n.Summary()), framed(n.Result.Text))
	fmt.Fprintf(&b, "<usage>total_tokens: %d\ntool_uses: %d\nduration_ms: %d</usage>\n</task-notification>",
		n.Result.Tokens, n.Result.ToolUses, n.Job.Ended.Sub(n.Job.Started).Milliseconds())
	if n.Job.OutputFile != "" {
		fmt.Fprintf(&b, "\nFull transcript available at: %s", n.Job.OutputFile)
	}
	return b.String()
}

// Summary says in one line what ended how.
func (n Notice) Summary() string {
	what := "Agent"
	if n.Job.Kind == Shell {
		what = "Background command"
	}
	title := strings.Join(strings.Fields(n.Job.Title), " ")
	return fmt.Sprintf("%s \"%s\" %s", what, title, n.ending())
}

func (n Notice) ending() string {
	shell := n.Job.Kind == Shell
	switch n.Result.Status {
	case Completed:
		if shell {
			return fmt.Sprintf("completed (exit code %d)", n.Result.ExitCode)
		}
		return "completed"
	case Failed:
		if shell && n.Result.Err == nil {
			return fmt.Sprintf("failed with exit code %d", n.Result.ExitCode)
		}
		return fmt.Sprintf("failed: %v", n.Result.Err)
	default:
		return fmt.Sprintf("was ended: %v", n.Result.Err)
	}
}

// framed makes sure that text can neither open nor close a tag of the frame.
var frame = strings.NewReplacer(
	"<task-notification", "&lt;task-notification", "</task-notification", "&lt;/task-notification",
	"<task-id", "&lt;task-id", "</task-id", "&lt;/task-id",
	"<status", "&lt;status", "</status", "&lt;/status",
	"<summary", "&lt;summary", "</summary", "&lt;/summary",
	"<result", "&lt;result", "</result", "&lt;/result",
	"<usage", "&lt;usage", "</usage", "&lt;/usage",
	"<output-file", "&lt;output-file", "</output-file", "&lt;/output-file",
)

func framed(text string) string { return frame.Replace(text) }
