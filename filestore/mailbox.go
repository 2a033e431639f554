package filestore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/filewatch"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/transcript"
)

// mail implements [mailbox.Store]: one JSON array per inbox, changed under the
// lock "<agent>.json.lock" (facts: claude-code §5, §8).
type mail struct {
	*files
	watcher  *filewatch.Watcher
	noRepair bool // damaged inboxes are read as far as they are whole

	mu    sync.Mutex
	boxes map[string]*inbox // by path: the newest version that we have seen
}

func (m *mail) path(at mailbox.Address) (string, error) {
	if at.Agent == "" {
		return "", errors.New("inbox of nobody: the agent's name is empty")
	}
	return m.root.Inbox(at.Team, at.Agent), nil
}

func (m *mail) Post(ctx context.Context, to mailbox.Address, msg mailbox.Message) (err error) {
	defer wrap(&err, "post to %s", to)
	path, err := m.path(to)
	if err != nil {
		return err
	}
	if err := m.makeFolders(path); err != nil {
		return err
	}
	return m.change(ctx, path, repair, func(tx *inboxTx) error { return tx.add(ctx, format.EncodeMessage(msg)) })
}

func (m *mail) MarkRead(ctx context.Context, at mailbox.Address, ids []mailbox.ID) (err error) {
	defer wrap(&err, "mark mail of %s read", at)
	path, err := m.path(at)
	if err != nil || len(ids) == 0 {
		return err
	}
	return m.changeExisting(ctx, path, refuse, func(tx *inboxTx) error { return tx.markRead(ctx, ids) })
}

func (m *mail) Unread(ctx context.Context, at mailbox.Address) (unread []mailbox.Message, err error) {
	defer wrap(&err, "read mail of %s", at)
	path, err := m.path(at)
	if err != nil {
		return nil, err
	}
	box, err := m.load(ctx, path)
	if err != nil {
		return nil, err
	}
	return messages(box.unread), nil
}

func (m *mail) All(ctx context.Context, at mailbox.Address) (all []mailbox.Message, err error) {
	defer wrap(&err, "read mail of %s", at)
	path, err := m.path(at)
	if err != nil {
		return nil, err
	}
	v, err := m.readWhole(ctx, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return messages(v.entries), nil
}

func (m *mail) Watch(at mailbox.Address) (<-chan struct{}, func()) {
	path, err := m.path(at)
	if err != nil {
		return make(chan struct{}), func() {} // nobody writes there
	}
	return m.watcher.File(path)
}

// version is an inbox file as it was read.
type version struct {
	inbox   *inbox
	content []byte  // canonical; of a damaged file, as it is
	entries []entry // all of them
	// salvaged says that the content is what could be read of a damaged file.
	salvaged bool
}

// absent is the version of an inbox without a file.
func absent() version {
	return version{inbox: newInbox(nil, emptyInbox), content: emptyInbox}
}

// load returns the newest version of an inbox. Only what has changed since it was cached is
// read and parsed, if that can be told.
func (m *mail) load(ctx context.Context, path string) (*inbox, error) {
	key, err := fsx.KeyAt(m.fsys, path)
	if err != nil {
		return nil, err
	}
	box := m.known(path)
	if box != nil && box.key == key {
		return box, nil
	}
	if grown := m.follow(path, box, key); grown != nil {
		return grown, nil
	}
	v, err := m.readWhole(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return absent().inbox, nil
	}
	if err != nil {
		return nil, err
	}
	m.remember(path, box, v.inbox)
	return v.inbox, nil
}

// follow returns the version now of a file that has only grown or been marked in place
// since box; nil if that is not certain.
func (m *mail) follow(path string, box *inbox, now fsx.Key) *inbox {
	if box == nil || !box.mayHaveBecome(now) {
		return nil
	}
	f, err := m.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	later, ok := box.changesIn(f, now)
	if closeErr := f.Close(); !ok || closeErr != nil {
		return nil
	}
	return m.advance(path, box, later)
}

// advance caches and returns the next version of box. It is nil when box is not the newest
// version any more, or when IDs cannot be given without reading the whole file.
func (m *mail) advance(path string, box *inbox, later inboxChanges) *inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes[path] != box || !box.canIdentify(later.added) {
		return nil
	}
	next := box.with(later)
	m.boxes[path] = next
	return next
}

// readWhole is read for callers that may wait for the lock of the file, under which a file
// that is written all the time can be read. One that is damaged even then is repaired:
// nobody else would do it, and its owner would never get mail again.
func (m *mail) readWhole(ctx context.Context, path string) (version, error) {
	v, err := m.read(ctx, path)
	switch {
	case errors.Is(err, fsx.ErrChanging):
		lockErr := m.locked(ctx, path, func(*dirlock.Lock) error {
			v, err = m.read(ctx, path)
			return nil
		})
		return v, errors.Join(lockErr, err)
	case err == nil || !isDamage(err):
		return v, err
	case m.noRepair:
		return m.wholeEntries(path, v, err)
	}
	if repairErr := m.changeExisting(ctx, path, repair, func(tx *inboxTx) error { return tx.repair(ctx) }); repairErr != nil {
		return v, err
	}
	return m.read(ctx, path)
}

// wholeEntries is what can be read of a damaged inbox that must not be repaired.
func (m *mail) wholeEntries(path string, v version, why error) (version, error) {
	m.warnOnce(path, why)
	content := salvage(v.content)
	parsed, err := parse(content)
	if err != nil {
		return version{}, err
	}
	box := newInbox(parsed, content)
	return version{inbox: box, content: content, entries: parsed}, nil
}

// read reads and parses a whole inbox. With a [*TornError] the version has the key and the
// content of the damaged file.
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
		// A writer without our care was killed in the middle. Its messages are lost, and
		// the next one makes the file whole again.
		v = absent()
	case errors.As(err, &torn) && !errors.Is(err, fsx.ErrChanging):
		return version{inbox: &inbox{key: key}, content: raw}, err
	case err != nil:
		return version{}, err
	default:
		v.inbox = newInbox(v.entries, v.content)
	}
	v.inbox.key = key
	v.inbox.canonical = key.Size() == int64(len(v.content)) && bytes.Equal(raw, v.content)
	return v, nil
}

func (m *mail) known(path string) *inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[path]
}

// remember caches next, unless the cached version was has been replaced already.
func (m *mail) remember(path string, was, next *inbox) {
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

// KeepText stores the whole text of a message to an agent of a main session's process,
// and returns the path of the file, which is removed with the session.
func (s *Store) KeepText(main transcript.Ref, id mailbox.ID, text string) (path string, err error) {
	defer wrap(&err, "store the text of message %s", id)
	path = s.root.MailText(main.Project, main.Session, layout.FileName(string(id)))
	return path, s.writeNew(path, []byte(text))
}
