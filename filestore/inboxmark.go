package filestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// There are two ways to mark messages read, and both are needed. A file is written anew
// with the marks: that works for every file, and gives exactly the bytes that Claude Code
// gives, which reads the same files. But it costs as much as the inbox is long. So a long
// inbox is marked in place, where its spelling allows it, and to take mail costs the same
// after 100,000 messages as after ten: the value false becomes true and a blank, which to
// JSON is white space, in one write per message. A kill between two of these leaves a valid
// file.
const (
	// patchFrom is the size from which an inbox is marked in place.
	patchFrom = 64 << 10
	// patchBlock is what is written whole or not at all: by the system when the process
	// is killed (that is a page, which is more), and by a disk when the power fails. A
	// value that lies across two blocks is not set in place.
	patchBlock = 512
)

var (
	readKey   = []byte("\n" + entryIndent + entryIndent + `"read":`)
	flagUnset = []byte("false")
	flagSet   = []byte("true ")
)

// flagIn is the offset in an entry of the value of "read", if that is false and can be set
// in place, or 0.
func flagIn(entry []byte) int {
	at := bytes.LastIndex(entry, readKey)
	if at < 0 || bytes.Index(entry, readKey) != at {
		return 0
	}
	value := bytes.TrimLeft(entry[at+len(readKey):], " ")
	if !bytes.HasPrefix(value, flagUnset) {
		return 0
	}
	return len(entry) - len(value)
}

// acrossBlocks reports whether a flag at this offset lies across two blocks.
func acrossBlocks(flag int) bool {
	return flag/patchBlock != (flag+len(flagUnset)-1)/patchBlock
}

// padFlag puts blanks before the flag of the only entry in tail, which will be written at
// the offset at, so that the flag lies within one block.
func padFlag(tail []byte, at int) []byte {
	flag := flagIn(tail)
	if flag == 0 || !acrossBlocks(at+flag) {
		return tail
	}
	blanks := bytes.Repeat([]byte{' '}, patchBlock-(at+flag)%patchBlock)
	return bytes.Join([][]byte{tail[:flag], blanks, tail[flag:]}, nil)
}

// markRead marks messages read.
func (tx *inboxTx) markRead(ctx context.Context, ids []mailbox.ID) error {
	box := tx.known(tx.path)
	if box != nil { // this may save reading all of it again
		if key, err := fsx.KeyAt(tx.fsys, tx.path); err == nil && tx.follow(tx.path, box, key) != nil {
			box = tx.known(tx.path)
		}
	}
	if done, err := tx.markInPlace(box, ids); done || err != nil {
		return err
	}
	v, err := tx.current(ctx)
	if err != nil {
		return err
	}
	if v.inbox != box {
		tx.remember(tx.path, box, v.inbox)
		if done, err := tx.markInPlace(v.inbox, ids); done || err != nil {
			return err
		}
	}
	return tx.rewriteMarked(v, ids)
}

// rewriteMarked writes the file anew, with messages marked read, or just to repair it.
func (tx *inboxTx) rewriteMarked(v version, ids []mailbox.ID) error {
	marked, rest, err := v.inbox.withMarks(v.content, ids)
	if err != nil || marked == nil && !v.salvaged {
		return err
	}
	if marked == nil {
		marked = v.content
	}
	if err := tx.save(v, marked); err != nil {
		return err
	}
	next := &inbox{key: tx.key, canonical: true, end: endOf(marked), unread: rest, ids: v.inbox.ids}
	tx.remember(tx.path, v.inbox, next)
	return nil
}

// markInPlace marks messages of the version box read, with one small write each. done is
// false when that is not possible, and then nothing was written.
func (tx *inboxTx) markInPlace(box *inbox, ids []mailbox.ID) (done bool, err error) {
	chosen, ok := box.markable(ids)
	if !ok {
		return false, nil
	}
	f, err := tx.openInPlace()
	if f == nil {
		return false, err
	}
	defer tx.closeWarning(f)
	info, err := f.Stat()
	if err != nil || fsx.KeyOf(info) != box.key {
		return false, err
	}
	for _, e := range chosen {
		if ok, err := e.readOnceSet(f); !ok || err != nil {
			return false, err
		}
	}
	if len(chosen) == 0 {
		return true, nil
	}
	if err = tx.lock.Held(); err == nil {
		err = tx.setFlags(f, chosen)
	}
	if err != nil {
		return false, err
	}
	tx.rememberMarked(f, box, info.ModTime(), chosen)
	return true, nil
}

