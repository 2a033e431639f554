package session

import "time"

// unstored counts how often in a row a session could not store something: a turn that is
// done, or a report of [Life.Idle] that went through, begins anew. What is short is often
// stored when what is long is not, as on a full disk, so one success says little.
type unstored struct {
	tries int
	since time.Time // of the first
	last  error
}

// A session that fails this often, and for at least this long, is said to fail
// ([State].Unstored): a lock that is held for long, or a disk that is full for a moment,
// is not worth ending a run for.
const (
	unstoredTries = 5
	unstoredFor   = 5 * time.Second
)

func (u *unstored) add(err error) {
	if u.tries == 0 {
		u.since = time.Now()
	}
	u.tries++
	u.last = err
}

// reason is the newest error, once there were too many; else nil.
func (u *unstored) reason() error {
	if u.tries < unstoredTries || time.Since(u.since) < unstoredFor {
		return nil
	}
	return u.last
}
