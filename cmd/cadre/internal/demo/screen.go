package demo

import (
	"bytes"
	"fmt"
	"io"
)

// screen writes lines, and on a terminal a status below them that each drawing
// replaces. Every drawing is one write, so that nothing flickers or is torn.
type screen struct {
	out   io.Writer
	drawn []int  // the widths of the lines of the status as it was drawn
	text  []byte // and how it was written
}

// print writes whole lines.
func (s *screen) print(lines string) {
	if lines != "" {
		_, _ = io.WriteString(s.out, lines) // the run goes on without a reader
	}
}

// redraw replaces the status with whole lines, and draws the new status below them.
func (s *screen) redraw(lines string, status []line, columns int, color bool) {
	var below bytes.Buffer
	for _, l := range status {
		below.WriteString(l.render(color) + "\n")
	}
	if lines == "" && bytes.Equal(below.Bytes(), s.text) {
		return
	}
	var b bytes.Buffer
	if up := s.height(columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", up)
	}
	b.WriteString(lines)
	b.Write(below.Bytes())
	s.text, s.drawn = below.Bytes(), s.drawn[:0]
	for _, l := range status {
		s.drawn = append(s.drawn, l.width())
	}
	_, _ = s.out.Write(b.Bytes()) // as above
}

// height is how many rows the status has on the terminal, which wraps its lines when it
// is made narrower.
func (s *screen) height(columns int) int {
	rows := 0
	for _, width := range s.drawn {
		rows += max(1, (width+columns-1)/columns)
	}
	return rows
}
