package filestore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// inboxTx is one change of an inbox, made under its lock.
type inboxTx struct {
	*mail
	path      string
	lock      *dirlock.Lock
	ifDamaged damage
	wrote     bool
	key       fsx.Key // of the version written
}

// damage says what a change does about a damaged inbox.
type damage bool

const (
	refuse damage = false // fails
	repair damage = true  // keeps the file aside and goes on with what is whole of it
)

// change runs step under the lock of an inbox, whose folder must exist. When a program that
// takes no lock was faster, step is run again.
func (m *mail) change(ctx context.Context, path string, ifDamaged damage, step func(*inboxTx) error) error {
	var tx *inboxTx
	err := m.locked(ctx, path, func(lock *dirlock.Lock) (err error) {
		// A killed writer of ours may have left the entry torn that it was adding. It was
		// never acknowledged, so it may be cut off.
		tx = &inboxTx{mail: m, path: path, lock: lock, ifDamaged: ifDamaged || damage(lock.Recovered())}
		for range maxRetries {
			err = step(tx)
			if tx.ifDamaged == repair && isDamage(err) {
				if err = tx.setAsideUnreadable(ctx, err); err == nil {
					err = step(tx)
				}
			}
			if !errors.Is(err, errChanged) {
				return err
			}
		}
		return err
	})
	if err == nil && tx.wrote {
		m.watcher.Wrote(path, tx.key)
	}
	return err
}

// setAsideUnreadable moves away what is in the place of an inbox and cannot be read at
// all. why is the error of a step, which it returns if there is another reason for it.
func (tx *inboxTx) setAsideUnreadable(ctx context.Context, why error) error {
	v, err := tx.read(ctx, tx.path)
	if !isDamage(err) || v.inbox != nil {
		return why
	}
	if err := tx.lock.Held(); err != nil {
		return err
	}
	if err := tx.setAside(tx.path, why); err != nil {
		return err
	}
	tx.wrote, tx.key = true, fsx.Key{}
	return nil
}

// changeExisting is change for an inbox that is not made when it is missing: then there is
// nothing to do.
func (m *mail) changeExisting(ctx context.Context, path string, ifDamaged damage, step func(*inboxTx) error) error {
	exists, err := m.exists(path)
	if err != nil || !exists {
		return err
	}
	if err = m.checkFolders(path); err == nil {
		err = m.change(ctx, path, ifDamaged, step)
	}
	if errors.Is(err, fs.ErrNotExist) { // its team was removed just now
		return nil
	}
	return err
}

// checkFolders returns an error when symbolic links lead to an inbox: it may not be
// written.
func (m *mail) checkFolders(path string) error {
	inboxes := filepath.Dir(path)
	return errors.Join(fsx.IsFolder(m.fsys, filepath.Dir(inboxes)), fsx.IsFolder(m.fsys, inboxes))
}

func (m *mail) makeFolders(path string) error {
	inboxes := filepath.Dir(path)
	if err := fsx.MkdirOwn(m.fsys, filepath.Dir(inboxes), layout.DirMode); err != nil {
		return err
	}
	return fsx.MkdirOwn(m.fsys, inboxes, layout.DirMode)
}

// add appends an entry.
func (tx *inboxTx) add(ctx context.Context, doc jsonx.Object) error {
	if done, err := tx.appendInPlace(doc); done || err != nil {
		return err
	}
	v, err := tx.current(ctx)
	if err != nil {
		return err
	}
	tail, cut, err := tailOf(len(v.content), doc)
	if err != nil {
		return err
	}
	return tx.save(v, append(v.content[:cut:cut], tail...))
}

