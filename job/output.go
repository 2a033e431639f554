package job

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Limits of what is kept of a shell job's output.
const (
	keepHead = 64 << 10 // bytes in memory from the start
	keepTail = 64 << 10 // bytes in memory from the end
	maxFile  = 64 << 20 // bytes in the file, then only the tail follows
)

// Output keeps what the process of a job writes. The first and the last of it
// are held in memory; the file gets all of it, up to a limit, but is made only
// when it is needed: when the memory does not hold everything, or when its
// path is asked for. It is safe for use by many goroutines.
type Output struct {
	path string

	// fileMu orders what goes into the file. It is held across writes to it, and
	// locked only by the writer and by Persist.
	fileMu  sync.Mutex
	file    *os.File
	written int64
	made    bool // the file holds everything so far
	over    bool // no more will be written

	mu    sync.Mutex // guards the memory, never held across I/O
	head  []byte
	tail  []byte // the last keepTail bytes are what counts
	total int64
	err   error
}

func newOutput(path string) *Output { return &Output{path: path} }

// Write keeps p. It never fails: an error of the file is returned by Err, and does
// not stop the process that writes.
func (o *Output) Write(p []byte) (int, error) {
	o.fileMu.Lock()
	defer o.fileMu.Unlock()
	fit := o.remember(p)
	if !o.made {
		if fit == len(p) {
			return len(p), nil
		}
		o.create() // the head holds all before p, and its first bytes
		o.save(p[fit:])
		return len(p), nil
	}
	o.save(p)
	return len(p), nil
}

// remember keeps p in memory and says how much of it the head has kept.
func (o *Output) remember(p []byte) (fit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	fit = min(len(p), keepHead-len(o.head))
	o.head = append(o.head, p[:fit]...)
	o.tail = appendTail(o.tail, p[fit:])
	return fit
}

// appendTail adds p, and drops what is no longer among the last bytes whenever
// that is as much as what is kept.
func appendTail(tail, p []byte) []byte {
	if len(p) >= keepTail {
		return append(tail[:0], p[len(p)-keepTail:]...)
	}
	if len(tail)+len(p) > 2*keepTail {
		tail = append(tail[:0], tail[len(tail)-keepTail:]...)
	}
	return append(tail, p...)
}

// create makes the file with the head in it. It needs fileMu.
func (o *Output) create() {
	if o.made {
		return
	}
	o.made = true
	if o.path == "" {
		o.fail(fmt.Errorf("no file was named for the output"))
		return
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
		o.fail(fmt.Errorf("keep output: %w", err))
		return
	}
	file, err := os.OpenFile(o.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		o.fail(fmt.Errorf("keep output: %w", err))
		return
	}
	o.file = file
	o.mu.Lock()
	head := o.head // only ever appended to
	o.mu.Unlock()
	o.save(head)
}

// save appends p to the file as far as the limit allows. It needs fileMu.
func (o *Output) save(p []byte) {
	if o.file == nil || o.written >= maxFile {
		return
	}
	p = p[:min(int64(len(p)), maxFile-o.written)]
	n, err := o.file.Write(p)
	o.written += int64(n)
	if err != nil {
		o.fail(fmt.Errorf("keep output: %w", err))
		o.close()
	}
}

func (o *Output) close() {
	if o.file == nil {
		return
	}
	if err := o.file.Close(); err != nil {
		o.fail(fmt.Errorf("keep output: %w", err))
	}
	o.file = nil
}

func (o *Output) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// Persist makes the file, if it is not there yet, with everything that was
// written so far; what comes later goes there too. The error is that of Err.
func (o *Output) Persist() error {
	o.fileMu.Lock()
	defer o.fileMu.Unlock()
	o.create()
	if o.over {
		o.close()
	}
	return o.Err()
}

// finish is called when the process has ended. Of a job that nobody waited for
// the file is all that is kept.
func (o *Output) finish(unwaited bool) {
	o.fileMu.Lock()
	defer o.fileMu.Unlock()
	o.over = true
	if unwaited {
		o.create()
	}
	s := o.Snapshot()
	if o.file != nil && s.Total > o.written {
		note := fmt.Sprintf("\n[%d bytes in all; those after the first %d are missing here, but for the last %d:]\n", s.Total, o.written, len(s.Tail))
		_, err := o.file.WriteString(note + string(s.Tail))
		if err != nil {
			o.fail(fmt.Errorf("keep output: %w", err))
		}
	}
	o.close()
	if unwaited && o.Err() == nil {
		o.mu.Lock()
		o.head, o.tail = nil, nil
		o.mu.Unlock()
	}
}

// Err is what went wrong with the file; nil when nothing did.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Path is where the file is, or will be when it is made.
func (o *Output) Path() string { return o.path }

// Snapshot is what is held in memory of an output.
type Snapshot struct {
	Head  []byte // the first bytes; all of them when Tail is empty
	Tail  []byte // the last bytes, none of them in Head
	Total int64  // bytes written
}

// Cut is how many bytes between head and tail are not held.
func (s Snapshot) Cut() int64 { return s.Total - int64(len(s.Head)) - int64(len(s.Tail)) }

// Snapshot copies what is held in memory.
func (o *Output) Snapshot() Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail[max(0, len(o.tail)-keepTail):]
	return Snapshot{Head: append([]byte(nil), o.head...), Tail: append([]byte(nil), tail...), Total: o.total}
}
