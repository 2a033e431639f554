package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// seals implements [mailbox.Seals]: a file of lines beside the inboxes, each the
// MAC of one message.
//
// A seal is one write to the end of the file, under no lock. The system puts
// such writes one after the other, so the lines of two processes do not mix; and
// what a kill or a full disk leaves of a line spoils none, because each line
// brings a newline at both its ends. Nothing is ever cut off: between a look at
// the end and the cut another process may have added to it.
type seals struct {
	*Store
	mu    sync.Mutex
	files map[string]*sealFile // by path: the newest version that we have read
}

// errNobody says that an address is that of no agent.
var errNobody = errors.New("the agent's name is empty")

func (s *seals) Seal(ctx context.Context, to mailbox.Address, m mailbox.Message, about string) error {
	if err := s.seal(ctx, to, m, about); err != nil {
		return fmt.Errorf("seal message for %s: %w", to, err)
	}
	return nil
}

func (s *seals) seal(ctx context.Context, to mailbox.Address, m mailbox.Message, about string) error {
	if to.Agent == "" {
		return errNobody
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	key, err := s.keys.need(ctx)
	if err != nil {
		return err
	}
	path := s.root.Seals(to.Team, to.Agent)
	if err := s.makeFolders(path); err != nil {
		return err
	}
	return s.addLine(path, []byte("\n"+key.mac(s.sealParts(path, m, about)...)+"\n"))
}

// sealParts is what a seal vouches for. The inbox is named by its file, which is
// what two spellings of one address have in common.
func (s *seals) sealParts(path string, m mailbox.Message, about string) []string {
	teamFolder := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	return []string{"seal", filepath.Base(teamFolder), filepath.Base(path), m.From, m.Timestamp, m.Text, about}
}

// makeFolders makes the folder of a file of seals, and that of the team: like
// the message, its seal may be the first that a team gets.
func (s *seals) makeFolders(path string) error {
	folder := filepath.Dir(path)
	teamFolder := filepath.Dir(filepath.Dir(folder))
	if err := fsx.MkdirOwn(s.fsys, teamFolder, layout.DirMode); err != nil {
		return err
	}
	return s.makeBelow(teamFolder, folder)
}

// addLine adds to the end of a file in one write.
func (s *seals) addLine(path string, line []byte) (err error) {
	file, err := s.fsys.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, layout.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err := file.Write(line)
	if err == nil && n < len(line) {
		err = fmt.Errorf("write %s: %w", path, io.ErrShortWrite)
	}
	if err != nil || !s.sync {
		return err
	}
	return errors.Join(file.Sync(), s.fsys.SyncDir(filepath.Dir(path)))
}

func (s *seals) Sealed(ctx context.Context, at mailbox.Address, m mailbox.Message, about string) (bool, error) {
	sealed, err := s.sealed(ctx, at, m, about)
	if err != nil {
		return false, fmt.Errorf("look for the seal of a message for %s: %w", at, err)
	}
	return sealed, nil
}

func (s *seals) sealed(ctx context.Context, at mailbox.Address, m mailbox.Message, about string) (bool, error) {
	if at.Agent == "" {
		return false, errNobody
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	path := s.root.Seals(at.Team, at.Agent)
	now, err := fsx.KeyAt(s.fsys, path)
	if err != nil {
		return false, err
	}
	if now == (fsx.Key{}) {
		s.forget(path)
		return false, nil
	}
	key, ok, err := s.keys.read()
	if err != nil || !ok {
		return false, err
	}
	return s.has(path, now, key.mac(s.sealParts(path, m, about)...))
}
