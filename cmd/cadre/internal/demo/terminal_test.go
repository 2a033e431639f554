package demo

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cadre-dev/cadre/internal/cells"
)

// terminal is a screen that understands what a view may write: text, newline,
// carriage return, cursor up, erase below, and colours, which it counts. What
// scrolls off stays, so that the whole history can be read.
type terminal struct {
	t       *testing.T
	width   int
	rows    [][]rune
	x, y    int
	colored int
	frames  int
	watch   func() // after each write
}

func newTerminal(t *testing.T, width int) *terminal {
	return &terminal{t: t, width: width, rows: [][]rune{nil}}
}

var escapeSequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (m *terminal) Write(data []byte) (int, error) {
	m.frames++
	for text := string(data); text != ""; {
		if text[0] == 0x1b {
			if seq := escapeSequence.FindStringSubmatch(text); seq != nil {
				text = text[len(seq[0]):]
				m.control(seq[2], seq[1])
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		m.put(r)
	}
	if m.watch != nil {
		m.watch()
	}
	return len(data), nil
}

func (m *terminal) control(kind, arg string) {
	switch kind {
	case "A":
		n := 1
		if _, err := fmt.Sscan(arg, &n); err != nil {
			m.t.Fatalf("cursor up by %q", arg)
		}
		if m.y -= n; m.y < 0 {
			m.t.Fatal("the cursor goes above the first line")
		}
	case "J":
		m.rows = m.rows[:m.y+1]
		m.rows[m.y] = m.rows[m.y][:m.x]
	case "m":
		m.colored++
	default:
		m.t.Fatalf("unknown sequence %q%q", arg, kind)
	}
}

func (m *terminal) put(r rune) {
	switch {
	case r == '\n':
		m.down()
		return
	case r == '\r':
		m.x = 0
		return
	case r < ' ' || r == 0x7f:
		m.t.Fatalf("control character %q", r)
	}
	if m.x+cells.Width(string(r)) > m.width {
		m.down()
	}
	m.rows[m.y] = append(m.rows[m.y][:m.x], r)
	m.x++
}

func (m *terminal) down() {
	m.x, m.y = 0, m.y+1
	if m.y == len(m.rows) {
		m.rows = append(m.rows, nil)
	}
}

func (m *terminal) String() string {
	var b strings.Builder
	for _, row := range m.rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}
