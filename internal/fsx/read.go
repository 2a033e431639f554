package fsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of reading a state file.
var (
	// ErrTooLarge says that a file has more bytes than any file of its kind.
	ErrTooLarge = errors.New("file is too large")
	// ErrChanging says that the file was written in place while it was read.
	ErrChanging = errors.New("file changed while it was read")
)

// ReadFile reads a whole file of at most limit bytes and describes it as it was
// read. When another program wrote to it meanwhile, the error is [ErrChanging].
func ReadFile(fsys FS, path string, limit int64) (data []byte, info fs.FileInfo, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err = f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > limit {
		return nil, nil, fmt.Errorf("read %s: %d bytes, the limit is %d: %w", path, info.Size(), limit, ErrTooLarge)
	}
	data = make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = fmt.Errorf("read %s: %w", path, ErrChanging)
		}
		return nil, nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if KeyOf(after) != KeyOf(info) {
		return nil, nil, fmt.Errorf("read %s: %w", path, ErrChanging)
	}
	return data, info, nil
}

// Holds reports whether the file at path is the version key, with these bytes in
// it. It costs one pass over the file, and no memory for it.
func Holds(fsys FS, path string, key Key, data []byte) (same bool, err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || KeyOf(info) != key || info.Size() != int64(len(data)) {
		return false, err
	}
	page := make([]byte, min(len(data), 64<<10))
	for rest := data; len(rest) > 0; {
		n, err := io.ReadFull(f, page[:min(len(page), len(rest))])
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return false, nil // cut meanwhile
		}
		if err != nil || !bytes.Equal(page[:n], rest[:n]) {
			return false, err
		}
		rest = rest[n:]
	}
	return true, nil
}

// Key tells one version of a file from another without reading it. The zero
// Key is that of no file.
type Key struct {
	inode uint64
	size  int64
	mtime int64
}

// KeyOf is the key of what info describes; that of nil is the zero Key.
func KeyOf(info fs.FileInfo) Key {
	if info == nil {
		return Key{}
	}
	return Key{inodeOf(info), info.Size(), info.ModTime().UnixNano()}
}

// Size is the size of this version in bytes.
func (k Key) Size() int64 { return k.size }

// Grown reports whether k may be an older version of the file that now is: the
// same file, shorter.
func (k Key) Grown(now Key) bool { return k.SameFile(now) && k.size < now.size }

// SameFile reports whether both are versions of one file, as far as the system
// tells.
func (k Key) SameFile(other Key) bool { return k.inode == other.inode }

// KeyAt is the key of the file at path; a missing file has the zero Key.
func KeyAt(fsys FS, path string) (Key, error) {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, nil
	}
	if err != nil {
		return Key{}, err
	}
	return KeyOf(info), nil
}

// StillAt reports whether path names the open file f, and not a newer one or
// none: who locked a file asks this, since it may have been deleted meanwhile.
func StillAt(fsys FS, f File, path string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, now), err
}
