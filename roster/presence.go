package roster

import (
	"context"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
)

// Presence says which agents of a team have a process of their own, or lead it.
// A place is given up by leaving or by the death of the process, however it dies.
// In-process teammates take no place: they are where their lead is.
// Implementations pass the suite in internal/storetest. All methods may be called
// from any goroutine and any process at once.
type Presence interface {
	// Enter takes an agent's place until leave is called: [*PresentError] when
	// somebody has it. The team's folder must exist.
	Enter(ctx context.Context, who mailbox.Address) (leave func() error, err error)
	// Find says which process has an agent's place; ok is false when none has.
	Find(ctx context.Context, who mailbox.Address) (p Process, ok bool, err error)
}

// Process is where an agent runs.
type Process struct {
	PID   int
	Host  string
	Since time.Time
}

// PresentError says that an agent runs already.
type PresentError struct {
	Who mailbox.Address
	By  Process
}

func (e *PresentError) Error() string {
	return "agent " + e.Who.String() + " already runs in another process"
}
