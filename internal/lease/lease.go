// Package lease keeps a second owner away from what one process at a time may
// own. A lease is a locked file: the system frees it when its process dies,
// however it dies, and its content says who has it.
package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// Holder says who has a lease.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// HeldError says that a lease cannot be had, and who has it. The zero Holder is
// one that has not written its name yet.
type HeldError struct {
	Path   string
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by process %d on %s since %s",
		e.Path, e.Holder.PID, e.Holder.Host, e.Holder.Since.Local().Format(time.DateTime))
}

// Lease is a held lease.
type Lease struct {
	file   fsx.File
	locked bool // false where there are no locks
}

// Acquire takes the lease at path. When it is held, also by this very process, the
// error is a [*HeldError]; it comes after a moment, in which the lock of somebody
// who only looks ([Inspect]), or is dying, is gone. The file is made if missing, its
// folder must exist. Where the file system knows no locks, a lease keeps nobody
// away.
func Acquire(ctx context.Context, fsys fsx.FS, path string) (*Lease, error) {
	for p := (patience{living: inspectTime}); ; {
		l, err := acquire(fsys, path)
		var held *HeldError
		if !errors.As(err, &held) {
			return l, err
		}
		if again, waitErr := p.wait(ctx, held.Holder); waitErr != nil || !again {
			return nil, errors.Join(err, waitErr)
		}
	}
}

func acquire(fsys fsx.FS, path string) (*Lease, error) {
	for {
		file, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		held, err := file.TryLock()
		unlocked := errors.Is(err, errors.ErrUnsupported)
		if unlocked {
			err = nil
		}
		if err == nil && !held && !unlocked {
			err = &HeldError{path, read(file)}
		}
		var current bool
		if err == nil {
			current, err = fsx.StillAt(fsys, file, path)
		}
		if err == nil && current {
			err = sign(file)
		}
		if err == nil && current {
			return &Lease{file, held}, nil
		}
		_ = file.Close() // nothing of value was written
		if err != nil {
			return nil, err
		}
	}
}

// Release gives the lease back.
func (l *Lease) Release() error {
	err := l.file.Truncate(0)
	if l.locked {
		err = errors.Join(err, l.file.Unlock())
	}
	return errors.Join(err, l.file.Close())
}

func sign(file fsx.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	data, err := json.Marshal(Holder{os.Getpid(), host, time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.Write(data)
	return err
}

// read returns what the holder wrote; that may be nothing yet.
func read(file fsx.File) Holder {
	var h Holder
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 4096))
	if err != nil || json.Unmarshal(data, &h) != nil {
		return Holder{}
	}
	return h
}
