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
// A seal is one write to the end of the file, under no lock. The system does such writes
// one after the other, so the lines of two processes do not mix; and a line that a kill
// or a full disk cut short spoils no other, because each has a newline at both its ends.
// Nothing is ever truncated: another process may have added to the file meanwhile.
type seals struct {
	*files
	keys *keyring
	mu   sync.Mutex
	read map[string]*sealFile // by path: the newest version that we have read
}

// errNobody says that an address names no agent.
var errNobody = errors.New("the agent's name is empty")

func (s *seals) Seal(ctx context.Context, to mailbox.Address, m mailbox.Message, about string) (err error) {
	defer wrap(&err, "seal message for %s", to)
	if to.Agent == "" {
		return errNobody
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	key, err := s.keys.getOrCreate(ctx)
	if err != nil {
		return err
	}
	path := s.root.Seals(to.Team, to.Agent)
	if err := s.makeFolders(path); err != nil {
		return err
	}
	return s.addLine(path, []byte("\n"+key.mac(s.sealParts(path, m, about)...)+"\n"))
}

// sealParts is what a seal covers. The inbox is named by its file, which two spellings of
// one address have in common.
func (s *seals) sealParts(path string, m mailbox.Message, about string) []string {
	teamFolder := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	return []string{"seal", filepath.Base(teamFolder), filepath.Base(path), m.From, m.Timestamp, m.Text, about}
}

// makeFolders makes the folder of a file of seals, and that of the team: the first
// message of a team is sealed before the inbox exists.
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

func (s *seals) Sealed(ctx context.Context, at mailbox.Address, m mailbox.Message, about string) (sealed bool, err error) {
	defer wrap(&err, "find the seal of a message for %s", at)
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

// sealFile is what is cached of a file of seals: every line, so that only what was added
// since has to be read.
type sealFile struct {
	key  fsx.Key
	read int64      // up to here, where a line ended
	tail sealDigest // of the last bytes before
	// lines is handed on from version to version, and guarded by seals.mu.
	lines map[sealDigest]struct{}
}

// sealDigest is the digest of a line, cut to a length that cannot be guessed. Seals are
// looked up by it, so that the time of a lookup does not tell how much of a MAC was
// guessed right.
type sealDigest [12]byte

func digestOfSeal(line []byte) sealDigest {
	sum := sha256.Sum256(line)
	return sealDigest(sum[:len(sealDigest{})])
}

const (
	// sealTail is how much of a file's end is compared to see that the file only grew,
	// and is not that of a team which was removed and made again.
	sealTail = 1 << 10
	// maxSeals is the size of a file with some four million seals.
	maxSeals = 256 << 20
)

func (s *seals) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, path)
}

// has reports whether a file has a line; now is its version, unless it has changed since.
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
	return s.remember(path, next, added, wanted), nil
}

// lookUp looks for a line in what is cached of a file; fresh is false when that is not
// the version now.
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

// remember caches a version that was read, and looks for a line in it. If a newer one was
// cached meanwhile, the next lookup reads that again.
func (s *seals) remember(path string, next *sealFile, added []sealDigest, wanted sealDigest) (found bool) {
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
			added = next.parse(data, known.read, from)
			return next, added, nil
		}
	}
	data, err := readFrom(file, 0, info.Size())
	if err != nil {
		return nil, nil, err
	}
	next.lines = make(map[sealDigest]struct{}, len(data)/sealLine)
	added = next.parse(data, 0, 0)
	return next, added, nil
}

// sealLine is the length of a line with its two newlines.
const sealLine = 2*sha256.Size + 2

// parse sets how far a file has been read whose bytes from at on are data, and returns
// the whole lines that begin at from or later.
func (f *sealFile) parse(data []byte, from, at int64) []sealDigest {
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

// readFrom reads the bytes of a file between two offsets.
func readFrom(file fsx.File, from, to int64) ([]byte, error) {
	data := make([]byte, to-from)
	_, err := file.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("read %s: %w", file.Name(), fsx.ErrChanging)
	}
	return data, err
}
