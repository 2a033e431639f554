package session

import "sync/atomic"

// arrival signals to the tools of a running turn that input is pending. The owner signals
// and renews it; any goroutine may ask for the channel.
type arrival struct{ waiting atomic.Pointer[chan struct{}] }

func newArrival() *arrival {
	a := new(arrival)
	a.renew()
	return a
}

// channel is closed as soon as input is pending.
func (a *arrival) channel() <-chan struct{} { return *a.waiting.Load() }

func (a *arrival) signal() {
	select {
	case <-a.channel():
	default:
		close(*a.waiting.Load())
	}
}

// renew says that nothing is pending any more.
func (a *arrival) renew() {
	fresh := make(chan struct{})
	a.waiting.Store(&fresh)
}
