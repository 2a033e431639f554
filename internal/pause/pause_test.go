package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := pause.For(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(time.Minute, func() { cancel(why) })
		begun = time.Now()
		if err := pause.For(ctx, time.Hour); !errors.Is(err, why) || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}
