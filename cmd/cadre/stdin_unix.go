//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// readable reports whether a Read of f would return within this time: with
// data, the end, or an error.
func readable(f *os.File, within time.Duration) bool {
	return poll(int(within.Milliseconds()), f)
}

// poll waits until one of files can be read; a negative time means for ever. A
// file that cannot be polled counts as readable.
func poll(milliseconds int, files ...*os.File) bool {
	fds := make([]unix.PollFd, len(files))
	for {
		for i, f := range files {
			fds[i] = unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLIN}
		}
		n, err := unix.Poll(fds, milliseconds)
		if !errors.Is(err, unix.EINTR) {
			return n != 0 || err != nil
		}
	}
}

// readerGone reports whether nobody can read any more what is written to f.
func readerGone(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// pasteGap is the longest pause inside a paste: a terminal hands over one line
// at a time, and the next one of a paste is there at once.
const pasteGap = 25 * time.Millisecond

// keyboard is stdin as a conversation reads it: a Read returns a line, or all
// lines of a paste; Close ends a Read that waits.
type keyboard struct {
	in         *os.File
	wake, stop *os.File // stop is closed to make wake readable
	pastes     bool
	once       sync.Once
}

// newKeyboard reads in, which is not closed. pastes joins lines that come
// together.
func newKeyboard(in *os.File, pastes bool) (io.ReadCloser, error) {
	wake, stop, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &keyboard{in: in, wake: wake, stop: stop, pastes: pastes}, nil
}

func (k *keyboard) Read(p []byte) (int, error) {
	poll(-1, k.in, k.wake)
	if readable(k.wake, 0) {
		return 0, io.EOF
	}
	n, err := k.in.Read(p)
	for k.pastes && err == nil && n > 0 && n < len(p) && p[n-1] == '\n' && readable(k.in, pasteGap) {
		more, again := k.in.Read(p[n:])
		if more == 0 { // the next Read reports the end
			break
		}
		n, err = n+more, again
	}
	return n, err
}

func (k *keyboard) Close() error {
	var err error
	k.once.Do(func() { err = k.stop.Close() })
	return err
}
