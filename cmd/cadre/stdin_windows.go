package main

import (
	"io"
	"os"
	"sync"
	"time"
)

// readable is always true: a console cannot be asked.
func readable(*os.File, time.Duration) bool { return true }

// readerGone is always false: the next write tells.
func readerGone(*os.File) bool { return false }

// keyboard is stdin as a conversation reads it. A Read that waits cannot be
// ended here, so it waits in a goroutine of its own, which the end of the
// process ends.
type keyboard struct {
	read  chan []byte
	err   error // valid when read is closed
	rest  []byte
	done  chan struct{}
	close sync.Once
}

func newKeyboard(in *os.File, _ bool) (io.ReadCloser, error) {
	k := &keyboard{read: make(chan []byte), done: make(chan struct{})}
	go k.pump(in)
	return k, nil
}

func (k *keyboard) pump(in *os.File) {
	defer close(k.read)
	for {
		buf := make([]byte, 16<<10)
		n, err := in.Read(buf)
		select {
		case k.read <- buf[:n]:
		case <-k.done:
			return
		}
		if err != nil {
			k.err = err
			return
		}
	}
}

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		select {
		case data, ok := <-k.read:
			if !ok {
				return 0, k.err
			}
			k.rest = data
		case <-k.done:
			return 0, io.EOF
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (k *keyboard) Close() error {
	k.close.Do(func() { close(k.done) })
	return nil
}