// markable returns the unread messages among these. ok is false when they cannot be marked
// in place.
func (b *inbox) markable(ids []mailbox.ID) (chosen []entry, ok bool) {
	if b == nil || !b.canonical || b.key.Size() < patchFrom || len(ids) == 0 {
		return nil, false
	}
	wanted := idSet(ids)
	for _, u := range b.unread {
		if !wanted[u.message.ID] {
			continue
		}
		if u.flag == 0 || acrossBlocks(u.flag) {
			return nil, false
		}
		chosen = append(chosen, u)
	}
	return chosen, true
}

func idSet(ids []mailbox.ID) map[mailbox.ID]bool {
	set := make(map[mailbox.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// readOnceSet reports whether the entry is in the file as we know it, and will be read once
// its flag is set: another program may have written the key twice.
func (e entry) readOnceSet(f io.ReaderAt) (bool, error) {
	text := make([]byte, e.end-e.start)
	if _, err := f.ReadAt(text, int64(e.start)); err != nil {
		return false, err
	}
	flag := text[e.flag-e.start:][:len(flagSet)]
	if !bytes.Equal(flag, flagUnset) {
		return false, nil
	}
	copy(flag, flagSet)
	var doc jsonx.Object
	if json.Unmarshal(text, &doc) != nil {
		return false, nil
	}
	m := format.DecodeMessage(&doc)
	return m.Read && m.From == e.message.From && m.Timestamp == e.message.Timestamp && m.Text == e.message.Text, nil
}

// setFlags sets the flags of all these entries, or of none.
func (tx *inboxTx) setFlags(f fsx.File, chosen []entry) (err error) {
	tried := 0
	for ; tried < len(chosen) && err == nil; tried++ {
		_, err = f.WriteAt(flagSet, int64(chosen[tried].flag))
	}
	if err == nil && tx.sync {
		err = f.Sync()
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	for _, e := range chosen[:tried] {
		_, undoErr := f.WriteAt(flagUnset, int64(e.flag))
		errs = append(errs, undoErr)
	}
	return errors.Join(errs...)
}

// rememberMarked caches what was marked in place. The file has kept its size, so its time
// must show that it has changed: the time that the system gives it may be too coarse for
// that, or the clock was set back.
func (tx *inboxTx) rememberMarked(f fsx.File, box *inbox, before time.Time, chosen []entry) {
	tx.wrote = true
	at := time.Now()
	if !at.After(before) {
		at = before.Add(time.Microsecond)
	}
	if err := tx.fsys.Chtimes(tx.path, at, at); err != nil {
		tx.warn(err) // the system has set the time already, most likely to a new one
	}
	info, err := f.Stat()
	if err != nil {
		return // the next reader finds out
	}
	tx.key = fsx.KeyOf(info)
	later := inboxChanges{key: tx.key, read: make(map[mailbox.ID]bool, len(chosen))}
	var set []int
	for _, e := range chosen {
		later.read[e.message.ID] = true
		set = append(set, e.flag)
	}
	later.end = box.endWith(set)
	tx.advance(tx.path, box, later)
}

// endWith is the end of the file when these flags are set.
func (b *inbox) endWith(set []int) []byte {
	end := bytes.Clone(b.end)
	from := int(b.key.Size()) - len(end)
	for _, flag := range set {
		for i, c := range flagSet {
			if at := flag + i - from; at >= 0 && at < len(end) {
				end[at] = c
			}
		}
	}
	return end
}

// readMarks reads the flags of the messages that are unread in b: a file that was marked in
// place, and then appended to, looks as if it had only grown. ok is false when there is
// something else in their place.
func (b *inbox) readMarks(f io.ReaderAt) (read map[mailbox.ID]bool, set []int, ok bool) {
	page := make([]byte, 4<<10)
	from, to := 0, 0 // what page holds
	for _, u := range b.unread {
		if u.flag == 0 {
			continue // it can only be marked by a new file
		}
		if u.flag+len(flagSet) > to {
			from, to = u.flag, min(u.flag+len(page), int(b.key.Size()))
			if _, err := f.ReadAt(page[:to-from], int64(from)); err != nil {
				return nil, nil, false
			}
		}
		switch string(page[u.flag-from:][:len(flagSet)]) {
		case string(flagUnset):
		case string(flagSet):
			if read == nil {
				read = make(map[mailbox.ID]bool)
			}
			read[u.message.ID] = true
			set = append(set, u.flag)
		default:
			return nil, nil, false
		}
	}
	return read, set, true
}
