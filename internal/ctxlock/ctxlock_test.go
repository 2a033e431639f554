package ctxlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cadre-dev/cadre/internal/ctxlock"
)

func TestWaitingEndsWithTheContext(t *testing.T) {
	m := ctxlock.New()
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := m.Lock(ctx); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context", err)
	}
	m.Unlock()
	if err := m.Lock(t.Context()); err != nil {
		t.Errorf("locking after the waiting was ended: %v", err)
	}
}

func TestOneHoldsItAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ctxlock.New()
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := make(chan error, 1)
		go func() { held <- m.Lock(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-held:
			t.Fatalf("two hold it (%v)", err)
		default:
		}
		m.Unlock()
		if err := <-held; err != nil {
			t.Error(err)
		}
	})
}
