package job

import (
	"context"
	"time"
)

// Record is what is kept of a job.
type Record struct {
	ID         string    `json:"id"`
	Kind       Kind      `json:"kind"`
	Title      string    `json:"title"`
	Call       string    `json:"call,omitempty"`
	Agent      string    `json:"agent,omitempty"`      // of an agent job: id of the agent's session
	OutputFile string    `json:"outputFile,omitempty"` // where it is, or would be
	Started    time.Time `json:"started"`
	End        *End      `json:"end,omitempty"` // nil while it runs
}

// End is the terminal record of a job.
type End struct {
	Status   Status    `json:"status"`
	At       time.Time `json:"at"`
	Unwaited bool      `json:"unwaited,omitempty"` // its owner is to get a notice
	ExitCode int       `json:"exitCode,omitempty"`
	Text     string    `json:"text,omitempty"` // the last words of an agent; only when unwaited
	Tokens   int       `json:"tokens,omitempty"`
	ToolUses int       `json:"toolUses,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// Store keeps the jobs of one session, so that each has an end also when its
// process has none. Implementations pass the suite in internal/storetest. Only
// the process that has the session's transcript open writes, from any goroutine.
type Store interface {
	// Begin keeps a job that is about to run; its End is ignored. When it returns
	// nil, the record survives the kill of any process.
	Begin(ctx context.Context, r Record) error
	// End keeps how a job ended. Only the first end of a job counts, and none of a
	// job that is not kept.
	End(ctx context.Context, id string, e End) error
	// All lists the session's jobs in the order of their start.
	All(ctx context.Context) ([]Record, error)
	// EndUnfinished gives this end to every job that has none, of the session and when it
	// is a main session of all its agents. It is for the process that has just
	// opened the session: what an earlier one ran is not running any more.
	EndUnfinished(ctx context.Context, e End) error
}
