// Package dirlock is the lock that other programs honour too: the folder
// "<target>.lock" (facts: claude-code §8). Such a lock does not die with its
// owner, so two measures make it safe.
//
// First, our own processes queue for it: inside the process, then on a file of ours
// ([Queue]) that the system locks, and unlocks when its holder dies. A process that
// holds that file knows that no living process of ours holds the lock folder.
//
// Second, a lock folder of ours carries a mark from the moment it exists: its mode.
// So a marked folder that is found by the holder of the queue's file belongs to a dead
// process of ours, and is taken over at once; any other is waited for, and removed
// only when it is stale.
//
// Making and removing a folder is the slow part, so one spare folder is kept
// beside the queue's file, and moved to the lock's name and back. Nothing of ours
// but the lock folder itself ever stands beside the target: other programs list
// that folder.
package dirlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// Times of the protocol (facts: claude-code §8; reliability-security §3.1).
const (
	// Stale is the age from which any program may remove a lock folder.
	Stale = 10 * time.Second
	// confirmTime is how long a folder that seems stale is watched before it counts
	// as stale, so that one jump of the wall clock takes no lock from its holder.
	confirmTime = 200 * time.Millisecond
	// folderPause and filePause bound the pause between two tries.
	folderPause = 40 * time.Millisecond
	filePause   = 6 * time.Millisecond
)

// Suffix makes the lock folder's name of its target's.
const Suffix = ".lock"

// mark is the mode of our lock folders. Nobody else makes a folder that its owner
// cannot enter; any program may remove it all the same, as it is empty. It is writable
// for its owner, since the system requires that for moving it to another folder.
const mark fs.FileMode = 0o600

// Errors of a lock.
var (
	// ErrShape says that something that is no folder stands where the lock
	// folder belongs; no program will ever remove it.
	ErrShape = errors.New("not a lock folder; move it away")
	// ErrLost says that another program took the lock from us: we stood still
	// for too long. Nothing may be written under it any more.
	ErrLost = errors.New("lock was taken over by another program")
)

// Lock is a held lock. It is used by one goroutine, and only until Unlock.
type Lock struct {
	fsys      fsx.FS
	target    string
	folder    string
	spare     string  // where the folder lies while nobody holds the lock; "": it is made anew
	key       fsx.Key // of the folder as we made it
	queue     Queue
	side      *queueFile
	nested    int    // locks ever taken under this one
	done      func() // leaves the queue
	recovered bool
}

// Acquire locks target, which need not exist; its folder must. All our processes
// must give the same queue for a target. It waits in line until ctx ends, then
// returns an error that says what it waited for. The lock is meant to be held for
// milliseconds.
func Acquire(ctx context.Context, fsys fsx.FS, target string, queue Queue) (*Lock, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lock %s: %w", target, context.Cause(ctx))
	}
	leave, err := queues.enter(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("lock %s: another part of this process has it: %w", target, err)
	}
	side, err := openQueue(ctx, fsys, queue)
	if err != nil {
		leave()
		return nil, fmt.Errorf("lock %s: %w", target, err)
	}
	l := &Lock{fsys: fsys, target: target, folder: target + Suffix, queue: queue, side: side}
	if side != nil {
		l.spare = queue.File + ".spare"
	}
	l.done = func() { side.close(); leave() }
	if err := l.placeFolder(ctx); err != nil {
		l.done()
		return nil, fmt.Errorf("lock %s: %w", target, err)
	}
	return l, nil
}

// Nested locks another target while l is held, without a queue of its own. It is
// right for targets that our processes lock only under l: then the queue in front
// of l keeps them apart.
func (l *Lock) Nested(ctx context.Context, target string) (*Lock, error) {
	l.nested++
	n := &Lock{fsys: l.fsys, target: target, folder: target + Suffix, side: l.side, done: func() {}}
	if l.side != nil {
		n.spare = l.queue.File + "-" + strconv.Itoa(l.nested) + ".spare"
	}
	if err := n.placeFolder(ctx); err != nil {
		return nil, fmt.Errorf("lock %s: %w", target, err)
	}
	return n, nil
}

