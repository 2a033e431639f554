// Package pause waits for a while, or until nobody wants that any more.
package pause

import (
	"context"
	"time"
)

// For blocks for d. The error is the cause of ctx, when that ended first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
