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

// SideFolder is the folder beside a target that holds its side file, hidden from
// programs that list a folder of inboxes or tasks.
const SideFolder = ".cadre-locks"

// sideFile is the file in front of a lock folder, locked by us. Its content is
// the host of its last holder: on a file system that several machines share,
// the lock may hold on one machine only.
//
// A nil sideFile is that of a file system without such locks: it vouches for
// nothing, and dead owners are waited for.
type sideFile struct {
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

// openSide opens and locks the side file of target; both may be missing, the
// folder of target not.
func openSide(ctx context.Context, fsys fsx.FS, target string) (*sideFile, error) {
	if !haveSide {
		return nil, nil
	}
	folder := filepath.Join(filepath.Dir(target), SideFolder)
	path := filepath.Join(folder, filepath.Base(target))
	for try := 0; ; {
		file, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			if err := fsys.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
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
			current, err = fsx.StillAt(fsys, file, path)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if !current {
			_ = file.Close() // of a folder that was deleted while we waited
			continue
		}
		return readSide(file)
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

func readSide(file fsx.File) (*sideFile, error) {
	buf := make([]byte, 300) // a host name has at most 255 bytes
	n, err := file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	named := string(buf[:n]) == thisHost()
	return &sideFile{file: file, vouched: named, signed: named}, nil
}

// vouches reports whether any marked lock folder belongs to a dead process.
func (s *sideFile) vouches() bool { return s != nil && s.vouched }

// sign puts our host into the file when another stands there. While a lock
// folder exists it may be that other's: then the file is left alone, and signed
// is false.
func (s *sideFile) sign(fsys fsx.FS, lockFolder string) (signed bool, err error) {
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

func (s *sideFile) close() {
	if s != nil {
		_, _ = s.file.Unlock(), s.file.Close() // the folder is what counts
	}
}
