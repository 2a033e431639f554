package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/pause"
)

// Other programs write shared files in place, so any read may find one empty or
// half-written (facts: claude-code §15). It is whole again in a moment.
var rereadPauses = []time.Duration{
	2 * time.Millisecond, 8 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond,
}

// maxUnlocked is how often a change starts over because a program that takes no
// lock was faster.
const maxUnlocked = 10

// The largest files that we read whole.
const (
	maxInbox  = 256 << 20
	maxTask   = 64 << 20
	maxRoster = 64 << 20
)

// TornError says that a shared file stayed empty or half-written after it was
// read several times.
type TornError struct {
	Path string
	Err  error // what is wrong with the content
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%s is unfinished or damaged (%v): wait for the program that writes it, else repair or remove it", e.Path, e.Err)
}

func (e *TornError) Unwrap() error { return e.Err }

// readShared reads a shared file until decode accepts it, at most a few times,
// then fails with a [*TornError]. The key is that of the version decoded, or of
// the torn one. A missing file is [fs.ErrNotExist] at once. decode may keep the
// data.
func (s *Store) readShared(ctx context.Context, path string, limit int64, decode func([]byte) error) (fsx.Key, error) {
	var key fsx.Key
	var broken error
	for try := 0; try <= len(rereadPauses); try++ {
		if try > 0 {
			if err := pause.For(ctx, rereadPauses[try-1]); err != nil {
				return key, fmt.Errorf("read %s: %w", path, err)
			}
		}
		data, info, err := fsx.ReadFile(s.fsys, path, limit)
		switch {
		case errors.Is(err, fsx.ErrChanging):
			broken = err
			continue
		case err != nil:
			return key, err
		}
		key = fsx.KeyOf(info)
		if broken = decode(trimBOM(data)); broken == nil {
			return key, nil
		}
	}
	return key, &TornError{path, broken}
}

// exists reports whether something stands at path, whatever it is.
func (s *Store) exists(path string) (bool, error) {
	_, err := s.fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func trimBOM(data []byte) []byte {
	const bom = "\xef\xbb\xbf"
	if len(data) >= len(bom) && string(data[:len(bom)]) == bom {
		return data[len(bom):]
	}
	return data
}
