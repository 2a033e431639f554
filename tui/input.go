package tui

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// chunk is how much of a terminal's input is read at once.
const chunk = 64 << 10

// entries reads what a person enters and yields each entry without its last
// newline, until yield says no or the input ends. On a terminal an entry is
// what one Read gives: a line, or all lines of a paste. Elsewhere it is a line.
func entries(in io.Reader, terminal bool, yield func(string) bool) error {
	if terminal {
		return typed(in, yield)
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" && !yield(strings.TrimRight(line, "\r\n")) {
			return nil
		}
		if err != nil {
			return unlessEOF(err)
		}
	}
}

func typed(in io.Reader, yield func(string) bool) error {
	buf := make([]byte, chunk)
	var entry strings.Builder
	for {
		n, err := in.Read(buf)
		read := string(buf[:n])
		line, goesOn := strings.CutSuffix(read, "\\\n") // what ends in \ goes on
		if goesOn {
			read = line + "\n"
		}
		entry.WriteString(read)
		if !goesOn && strings.HasSuffix(read, "\n") {
			text := strings.TrimRight(entry.String(), "\r\n")
			entry.Reset()
			if !yield(text) {
				return nil
			}
		}
		if err != nil {
			return unlessEOF(err)
		}
		if n == 0 {
			return nil
		}
	}
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
