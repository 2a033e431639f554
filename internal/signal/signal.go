// Package signal wakes a goroutine that waits for something to change.
package signal

// Signal says that something has happened since its receiver last waited, once
// however often it did. The receiver receives from the channel and then examines
// what may have changed.
type Signal chan struct{}

// New makes a signal that is not raised.
func New() Signal { return make(Signal, 1) }

// Raise wakes the receiver, or makes its next wait return at once. It does not
// block and may be called from any goroutine.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default: // it is raised already
	}
}
