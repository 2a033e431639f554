package lease

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/cadre-dev/cadre/internal/pause"
)

const (
	// inspectTime is how long a lock is waited for whose holder seems to live: it may be
	// that of a look, and the name one that a former holder has left.
	inspectTime = 35 * time.Millisecond
	// deathTime is how long it is waited for after the holder's death, or farewell. A
	// process that is killed while it starts a program leaves what it has open to its
	// child, which closes it when it begins to run that program, or dies in its turn.
	// Who gives a lease back takes its name off it first. Either takes its time on a
	// machine that has much to do.
	deathTime = time.Second
	// longestPause lies between two tries.
	longestPause = 20 * time.Millisecond
)

// patience is how long a held lock is waited for.
type patience struct {
	living time.Duration // while its holder lives
	waited time.Duration
}

// wait blocks for a moment; again is false when there is no more use in that. The
// error is why ctx ended.
func (p *patience) wait(ctx context.Context, by Holder) (again bool, err error) {
	limit := p.living
	if by == (Holder{}) || by.isDead() {
		limit = deathTime
	}
	if p.waited >= limit {
		return false, nil
	}
	next := min(max(p.waited, time.Millisecond), longestPause)
	p.waited += next
	err = pause.For(ctx, next)
	return err == nil, err
}

// isDead reports whether it is known that the holder's process is no more. Nothing
// is known of one on another machine.
func (h Holder) isDead() bool {
	if host, err := os.Hostname(); err != nil || host != h.Host || h.PID <= 0 {
		return false
	}
	process, err := os.FindProcess(h.PID)
	if err != nil {
		return true // not everywhere is it an error
	}
	defer func() { _ = process.Release() }()
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
