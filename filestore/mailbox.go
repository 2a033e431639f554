package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/transcript"
)

// mail implements [mailbox.Store]: one JSON array per inbox, changed under the
// lock "<agent>.json.lock" (facts: claude-code §5, §8).
type mail struct {
	*Store
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
		err = m.change(ctx, path, repair, func(tx *inboxTx) error { return tx.add(ctx, encodeMessage(msg)) })
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
	return m.hub.watchFile(path)
}

// KeepText stores the whole text of a message to an agent of a main session's process,
// and returns the path of the file, which is removed with the session.
func KeepText(s *Store, main transcript.Ref, id mailbox.ID, text string) (path string, err error) {
	path = s.root.MailText(main.Project, main.Session, layout.FileName(string(id)))
	if err := s.writeNew(path, []byte(text)); err != nil {
		return "", fmt.Errorf("store the text of message %s: %w", id, err)
	}
	return path, nil
}
