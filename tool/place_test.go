package tool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := NewPlace(nil)
		second := NewPlace([]*Place{first})
		third := NewPlace([]*Place{first, second})
		passed := make(chan error, 1)
		go func() { passed <- third.Await(t.Context()) }()
		second.Leave()
		second.Leave()
		synctest.Wait()
		if len(passed) > 0 {
			t.Error("the third did not wait for the first")
		}
		first.Leave()
		if err := <-passed; err != nil {
			t.Error(err)
		}

		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := NewPlace([]*Place{NewPlace(nil)}).Await(ctx); !errors.Is(err, why) {
			t.Errorf("the wait ended with %v", err)
		}
		nobody := PlaceFrom(t.Context())
		nobody.Leave()
		if err := nobody.Await(ctx); err != nil {
			t.Error(err)
		}
	})
}