// appendInPlace writes the entry over the end of the file, in one write and without reading
// the rest; done is false when the file does not end as we end it. Who reads in this very
// moment finds the file torn, and reads again; a kill in this very moment tears only this
// entry, which was not acknowledged.
func (tx *inboxTx) appendInPlace(doc jsonx.Object) (done bool, err error) {
	f, err := tx.openInPlace()
	if f == nil {
		return false, err
	}
	defer tx.closeWarning(f)
	info, err := f.Stat()
	if err != nil || info.Size() <= int64(len(lastLines)) || info.Size() > maxInbox {
		return false, err
	}
	end := make([]byte, len(lastLines))
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil || !bytes.Equal(end, lastLines) {
		return false, err
	}
	tail, cut, err := tailOf(int(info.Size()), doc)
	if err == nil {
		err = tx.lock.Held()
	}
	if err == nil {
		err = tx.writeTail(f, tail, int64(cut))
	}
	if err != nil {
		return false, err
	}
	tx.wrote = true
	if now, err := f.Stat(); err == nil {
		tx.key = fsx.KeyOf(now)
		tx.rememberAdded(fsx.KeyOf(info), tail)
	} // else the next reader finds out
	return true, nil
}

// openInPlace opens the file to write into it; nil when it is missing or read-only.
func (tx *inboxTx) openInPlace() (fsx.File, error) {
	f, err := tx.fsys.OpenFile(tx.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		if info, statErr := tx.fsys.Lstat(tx.path); statErr == nil && info.Mode()&0o200 == 0 {
			return nil, nil
		}
	}
	return f, err
}

// closeWarning closes a file to which everything has been written: an error is a warning.
func (tx *inboxTx) closeWarning(f fsx.File) {
	if err := f.Close(); err != nil {
		tx.warn(err)
	}
}

// writeTail replaces the bytes from cut on. After an error the file ends where it ended
// before.
func (tx *inboxTx) writeTail(f fsx.File, tail []byte, cut int64) error {
	_, err := f.WriteAt(tail, cut)
	if err == nil && tx.sync {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	_, undoErr := f.WriteAt(closing, cut)
	return errors.Join(err, undoErr, f.Truncate(cut+int64(len(closing))))
}

// rememberAdded caches what was appended to the version was, if that is the cached one.
func (tx *inboxTx) rememberAdded(was fsx.Key, tail []byte) {
	box := tx.known(tx.path)
	if box == nil || box.key != was || !box.canonical {
		return
	}
	data := append(bytes.Clone(box.end[:len(box.end)-len(closing)]), tail...)
	if more, ok := addedEntries(box.end, data, int(was.Size())-len(box.end)); ok {
		tx.advance(tx.path, box, inboxChanges{key: tx.key, added: more, end: endOf(data)})
	}
}

// save replaces the file.
func (tx *inboxTx) save(was version, content []byte) error {
	key, err := tx.replace(tx.path, content, was.inbox.key, tx.lock)
	if err == nil {
		tx.wrote, tx.key = true, key
	}
	return err
}

// current returns the inbox with its content, for a change.
func (tx *inboxTx) current(ctx context.Context) (version, error) {
	if box := tx.known(tx.path); box != nil && box.canonical {
		content, info, err := fsx.ReadFile(tx.fsys, tx.path, maxInbox)
		if err == nil && fsx.KeyOf(info) == box.key {
			return version{inbox: box, content: content}, nil
		}
	}
	v, err := tx.read(ctx, tx.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent(), nil
	case err != nil && v.inbox != nil && tx.ifDamaged == repair:
		return tx.salvaged(v, err)
	}
	return v, err
}

// salvaged keeps a copy of a damaged inbox, and returns its whole entries.
func (tx *inboxTx) salvaged(v version, torn error) (version, error) {
	if err := tx.keepCopy(tx.path, v.content, torn); err != nil {
		return version{}, err
	}
	content := salvage(v.content)
	parsed, err := parse(content)
	if err != nil {
		return version{}, err
	}
	box := newInbox(parsed, content)
	box.key, box.canonical = v.inbox.key, false
	return version{inbox: box, content: content, entries: parsed, salvaged: true}, nil
}

// repair replaces a damaged inbox by what is whole of it. What cannot be read at all is set
// aside (change).
func (tx *inboxTx) repair(ctx context.Context) error {
	v, err := tx.current(ctx)
	if err != nil || !v.salvaged {
		return err
	}
	return tx.save(v, v.content)
}
