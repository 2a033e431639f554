package filestore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// secret is the key that seals are made with. No part of it goes into an error.
type secret []byte

// secretBytes is the length of the key; its file has two hexadecimal digits for
// each.
const secretBytes = 32

// mac is the authentication code of parts, in hexadecimal digits. The length of each part
// goes before it, so that no two lists of parts have the same code; the first part says
// what is sealed.
func (k secret) mac(parts ...string) string {
	h := hmac.New(sha256.New, k)
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":"))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// verifies reports whether mac is the code of the parts, in a time that does not depend on
// where it differs. Without a key, nothing is sealed.
func (k secret) verifies(mac string, parts ...string) bool {
	return len(k) == secretBytes && hmac.Equal([]byte(mac), []byte(k.mac(parts...)))
}

// keyring has the one key of a root. Its file is made once and never replaced: no seal that
// was made with it would be valid any more.
type keyring struct {
	*files
	mu     sync.Mutex
	loaded fsx.Key // the version of the file that key was read from
	key    secret
}

var (
	errKeyDamaged = errors.New("not a valid key: put the right one back, or move this file away, so that a new key is made; messages of agents that were not read before then count as unverified")
	errKeyRemoved = errors.New("the key was removed while it was made")
)

// read returns the key; ok is false when there is none yet.
func (k *keyring) read() (key secret, ok bool, err error) {
	path := k.root.Key()
	now, err := fsx.KeyAt(k.fsys, path)
	if err != nil || now == (fsx.Key{}) {
		return nil, false, err
	}
	k.mu.Lock()
	key, ok = k.key, k.loaded == now && k.key != nil
	k.mu.Unlock()
	if ok {
		return key, true, nil
	}
	data, info, err := fsx.ReadFile(k.fsys, path, 2*secretBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil || errors.Is(err, fsx.ErrTooLarge) {
		key, err = decodeKey(path, data)
	}
	if err != nil {
		return nil, false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.loaded = key, fsx.KeyOf(info)
	return key, true, nil
}

func decodeKey(path string, data []byte) (secret, error) {
	key, err := hex.DecodeString(string(data))
	if err != nil || len(key) != secretBytes {
		return nil, &fs.PathError{Op: "read key", Path: path, Err: errKeyDamaged} // err would quote from it
	}
	return key, nil
}

// getOrCreate returns the key, and makes it first when there is none: the first of all
// processes makes it, and the others use that one.
func (k *keyring) getOrCreate(ctx context.Context) (secret, error) {
	key, ok, err := k.read()
	if ok || err != nil {
		return key, err
	}
	if err := k.create(ctx); err != nil {
		return nil, fmt.Errorf("make key %s: %w", k.root.Key(), err)
	}
	key, ok, err = k.read()
	if err == nil && !ok {
		err = &fs.PathError{Op: "read key", Path: k.root.Key(), Err: errKeyRemoved}
	}
	return key, err
}

func (k *keyring) create(ctx context.Context) error {
	folder := k.root.OwnDir()
	if err := k.makeOwnDir(); err != nil {
		return err
	}
	return k.lockedFolder(ctx, folder, k.sweepTemps(folder), func(lock *dirlock.Lock) error {
		if _, ok, err := k.read(); ok || err != nil {
			return err
		}
		fresh := make([]byte, secretBytes)
		_, _ = rand.Read(fresh) // never fails: crypto/rand.Read
		// It is written once for a lifetime, so it always waits for the disk.
		options := fsx.WriteOptions{Mode: layout.FileMode, Sync: true, Ready: func() error { return k.ready(lock) }}
		_, err := fsx.WriteAtomic(k.fsys, k.root.Key(), []byte(hex.EncodeToString(fresh)), options)
		return err
	})
}

// ready returns an error when a new key may not be written.
func (k *keyring) ready(lock *dirlock.Lock) error {
	if err := lock.Held(); err != nil {
		return err
	}
	exists, err := k.exists(k.root.Key())
	if exists {
		err = errChanged
	}
	return err
}

// makeOwnDir makes the root, and in it the private folder.
func (s *files) makeOwnDir() error {
	if err := fsx.MkdirAll(s.fsys, string(s.root), layout.DirMode); err != nil {
		return err
	}
	return s.makeBelow(string(s.root), s.root.OwnDir())
}
