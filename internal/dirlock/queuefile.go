package dirlock

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// Queue says where our own processes queue for a lock: on File, in a folder that
// is made, below the folder Below, when it is missing; Below itself must exist.
// With the zero Queue, processes of ours meet at the lock folder alone, like other
// programs: a lock that a dead one left is waited for until it is stale.
type Queue struct{ Below, File string }

// queueFile is the file of a queue, locked by us. Its content is the host of its
// last holder: on a file system that several machines share, the lock may hold on
// one machine only.
//
// A nil queueFile is that of the zero Queue, and of a file system without such
// locks: it vouches for nothing, and dead owners are waited for.
type queueFile struct {
	file    fsx.File
	vouched bool // it named this host when we opened it
	signed  bool // it names this host now
}

var thisHost = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
})

// openQueue opens the file of a queue, which is made if missing, and locks it.
func openQueue(ctx context.Context, fsys fsx.FS, queue Queue) (*queueFile, error) {
	if !haveQueue || queue.File == "" {
		return nil, nil
	}
	for try := 0; ; {
		file, err := fsys.OpenFile(queue.File, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			if err := fsx.MkdirBelow(fsys, queue.Below, filepath.Dir(queue.File), 0o700, false); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		err = lockFile(ctx, file, &try)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, file.Close()
		}
		var current bool
		if err == nil {
			current, err = fsx.StillAt(fsys, file, queue.File)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if !current {
			_ = file.Close() // of a folder that was deleted while we waited
			continue
		}
		return readQueue(file)
	}
}

func lockFile(ctx context.Context, file fsx.File, try *int) error {
	for {
		held, err := file.TryLock()
		if held || err != nil {
			return err
		}
		if err := backOff(ctx, *try, filePause); err != nil {
			return errors.Join(errors.New("another process of ours has it"), err)
		}
		*try++
	}
}

func readQueue(file fsx.File) (*queueFile, error) {
	buf := make([]byte, 300) // a host name has at most 255 bytes
	n, err := file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	named := string(buf[:n]) == thisHost()
	return &queueFile{file: file, vouched: named, signed: named}, nil
}

// vouches reports whether any marked lock folder belongs to a dead process.
func (s *queueFile) vouches() bool { return s != nil && s.vouched }

// sign puts our host into the file when another stands there. While a lock
// folder exists it may be that other's: then the file is left alone, and signed
// is false.
func (s *queueFile) sign(fsys fsx.FS, lockFolder string) (signed bool, err error) {
	if s == nil || s.signed {
		return true, nil
	}
	if _, err := fsys.Lstat(lockFolder); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := s.file.Truncate(0); err != nil {
		return false, err
	}
	if _, err := s.file.Write([]byte(thisHost())); err != nil {
		return false, err
	}
	s.signed = true
	return true, nil
}

func (s *queueFile) close() {
	if s != nil {
		_, _ = s.file.Unlock(), s.file.Close() // the folder is what counts
	}
}
