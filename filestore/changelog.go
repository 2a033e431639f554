package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// Beside the lock of a list our processes write down the ids of the tasks that
// they change, so that the others need not look at every file of a long list to
// find out. It holds nothing that is not in the files: when it is missing or
// started anew, everything is looked at again.
//
// A record is a newline, an id and a newline, so that one that was torn by a
// kill does not spoil the next.
const (
	// everything is the record that names no task: look at all of them.
	everything = "*"
	// maxRecords is how many tasks one change names.
	maxRecords = 64
	// maxChangeLog is the size from which the log is started anew.
	maxChangeLog = 64 << 10
)

// changeMark is a place in a list's change log. The zero mark is that of a list
// without one.
type changeMark struct {
	file fsx.Key // any version of it
	at   int64
}

func changeLog(folder string) string {
	return filepath.Join(folder, dirlock.SideFolder, "changes")
}

// changesSince returns the ids that were written down after mark, and the mark
// behind them. known is false when they do not tell everything.
func (ts *tasks) changesSince(folder string, mark changeMark) (ids []string, now changeMark, known bool, err error) {
	path := changeLog(folder)
	key, err := fsx.KeyAt(ts.fsys, path)
	if err != nil {
		return nil, mark, false, err
	}
	now = changeMark{key, key.Size()}
	if !key.SameFile(mark.file) || now.at < mark.at {
		return nil, now, false, nil
	}
	if now.at == mark.at {
		return nil, now, true, nil
	}
	data, err := ts.readFrom(path, mark.at, now.at-mark.at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, changeMark{}, false, nil
	}
	if err != nil {
		return nil, mark, false, err
	}
	// A record that is being written is left for the next time.
	whole := strings.LastIndexByte(data, '\n') + 1
	now.at = mark.at + int64(whole)
	for id := range strings.FieldsSeq(data[:whole]) {
		if !validID(id) {
			return nil, now, false, nil
		}
		ids = append(ids, id)
	}
	return ids, now, true, nil
}

func (ts *tasks) readFrom(path string, at, size int64) (text string, err error) {
	f, err := ts.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data := make([]byte, size)
	n, err := f.ReadAt(data, at)
	return string(data[:n]), err
}

// writeDown tells the others which tasks were changed; it returns the mark
// behind that. The list's lock is held.
func (ts *tasks) writeDown(folder string, mark changeMark, ids []string) (changeMark, error) {
	path := changeLog(folder)
	records := "\n" + strings.Join(ids, "\n\n") + "\n"
	if mark.at > maxChangeLog {
		info, err := fsx.WriteAtomic(ts.fsys, path, []byte("\n"+everything+"\n"), fsx.WriteOptions{Mode: layout.FileMode})
		key := fsx.KeyOf(info)
		return changeMark{key, key.Size()}, err
	}
	f, err := ts.fsys.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, layout.FileMode)
	if errors.Is(err, fs.ErrNotExist) { // where the system has no side files
		if err = fsx.MkdirAll(ts.fsys, filepath.Dir(path), layout.DirMode); err == nil {
			f, err = ts.fsys.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, layout.FileMode)
		}
	}
	if err != nil {
		return mark, err
	}
	if _, err = f.Write([]byte(records)); err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			mark = changeMark{fsx.KeyOf(info), info.Size()}
		}
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		ts.warn(fmt.Errorf("write down changes: %w", closeErr))
	}
	return mark, err
}
