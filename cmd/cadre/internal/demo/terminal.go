package demo

import (
	"os"
	"runtime"

	"golang.org/x/term"
)

// Terminal says what an output can show.
type Terminal struct {
	Live  bool // a terminal whose lower part can be redrawn in place
	Color bool
	// Size is asked for the columns and rows before each drawing; nil, or 0
	// for either: unknown.
	Size func() (columns, rows int)
}

// TerminalOf finds out what f can show: no colours with NO_COLOR, and no live part
// either when f is not a terminal or TERM is dumb.
func TerminalOf(f *os.File, getenv func(string) string) Terminal {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || getenv("TERM") == "dumb" {
		return Terminal{}
	}
	if runtime.GOOS == "windows" && getenv("WT_SESSION") == "" && getenv("TERM") == "" {
		return Terminal{} // an old console, which would show the escape sequences
	}
	return Terminal{
		Live: true, Color: getenv("NO_COLOR") == "",
		Size: func() (int, int) {
			columns, rows, err := term.GetSize(fd)
			if err != nil {
				return 0, 0
			}
			return columns, rows
		},
	}
}

// columns is the width to draw for; 0: no limit.
func (t Terminal) columns() int {
	columns, _ := t.size()
	return columns
}

func (t Terminal) size() (columns, rows int) {
	if t.Size != nil {
		columns, rows = t.Size()
	}
	if t.Live && columns <= 0 {
		columns = 80
	}
	if t.Live && rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// narrow is the width below which less important columns are left out.
const narrow = 60

func (t Terminal) isNarrow() bool { return t.columns() > 0 && t.columns() < narrow }
