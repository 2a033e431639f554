package filestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	*files
	keys *keyring
	mu   sync.Mutex
	read map[string]*sealFile // by path: the newest version that we have read
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

// sealFile is what is remembered of a file of seals: every line of it, so that
// only what was added since has to be read.
type sealFile struct {
	key  fsx.Key
	read int64      // up to here, where a line ended
	tail sealDigest // of the last bytes before
	// lines is handed on from version to version, and guarded by seals.mu.
	lines map[sealDigest]struct{}
}

// sealDigest is that of a line, cut to what nobody guesses. Seals are looked up by
// it, so that the time this takes says nothing of how near a guess comes to a MAC.
type sealDigest [12]byte

func digestOfSeal(line []byte) sealDigest {
	sum := sha256.Sum256(line)
	return sealDigest(sum[:len(sealDigest{})])
}

const (
	// sealTail is how much of a file's end tells that it only grew, and is no
	// new one whose team was removed and made again: many lines, each of which
	// is that of no other message.
	sealTail = 1 << 10
	// maxSeals is the size of a file of some four million.
	maxSeals = 256 << 20
)

func (s *seals) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, path)
}

// has reports whether a file, which is the version now or a later one, has a
// line.
func (s *seals) has(path string, now fsx.Key, line string) (bool, error) {
	wanted := digestOfSeal([]byte(line))
	known, found, fresh := s.lookUp(path, now, wanted)
	if fresh {
		return found, nil
	}
	next, added, err := s.readSeals(path, known)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.learn(path, next, added, wanted), nil
}

// lookUp looks for a line in what is known of a file; fresh is false when that
// is not the version now.
func (s *seals) lookUp(path string, now fsx.Key, wanted sealDigest) (known *sealFile, found, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known = s.read[path]
	if known == nil || known.key != now {
		return known, false, false
	}
	_, found = known.lines[wanted]
	return known, found, true
}

// learn remembers a version that was read and looks for a line in it. When
// somebody has learned of a newer one meanwhile, the next look reads that again.
func (s *seals) learn(path string, next *sealFile, added []sealDigest, wanted sealDigest) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range added {
		next.lines[line] = struct{}{}
	}
	if s.read == nil {
		s.read = make(map[string]*sealFile)
	}
	s.read[path] = next
	_, found = next.lines[wanted]
	return found
}

// readSeals reads the version that a file has now: what was added to known, or
// all of it when known is nil or another file.
func (s *seals) readSeals(path string, known *sealFile) (next *sealFile, added []sealDigest, err error) {
	file, err := s.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > maxSeals {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: fsx.ErrTooLarge}
	}
	next = &sealFile{key: fsx.KeyOf(info)}
	if known != nil && known.key.Grown(next.key) {
		from := known.read - min(known.read, sealTail)
		data, err := readFrom(file, from, info.Size())
		if err != nil {
			return nil, nil, err
		}
		if old := data[:known.read-from]; tailOfSeals(old) == known.tail {
			next.lines = known.lines
			added = next.take(data, known.read, from)
			return next, added, nil
		}
	}
	data, err := readFrom(file, 0, info.Size())
	if err != nil {
		return nil, nil, err
	}
	next.lines = make(map[sealDigest]struct{}, len(data)/sealLine)
	added = next.take(data, 0, 0)
	return next, added, nil
}

// sealLine is the length of a line with its two newlines.
const sealLine = 2*sha256.Size + 2

// take notes how far a file was read whose bytes from at on are data, and
// returns the lines that begin at from or later. What is torn is no line.
func (f *sealFile) take(data []byte, from, at int64) []sealDigest {
	end := bytes.LastIndexByte(data, '\n') + 1
	f.read = max(from, at+int64(end))
	f.tail = tailOfSeals(data[:f.read-at])
	var added []sealDigest
	for line := range bytes.SplitSeq(data[from-at:f.read-at], []byte("\n")) {
		if len(line) == 2*sha256.Size {
			added = append(added, digestOfSeal(line))
		}
	}
	return added
}

func tailOfSeals(data []byte) sealDigest {
	return digestOfSeal(data[max(0, len(data)-sealTail):])
}

// readFrom reads the bytes of a file between two places.
func readFrom(file fsx.File, from, to int64) ([]byte, error) {
	data := make([]byte, to-from)
	_, err := file.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("read %s: %w", file.Name(), fsx.ErrChanging)
	}
	return data, err
}
