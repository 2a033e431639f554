package filestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// Our processes log the ids of the tasks that they change, so that the others need not
// check every file of a long list. The log holds nothing that is not in the files: when it
// is missing or was started anew, all of them are checked.
//
// A record is a newline, an id and a newline, so that one that a kill cut short does not
// spoil the next. The first record is the log's epoch, since the system may give the inode
// number of the file to a later log.
const (
	// everything is the record for: any task may have changed.
	everything = "*"
	// maxRecords is how many tasks one change names, before it logs everything.
	maxRecords = 64
	// maxChangeLog is the size from which the log is started anew.
	maxChangeLog = 64 << 10
	// epochLen is the size of an epoch, which looks like no id.
	epochLen = len("\n=0123456789abcdef\n")
)

func newEpoch() string { return fmt.Sprintf("\n=%016x\n", rand.Uint64()) }

// changeMark is a place in a list's change log. The zero mark is that of a list
// without one.
type changeMark struct {
	list  fsx.Key // of the file that the list is locked by: another one is another list's
	file  fsx.Key
	at    int64
	epoch string
}

// precedes reports whether later is a mark in the same log, further on.
func (m changeMark) precedes(later changeMark) bool {
	return m.list == later.list && m.file.SameFile(later.file) && m.epoch == later.epoch && m.at < later.at
}

func (ts *tasks) changeLog(folder string) string {
	_, queue := ts.root.LockQueue(filepath.Join(folder, lockTarget))
	return filepath.Join(filepath.Dir(queue), "changes")
}

// changesSince returns the ids that were logged after mark, and the mark behind them.
// complete is false when other tasks may have changed too.
func (ts *tasks) changesSince(folder string, mark changeMark) (ids []string, now changeMark, complete bool, err error) {
	list, atEnd, err := ts.isLogEnd(folder, mark)
	if err != nil || atEnd {
		return nil, mark, err == nil, err
	}
	f, err := ts.fsys.OpenFile(ts.changeLog(folder), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || isDamage(err) {
		return nil, changeMark{list: list}, false, nil
	}
	if err != nil {
		return nil, mark, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err = logEnd(f)
	now.list = list
	if err != nil || !mark.precedes(now) {
		return nil, now, false, err
	}
	text, err := readText(f, mark.at, now.at-mark.at)
	if err != nil {
		return nil, mark, false, err
	}
	// A record that is just being written is left for the next call.
	whole := strings.LastIndexByte(text, '\n') + 1
	now.at = mark.at + int64(whole)
	for id := range strings.FieldsSeq(text[:whole]) {
		if !validID(id) {
			return nil, now, false, nil
		}
		ids = append(ids, id)
	}
	return ids, now, true, nil
}

// isLogEnd reports whether the mark is still the end of the list's log. list is the
// version of the file that the list is locked by.
func (ts *tasks) isLogEnd(folder string, mark changeMark) (list fsx.Key, atEnd bool, err error) {
	list, err = fsx.KeyAt(ts.fsys, filepath.Join(folder, lockTarget))
	if err != nil {
		return list, false, err
	}
	log, err := fsx.KeyAt(ts.fsys, ts.changeLog(folder))
	return list, err == nil && mark.list == list && mark.file == log && mark.at == log.Size(), err
}

// unchangedSince reports whether no process of ours has changed the list since the mark:
// nobody holds its lock, and nobody has logged a change. In this order, since a change is
// logged before its lock is released.
func (ts *tasks) unchangedSince(folder string, mark changeMark) (bool, error) {
	taken, err := dirlock.Exists(ts.fsys, filepath.Join(folder, lockTarget))
	if taken || err != nil {
		return false, err
	}
	_, atEnd, err := ts.isLogEnd(folder, mark)
	return atEnd, err
}

// logEnd is the mark behind all that an open log holds.
func logEnd(log fsx.File) (changeMark, error) {
	info, err := log.Stat()
	if err != nil {
		return changeMark{}, err
	}
	epoch, err := readText(log, 0, int64(epochLen))
	key := fsx.KeyOf(info)
	return changeMark{file: key, at: key.Size(), epoch: epoch}, err
}

// readText reads up to size bytes.
func readText(f fsx.File, at, size int64) (string, error) {
	data := make([]byte, size)
	n, err := f.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(data[:n]), err
}

// logChanges logs which tasks were changed, and returns the mark behind that. The list's
// lock is held.
func (ts *tasks) logChanges(folder string, mark changeMark, ids []string) (changeMark, error) {
	path := ts.changeLog(folder)
	if mark.at > maxChangeLog {
		epoch := newEpoch()
		info, err := fsx.WriteAtomic(ts.fsys, path, []byte(epoch), fsx.WriteOptions{Mode: layout.FileMode})
		key := fsx.KeyOf(info)
		return changeMark{mark.list, key, key.Size(), epoch}, err
	}
	f, err := ts.openChangeLog(path)
	if err != nil {
		return mark, err
	}
	records := "\n" + strings.Join(ids, "\n\n") + "\n"
	if mark.at == 0 {
		mark.epoch = newEpoch()
		records = mark.epoch + records
	}
	if _, err = f.Write([]byte(records)); err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			mark.file, mark.at = fsx.KeyOf(info), info.Size()
		}
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		ts.warn(fmt.Errorf("log changes: %w", closeErr))
	}
	return mark, err
}

// openChangeLog opens the log for appending, and makes it if it is missing.
func (ts *tasks) openChangeLog(path string) (fsx.File, error) {
	const how = os.O_WRONLY | os.O_APPEND | os.O_CREATE
	f, err := ts.fsys.OpenFile(path, how, layout.FileMode)
	if errors.Is(err, fsx.ErrNotRegular) {
		if err = ts.setAside(path, err); err == nil {
			f, err = ts.fsys.OpenFile(path, how, layout.FileMode)
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // where the system has no side files
		if err = fsx.MkdirAll(ts.fsys, filepath.Dir(path), layout.DirMode); err == nil {
			f, err = ts.fsys.OpenFile(path, how, layout.FileMode)
		}
	}
	return f, err
}
