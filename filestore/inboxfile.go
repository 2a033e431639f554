package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// version is an inbox file as it was read.
type version struct {
	inbox   *inbox
	content []byte  // canonical; of a torn file, as it stands
	entries []entry // all of them
	mended  bool    // content is what could be saved of a damaged file
}

// absent is the version of an inbox that is not there.
func absent() version {
	return version{inbox: newInbox(nil, emptyInbox), content: emptyInbox}
}

// load returns what is known of the newest version of an inbox. It is parsed
// only when it is new, and as far as it is new.
func (m *mail) load(ctx context.Context, path string) (*inbox, error) {
	key, err := fsx.KeyAt(m.fsys, path)
	if err != nil {
		return nil, err
	}
	box := m.known(path)
	if box != nil && box.key == key {
		return box, box.broken
	}
	if grown := m.follow(path, box, key); grown != nil {
		return grown, nil
	}
	v, err := m.settle(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return absent().inbox, nil
	}
	if v.inbox != nil {
		m.replaceKnown(path, box, v.inbox)
	}
	return v.inbox, err
}

// follow returns the version that an inbox became by growing or by marks in
// place, or nil when more happened to it, or it is being written now.
func (m *mail) follow(path string, box *inbox, now fsx.Key) *inbox {
	if box == nil || !box.mayBecome(now) {
		return nil
	}
	f, err := m.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	later, ok := box.newsIn(f, now)
	if closeErr := f.Close(); !ok || closeErr != nil {
		return nil
	}
	return m.grow(path, box, later)
}

// grow makes the next version of the newest one, or nil when box is not the
// newest any more, or only the whole file tells what was added.
func (m *mail) grow(path string, box *inbox, later news) *inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes[path] != box || !box.tells(later.more) {
		return nil
	}
	next := box.plus(later)
	m.boxes[path] = next
	return next
}

// settle is read for those who can wait: a file that is written all the time is
// read in turn with its writers, and one that a killed writer of ours left torn
// is mended first.
func (m *mail) settle(ctx context.Context, path string) (version, error) {
	v, err := m.read(ctx, path)
	switch {
	case errors.Is(err, fsx.ErrChanging):
		lockErr := m.locked(ctx, path, func(*dirlock.Lock) error {
			v, err = m.read(ctx, path)
			return nil
		})
		return v, errors.Join(lockErr, err)
	case err == nil || v.inbox == nil:
		return v, err
	}
	// Whoever takes over a dead owner's lock mends; there is nothing to mark.
	if m.change(ctx, path, leave, func(tx *inboxTx) error { return tx.markRead(ctx, nil) }) == nil {
		return m.read(ctx, path)
	}
	return v, err
}

// read reads and parses a whole inbox. With a [*TornError] the version has the
// key and the content of the torn file.
func (m *mail) read(ctx context.Context, path string) (version, error) {
	var v version
	var raw []byte
	key, err := m.readShared(ctx, path, maxInbox, func(data []byte) (err error) {
		raw = data
		if v.content, err = canonicalInbox(data); err == nil {
			v.entries, err = parse(v.content)
		}
		return err
	})
	var torn *TornError
	switch {
	case errors.Is(err, errEmpty):
		// Left by a writer that was killed in the middle. What was lost is lost
		// already, and the next message mends the file.
		v = absent()
	case errors.As(err, &torn) && !errors.Is(err, fsx.ErrChanging):
		return version{inbox: &inbox{key: key, broken: err}, content: raw}, err
	case err != nil:
		return version{}, err
	default:
		v.inbox = newInbox(v.entries, v.content)
	}
	v.inbox.key = key
	v.inbox.canonical = key.Size() == int64(len(v.content)) && bytes.Equal(raw, v.content)
	return v, nil
}

// current returns an inbox with its content, for a change.
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
	case err != nil && v.inbox != nil && tx.damaged == mend:
		return tx.quarantine(v, err)
	}
	return v, err
}

// quarantine copies a torn inbox aside, where programs that list inboxes do not
// see it, and returns its whole entries.
func (tx *inboxTx) quarantine(v version, torn error) (version, error) {
	aside := tx.aside()
	options := fsx.WriteOptions{Mode: layout.FileMode, Sync: tx.sync}
	if _, err := fsx.WriteAtomic(tx.fsys, aside, v.content, options); err != nil {
		return version{}, errors.Join(torn, err)
	}
	tx.warn(fmt.Errorf("damaged inbox kept as %s: %w", aside, torn))
	content := salvage(v.content)
	parsed, err := parse(content)
	if err != nil {
		return version{}, err
	}
	box := newInbox(parsed, content)
	box.key, box.canonical = v.inbox.key, false
	return version{inbox: box, content: content, entries: parsed, mended: true}, nil
}

// aside is where a damaged inbox is kept.
func (tx *inboxTx) aside() string {
	name := "." + filepath.Base(tx.path) + ".damaged-" + strconv.FormatInt(time.Now().UnixMilli(), 10)
	return filepath.Join(filepath.Dir(tx.path), name)
}

// mend writes what is whole of a damaged inbox in its place. One that is too large
// to be read is moved aside as it is.
func (tx *inboxTx) mend(ctx context.Context) error {
	v, err := tx.current(ctx)
	if errors.Is(err, fsx.ErrTooLarge) {
		aside := tx.aside()
		if heldErr := tx.lock.Held(); heldErr != nil {
			return heldErr
		}
		if moveErr := tx.fsys.RenameNew(tx.path, aside); moveErr != nil {
			return errors.Join(err, moveErr)
		}
		tx.warn(fmt.Errorf("inbox kept as %s: %w", aside, err))
		tx.wrote = true
		return nil
	}
	if err != nil || !v.mended {
		return err
	}
	return tx.save(v, v.content)
}

func (m *mail) known(path string) *inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[path]
}

// replaceKnown remembers next, unless what was known has been replaced already.
func (m *mail) replaceKnown(path string, was, next *inbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes[path] != was {
		return
	}
	if m.boxes == nil {
		m.boxes = make(map[string]*inbox)
	}
	m.boxes[path] = next
}

// messages lists the messages of entries.
func messages(entries []entry) []mailbox.Message {
	list := make([]mailbox.Message, len(entries))
	for i, e := range entries {
		list[i] = e.message
	}
	return list
}
