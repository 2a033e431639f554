package session

import (
	"context"
	"time"
)

// acks are the acknowledgements of input ([Input.Kept]) that have to be made. They run
// off the owner, in order: they may write (mark mail read), and so wait for a lock.
type acks struct {
	waiting []ack
	running bool
	done    chan struct{} // of capacity one: a batch has been made
}

type ack struct {
	kept func(context.Context, error)
	err  error
}

// add notes an acknowledgement: the input is stored, or never will be.
func (a *acks) add(in Input, err error) {
	if in.Kept != nil {
		a.waiting = append(a.waiting, ack{in.Kept, err})
	}
}

// pending reports whether an acknowledgement has not been made yet.
func (a *acks) pending() bool { return a.running || len(a.waiting) > 0 }

// patience bounds a batch of acknowledgements.
const patience = 15 * time.Second

// start makes those that wait, unless a batch is being made. published is called
// first: a sender that gets an acknowledgement must already find the session busy.
func (a *acks) start(life context.Context, published func()) {
	if a.running || len(a.waiting) == 0 {
		return
	}
	batch := a.waiting
	a.waiting, a.running = nil, true
	published()
	patient := context.WithoutCancel(life)
	go func() {
		ctx, cancel := context.WithTimeout(patient, patience)
		defer cancel()
		for _, one := range batch {
			one.kept(ctx, one.err)
		}
		a.done <- struct{}{}
	}()
}
