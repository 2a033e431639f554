package main

import (
	"os"
	"testing"
)

// Signals are delivered in their order until the run is over. One that nobody was there
// for by then does not end the program before it has said how the run went.
func TestSignalsAreDeliveredUntilTheEnd(t *testing.T) {
	raw, out := make(chan os.Signal, 8), make(chan *stopped)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		deliver(raw, out, over)
	}()
	for range 3 {
		raw <- os.Interrupt
		if got := <-out; got != byInterrupt {
			t.Errorf("delivered %v", got)
		}
	}
	raw <- os.Interrupt
	raw <- os.Interrupt
	close(over)
	<-done
	if len(raw) > 0 {
		t.Error("a signal that came too late is left")
	}
}
