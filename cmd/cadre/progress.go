package main

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/cadre-dev/cadre/tui"
)

// note tells a line of progress on stderr.
func (o *options) note(text string) {
	if !o.quiet && text != "" {
		fmt.Fprintln(os.Stderr, tui.Clean(text))
	}
}

func (o *options) warn(text string) { o.note("warning: " + text) }

// progress is what tells a run of -p on stderr; nil when nothing is to be told.
func (o *options) progress(dir string) *tui.Lines {
	if o.quiet {
		return nil
	}
	lines := tui.NewLines(os.Stderr, lookOf(os.Stderr, dir))
	lines.Results = o.verbose
	return lines
}

// lookOf finds out what an output can show of work in dir. NO_COLOR: https://no-color.org.
func lookOf(f *os.File, dir string) tui.Look {
	if !term.IsTerminal(int(f.Fd())) {
		return tui.Look{Dir: dir}
	}
	return tui.Look{
		Dir:   dir,
		Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: func() int {
			columns, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return columns
		},
	}
}
