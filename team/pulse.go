package team

import "sync"

// pulse wakes everybody who waits for a change. The zero value is ready.
type pulse struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that the next beat closes. Whoever takes it before it
// looks misses nothing.
func (p *pulse) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}
