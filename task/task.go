// Package task is the vocabulary of the shared task list: items with
// dependencies, the changes that may be made to them, and the store that keeps
// them. Its policy (what a change does to the list, which tasks can be claimed)
// is pure; stores only load, lock and save.
package task

import (
	"context"
	"errors"
	"strconv"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Status is how far a task is.
type Status string

// The statuses on the wire. Deleted is a change that removes the task; it is
// never stored.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Deleted    Status = "deleted"
)

// Task is one item of a list (facts: claude-code §3). Both ends of an edge have it: if a
// blocks b, then a.Blocks has b and b.BlockedBy has a. A completed blocker stays in
// BlockedBy; [Blockers] says whether a task is blocked.
type Task struct {
	ID          string
	Subject     string
	Description string
	ActiveForm  string // "" when absent
	Owner       string // "" when unassigned
	Status      Status
	Blocks      []string
	BlockedBy   []string
	Metadata    jsonx.Object // empty when absent
	Extra       jsonx.Object // fields that other programs wrote
}

// Internal reports whether the task is another program's bookkeeping
// (metadata._internal, facts: claude-code §4.2): never listed, never claimed.
func (t Task) Internal() bool {
	var internal bool
	ok, err := t.Metadata.Get("_internal", &internal)
	return ok && err == nil && internal
}

// Change says what to change of a task. A nil or empty field stays as it is.
type Change struct {
	Subject      *string
	Description  *string
	ActiveForm   *string
	Owner        *string // "" unassigns it
	ClaimFor     string  // who claims it: [ErrOwned] when another has it, [ErrBlocked] when it is pending and blocked
	Status       *Status // Deleted removes the task and its id from all others
	AddBlocks    []string
	AddBlockedBy []string
	Metadata     jsonx.Object // merged key by key; null deletes a key
}

// Outcome says what a change did.
type Outcome struct {
	Before Task
	After  Task
	Fields []string // what changed, in the order of facts §3.2: subject, description, activeForm, owner, metadata, status, blocks, blockedBy
}

// Errors of the policy. A store returns them unwrapped or wrapped.
var (
	ErrNotFound = errors.New("task not found")
	ErrCycle    = errors.New("dependency cycle")
	ErrBlocked  = errors.New("task is blocked")
	ErrOwned    = errors.New("task has another owner")
)

// Store keeps task lists. A list is named by a team's raw name or a session id.
// Implementations pass the suite in internal/storetest. All methods may be
// called from any goroutine and any process at once; they block while another
// process changes the list, at most until ctx ends. After an error the list is as it
// was, as far as tasks can be restored one by one, and repeating the call is safe.
type Store interface {
	// Create makes the list if needed and adds t under a new id, which no task
	// of the list ever had. Edges in t must name tasks that exist.
	Create(ctx context.Context, list string, t Task) (Task, error)
	// Get returns one task, or [ErrNotFound].
	Get(ctx context.Context, list, id string) (Task, error)
	// List returns all tasks in the order of their ids (numbers as numbers),
	// internal ones too. An absent list is empty; what cannot be read as a task is
	// left out, with a warning when it is damaged.
	List(ctx context.Context, list string) ([]Task, error)
	// Update applies a change, by the rules of [Apply].
	Update(ctx context.Context, list, id string, c Change) (Outcome, error)
	// Claim gives the first claimable task ([Claimable]) to owner and sets it
	// in progress. ok is false when there is none. No task is ever claimed
	// twice.
	Claim(ctx context.Context, list, owner string) (t Task, ok bool, err error)
	// Release unassigns every task of owner's that is not completed, and sets it
	// pending. It returns them as they are now.
	Release(ctx context.Context, list, owner string) ([]Task, error)
	// Reset empties a list, made if missing; ids go on counting where they were.
	Reset(ctx context.Context, list string) error
	// Remove deletes a list altogether.
	Remove(ctx context.Context, list string) error
	// Lists names the stored lists, each spelled as it is kept.
	Lists(ctx context.Context) ([]string, error)
	// Watch returns a channel of capacity one that is signalled when the list
	// may have changed, at the latest after the store's poll interval when
	// another process changed it. stop ends the watch; the channel is never
	// closed.
	Watch(list string) (signal <-chan struct{}, stop func())
}

// Number is the id as a number, for ordering; ids that are no numbers come last.
func Number(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil || n < 0 {
		return int(^uint(0) >> 1)
	}
	return n
}
