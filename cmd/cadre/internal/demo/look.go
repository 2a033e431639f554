package demo

import (
	"os"
	"runtime"

	"golang.org/x/term"
)

// Look says what the output may look like.
type Look struct {
	Live  bool // a terminal whose lower part can be redrawn in place
	Color bool
	// Size is asked for the columns and rows before each drawing; nil, or 0
	// for either: unknown.
	Size func() (columns, rows int)
}

// LookOf finds out what f can show. NO_COLOR takes the colours away; no
// terminal, or TERM=dumb, the live part too.
func LookOf(f *os.File, getenv func(string) string) Look {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || getenv("TERM") == "dumb" {
		return Look{}
	}
	if runtime.GOOS == "windows" && getenv("WT_SESSION") == "" && getenv("TERM") == "" {
		return Look{} // an old console, which would show the escape sequences
	}
	return Look{
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
func (l Look) columns() int {
	columns, _ := l.size()
	return columns
}

func (l Look) size() (columns, rows int) {
	if l.Size != nil {
		columns, rows = l.Size()
	}
	if l.Live && columns <= 0 {
		columns = 80
	}
	if l.Live && rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// narrow is the width below which what can be left out is.
const narrow = 60

func (l Look) isNarrow() bool { return l.columns() > 0 && l.columns() < narrow }
