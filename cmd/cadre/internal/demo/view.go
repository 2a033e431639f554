package demo

import (
	"bytes"
	"io"
	"iter"
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

// View shows a team at work: a line for everything that happens, and on a
// terminal, below them, the task list and the roster as they are now. It may
// be used by one goroutine.
type View struct {
	terminal Terminal
	screen   screen
	record   *Record
	lines    *tui.Lines
	news     *bytes.Buffer // what lines has written about the event that is being shown
}

// NewView makes a view that writes to out and ignores its errors. Paths below
// dir are shown without it. A nil out shows nothing; the record is kept all the
// same.
func NewView(out io.Writer, terminal Terminal, dir string) *View {
	if out == nil {
		out, terminal = io.Discard, Terminal{}
	}
	news := new(bytes.Buffer)
	lines := tui.NewLines(news, tui.Style{Color: terminal.Color, Width: terminal.columns, Dir: dir})
	lines.Story, lines.Results = true, true
	return &View{terminal: terminal, screen: screen{out: out}, record: NewRecord(), lines: lines, news: news}
}

// Consume shows events until the sequence ends; it blocks for as long. The
// terminal is then as it was, with the cursor below the last line.
func (v *View) Consume(events iter.Seq[event.Event]) {
	for ev := range events {
		v.record.Add(ev)
		v.lines.Event(ev)
		v.show(true)
	}
	v.show(false)
}

// Record sums up the events. It is complete when Consume has returned.
func (v *View) Record() *Record { return v.record }

// show prints the news, and draws or removes the status below them.
func (v *View) show(status bool) {
	news := v.news.String()
	v.news.Reset()
	if !v.terminal.Live {
		v.screen.print(news)
		return
	}
	columns, rows := v.terminal.size()
	var below []line
	if status {
		below = v.status(columns-1, rows)
	}
	v.screen.redraw(news, below, columns, v.terminal.Color)
}

// span is the agent's name in its colour.
func (m *member) span() span {
	if color, ok := agentColors[m.color]; ok {
		return span{color + ";" + bold, m.name}
	}
	return span{bold, m.name}
}

// nameWidth is the room for names: that of the longest, within reason.
func (v *View) nameWidth() int {
	width := len(leadName)
	for _, m := range v.record.agents {
		width = max(width, cells.Width(m.name))
	}
	return min(width, 12)
}

// How many rows must be left beside a status for it to be drawn, and from how many
// columns on the roster is drawn beside the tasks.
const (
	rowsAbove  = 8
	sideBySide = 96
)

// status is the task list and the roster as they are now, within the size of
// the terminal.
func (v *View) status(columns, rows int) []line {
	tasks, roster := v.taskLines(), v.rosterLines()
	var below []line
	if columns >= sideBySide && len(tasks) > 0 {
		left := columns / 2
		for i := range max(len(tasks), len(roster)) {
			var l line
			if i < len(tasks) {
				l = tasks[i].fit(left - 2)
			}
			l = l.pad(left)
			if i < len(roster) {
				l = append(l, roster[i]...)
			}
			below = append(below, l)
		}
	} else {
		below = append(tasks, roster...)
	}
	if most := rows - rowsAbove; len(below)+1 > most {
		if most < 3 {
			return nil
		}
		below = append(below[:most-2:most-2], line{{dim, "…"}})
	}
	rule := line{{dim, strings.Repeat("─", max(columns, 1))}}
	out := []line{rule}
	for _, l := range below {
		out = append(out, l.fit(columns))
	}
	return out
}

func (v *View) taskLines() []line {
	var out []line
	for _, t := range v.record.Tasks {
		blockers := v.record.blockers(t)
		if _, checked := t.Checked(); !checked {
			t.Metadata = jsonx.Object{} // there is no room for its check
		}
		one := span{plain, tui.TaskLine(t)}
		switch {
		case t.Status == task.Completed:
			one.style = dim
		case t.Status == task.InProgress:
			one.style = yellow
		case len(blockers) > 0:
			one.style = dim
			one.text += "  waits for " + taskList(blockers)
		}
		out = append(out, line{{plain, " "}, one})
	}
	return out
}

func (v *View) rosterLines() []line {
	var out []line
	for _, m := range v.record.agents {
		if m.gone {
			continue
		}
		state := span{dim, "idle"}
		if m.lead {
			state.text = "waits for the team"
		}
		if m.busy {
			state = span{plain, "thinks"}
			if doing := flat(m.doing); doing != "" {
				state.text = doing
			}
		}
		name := line{{plain, " "}, m.span()}
		out = append(out, append(name.pad(v.nameWidth()+2), state))
	}
	return out
}
