package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func (m *mail) Post(ctx context.Context, to mailbox.Address, msg mailbox.Message) error {
	path, err := m.path(to)
	if err == nil {
		err = m.makeFolders(path)
	}
	if err == nil {
		err = m.change(ctx, path, repair, func(tx *inboxTx) error { return tx.add(ctx, format.EncodeMessage(msg)) })
	}
	if err != nil {
		return fmt.Errorf("post to %s: %w", to, err)
	}
	return nil
}

func (m *mail) MarkRead(ctx context.Context, at mailbox.Address, ids []mailbox.ID) error {
	path, err := m.path(at)
	if err != nil || len(ids) == 0 {
		return err
	}
	err = m.changeExisting(ctx, path, leave, func(tx *inboxTx) error { return tx.markRead(ctx, ids) })
	if err != nil {
		return fmt.Errorf("mark mail of %s read: %w", at, err)
	}
	return nil
}

func (m *mail) Unread(ctx context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	path, err := m.path(at)
	if err != nil {
		return nil, err
	}
	box, err := m.load(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read mail of %s: %w", at, err)
	}
	return messages(box.unread), nil
}

func (m *mail) All(ctx context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	path, err := m.path(at)
	if err != nil {
		return nil, err
	}
	v, err := m.readWhole(ctx, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read mail of %s: %w", at, err)
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
	content []byte  // canonical; of a torn file, as it stands
	entries []entry // all of them
	// salvaged says that the content is what could be saved of a damaged file.
	salvaged bool
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
	m.replaceKnown(path, box, v.inbox)
	return v.inbox, nil
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

// readWhole is read for those who can wait for the file's lock, under which a file
// that is written all the time stands still. One that is damaged then, while nobody
// can be writing to it, is repaired: nobody else would, and its owner would never get
// mail again.
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

// wholeEntries is what can be read of a damaged inbox that is not to be repaired.
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

// KeepText stores the whole text of a message to an agent of a main session's process,
// and returns the path of the file, which is removed with the session.
func (s *Store) KeepText(main transcript.Ref, id mailbox.ID, text string) (path string, err error) {
	path = s.root.MailText(main.Project, main.Session, layout.FileName(string(id)))
	if err := s.transcripts.writeNew(path, []byte(text)); err != nil {
		return "", fmt.Errorf("store the text of message %s: %w", id, err)
	}
	return path, nil
}
