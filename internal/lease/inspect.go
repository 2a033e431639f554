package lease

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// Inspect says who has the lease at path, without taking it; ok is false when
// nobody has. It leaves the file as it is, and makes none. To tell a holder from
// one that died it tries the lock for an instant, which [Acquire] waits for; inspections
// do not disturb each other. One that was killed just now may have its lock for
// another moment, which Inspect waits for. Where the file system knows no locks,
// whoever was killed seems to have its lease for good.
func Inspect(ctx context.Context, fsys fsx.FS, path string) (h Holder, ok bool, err error) {
	for p := (patience{}); ; {
		h, ok, err = inspect(fsys, path)
		if err != nil || !ok {
			return h, ok, err
		}
		if again, err := p.wait(ctx, h); err != nil || !again {
			return h, ok, err
		}
	}
}

func inspect(fsys fsx.FS, path string) (h Holder, ok bool, err error) {
	file, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return Holder{}, false, err // given back, or not signed yet
	}
	free, err := file.TryRLock()
	switch {
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return Holder{}, false, err
	case free:
		return Holder{}, false, file.Unlock()
	}
	return read(file), true, nil
}
