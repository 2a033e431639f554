package main

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/cadre-dev/cadre/tui"
)

// note prints a line on stderr.
func (o *options) note(text string) {
	if !o.quiet && text != "" {
		fmt.Fprintln(os.Stderr, tui.Clean(text))
	}
}

func (o *options) warn(text string) { o.note("warning: " + text) }

// progress shows a run of -p on stderr; nil when it is to be quiet.
func (o *options) progress(dir string) *tui.Lines {
	if o.quiet {
		return nil
	}
	lines := tui.NewLines(os.Stderr, styleOf(os.Stderr, dir))
	lines.Results = o.verbose
	return lines
}

// styleOf finds out what an output can show of work in dir. NO_COLOR: https://no-color.org.
func styleOf(f *os.File, dir string) tui.Style {
	if !term.IsTerminal(int(f.Fd())) {
		return tui.Style{Dir: dir}
	}
	return tui.Style{
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