// SweepNested removes the nested locks that a dead process of ours left in
// folder. All our locks in it but l itself must be nested under l.
func (l *Lock) SweepNested(folder string) error {
	if !l.side.vouches() {
		return nil
	}
	entries, err := l.fsys.ReadDir(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if path == l.folder || !e.IsDir() || filepath.Ext(path) != Suffix {
			continue
		}
		info, err := l.fsys.Lstat(path)
		if err == nil && marked(info) {
			err = l.fsys.Remove(path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Exists reports whether target is locked, also by a process that has died. It takes no
// lock and does not wait.
func Exists(fsys fsx.FS, target string) (bool, error) {
	found, err := find(fsys, target)
	return found != nil, err
}

// Ours reports whether the lock of target belongs to a process of ours, which may be
// dead. It takes no lock and does not wait.
func Ours(fsys fsx.FS, target string) (bool, error) {
	found, err := find(fsys, target)
	return found != nil && found.IsDir() && marked(found), err
}

// find describes what stands where the lock folder of target belongs; nil when
// nothing does.
func find(fsys fsx.FS, target string) (fs.FileInfo, error) {
	info, err := fsys.Lstat(target + Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// Recovered reports whether the lock was taken over from a dead process of
// ours, which may have left temporary files.
func (l *Lock) Recovered() bool { return l.recovered }

// Held returns [ErrLost] when the lock is no longer ours. It is asked right
// before the write that the lock protects takes effect.
func (l *Lock) Held() error {
	key, err := fsx.KeyAt(l.fsys, l.folder)
	if err != nil {
		return err
	}
	if key != l.key {
		return fmt.Errorf("lock %s: %w", l.target, ErrLost)
	}
	return nil
}

// Unlock gives the lock back. A lock that was lost is left to its new owner. An
// error means that the folder is still there; the next process of ours takes it over.
func (l *Lock) Unlock() error {
	err := l.release()
	if err != nil { // once more: no other program cleans up after us
		err = l.release()
	}
	l.done()
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.target, err)
	}
	return nil
}

func (l *Lock) release() error {
	if err := l.Held(); err != nil {
		if errors.Is(err, ErrLost) {
			return nil
		}
		return err
	}
	if l.spare != "" && l.fsys.RenameNew(l.folder, l.spare) == nil {
		return nil
	}
	if err := l.fsys.Remove(l.folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// placeFolder moves the lock folder to its place, or takes over that of a dead or stale
// owner.
func (l *Lock) placeFolder(ctx context.Context) error {
	var seen sighting
	for try := 0; ; try++ {
		placed, err := l.place()
		if err != nil {
			return err
		}
		if placed {
			return l.own(nil)
		}
		info, err := l.fsys.Lstat(l.folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return &fs.PathError{Op: "mkdir", Path: l.folder, Err: ErrShape}
		case l.side.vouches() && marked(info):
			l.recovered = true
			return l.own(l.stamp(l.folder))
		case seen.stale(info, time.Now()):
			if err := l.fsys.Remove(l.folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove stale lock: %w", err)
			}
			continue
		}
		if err := backOff(ctx, try, folderPause); err != nil {
			return fmt.Errorf("%s is held by another program since %s: %w",
				l.folder, info.ModTime().Local().Format(time.DateTime), err)
		}
	}
}

// place puts a folder, stamped, at the lock's name, unless there is one.
func (l *Lock) place() (placed bool, err error) {
	if signed, err := l.side.sign(l.fsys, l.folder); !signed {
		return false, err
	}
	if l.spare != "" {
		err = l.moveSpare()
	}
	if l.spare == "" || errors.Is(err, errors.ErrUnsupported) {
		if err = l.fsys.Mkdir(l.folder, mark); err == nil {
			if err = l.stamp(l.folder); err != nil {
				return false, errors.Join(err, l.fsys.Remove(l.folder))
			}
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// moveSpare moves the spare folder to the lock's name. We have the queue's file,
// so nobody else does.
func (l *Lock) moveSpare() error {
	err := l.stamp(l.spare)
	if errors.Is(err, fs.ErrNotExist) {
		if err := l.fsys.Mkdir(l.spare, mark); err != nil {
			return err
		}
		err = l.stamp(l.spare)
	}
	if err != nil {
		return err
	}
	return l.fsys.RenameNew(l.spare, l.folder)
}

// stamp sets a folder's time as Claude Code does, up to a second ahead.
func (l *Lock) stamp(folder string) error {
	at := time.Now().Add(time.Second - time.Nanosecond).Truncate(time.Second).Add(5 * time.Millisecond)
	return l.fsys.Chtimes(folder, at, at)
}

// own remembers which folder is ours, or removes it when we failed to get it.
func (l *Lock) own(failed error) error {
	err := failed
	if err == nil {
		l.key, err = fsx.KeyAt(l.fsys, l.folder)
	}
	if err == nil && l.key == (fsx.Key{}) {
		err = ErrLost
	}
	if err != nil {
		return errors.Join(err, l.fsys.Remove(l.folder))
	}
	return nil
}

// sighting is what was seen of another holder's lock folder, by our own clock.
type sighting struct {
	key   fsx.Key
	since time.Time
}

// stale reports whether the owner of the folder must be dead: its time is long
// past and we saw it stand still for a moment, or (whatever its time says) we
// saw it stand still for the whole time ourselves.
func (s *sighting) stale(info fs.FileInfo, now time.Time) bool {
	if key := fsx.KeyOf(info); key != s.key || s.since.IsZero() {
		s.key, s.since = key, now
	}
	watched := now.Sub(s.since)
	return watched >= Stale || watched >= confirmTime && now.Sub(info.ModTime()) > Stale
}
