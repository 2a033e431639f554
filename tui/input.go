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
// newline, until yield says no or the input ends. On a terminal an entry is what one
// Read gives: a line, or all lines of a paste, but for those that are a command.
// Elsewhere each line is one.
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
			for _, part := range apart(text) {
				if !yield(part) {
					return nil
				}
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

// apart separates commands from the lines that were read with them: who types ahead
// writes a prompt and then /quit, and a paste cannot be told from that.
func apart(text string) []string {
	var parts, lines []string
	goesOn := false // the line before continues on this one
	for line := range strings.SplitSeq(text, "\n") {
		if !goesOn && isWholeCommand(line) {
			if len(lines) > 0 {
				parts = append(parts, strings.Join(lines, "\n"))
			}
			parts, lines = append(parts, line), nil
			continue
		}
		goesOn = strings.HasSuffix(line, "\\")
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return parts
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
