package demo

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/task"
)

// View shows a team at work: a line for everything that happens, and on a
// terminal, below them, the task list and the roster as they are now. It may
// be used by one goroutine.
type View struct {
	look   Look
	screen screen
	record *Record
	teller *teller
}

// NewView makes a view that writes to out, whatever becomes of out. Paths below
// dir are shown without it. A nil out shows nothing; the record is kept all the
// same.
func NewView(out io.Writer, look Look, dir string) *View {
	if out == nil {
		out, look = io.Discard, Look{}
	}
	record := NewRecord()
	return &View{look: look, screen: screen{out: out}, record: record, teller: newTeller(record, dir)}
}

// Consume shows events until the sequence ends; it blocks for as long. The
// terminal is then as it was, with the cursor below the last line.
func (v *View) Consume(events iter.Seq[event.Event]) {
	for ev := range events {
		v.show(v.teller.tell(ev), true)
	}
	v.show(v.teller.rest(), false)
}

// Record is what the events came to. It is whole when Consume has returned.
func (v *View) Record() *Record { return v.record }

// show prints entries, and draws or takes away the status below them.
func (v *View) show(entries []entry, status bool) {
	if !v.look.Live && len(entries) == 0 {
		return
	}
	columns, rows := v.look.size()
	var lines []string
	for _, e := range entries {
		for _, l := range v.layOut(e, columns) {
			lines = append(lines, l.render(v.look.Color))
		}
	}
	if !v.look.Live {
		v.screen.print(lines)
		return
	}
	var below []line
	if status {
		below = v.status(columns-1, rows)
	}
	v.screen.redraw(lines, below, columns, v.look.Color)
}

// span is the agent's name in its colour.
func (m *member) span() span {
	if color, ok := agentColors[m.color]; ok {
		return span{color + ";" + bold, m.name}
	}
	return span{bold, m.name}
}

// The widths of the columns of an entry.
const (
	timeWidth = 7
	verbWidth = 9
	proseMost = 5 // lines of a text; the rest is in the transcript
)

// layOut sets an entry in columns: time, who, verb, text.
func (v *View) layOut(e entry, columns int) []line {
	var head line
	if !v.look.isNarrow() {
		head = line{{dim, fmt.Sprintf("%5.1fs", e.at.Seconds())}}.pad(timeWidth)
	}
	start := head.width()
	name := line{{plain, "·"}}
	if e.who != nil {
		name = line{e.who.span()}
	}
	head = append(head, name.pad(v.nameWidth()+1)...)
	head = append(head, line{{dim, e.verb + " "}}.pad(verbWidth)...)
	if v.look.isNarrow() {
		head = append(name, span{dim, " " + e.verb + " "})
	}
	indent := head.width()
	if v.look.isNarrow() {
		indent = start + 2
	}
	if !e.prose || columns <= 0 {
		text := line{{e.style, e.text}}
		if e.mark.text != "" {
			text = append(text, span{plain, "  "}, e.mark)
		}
		l := append(head, text...)
		if columns > 0 {
			l = l.fit(columns - 1)
		}
		return []line{l}
	}
	return hang(head, indent, e, columns-1)
}

// hang breaks prose into lines below each other.
func hang(head line, indent int, e entry, columns int) []line {
	// The first line may have less room than the others: it is filled with a
	// placeholder that is as long as what stands before it.
	filler := strings.Repeat("x", max(head.width()-indent, 0))
	texts := wrap(filler+e.text, max(columns-indent, 10))
	texts[0] = strings.TrimPrefix(texts[0], filler)
	if len(texts) > proseMost {
		texts = append(texts[:proseMost-1:proseMost-1], texts[proseMost-1]+" …")
	}
	out := make([]line, len(texts))
	for i, text := range texts {
		if i > 0 {
			head = line{}.pad(indent)
		}
		out[i] = append(head, span{e.style, text}).fit(columns)
	}
	return out
}

// nameWidth is the room for names: that of the longest, within reason.
func (v *View) nameWidth() int {
	width := len(leadName)
	for _, m := range v.record.agents {
		width = max(width, cells.Width(m.name))
	}
	return min(width, 12)
}

// Rows that a status needs besides itself to be worth its place, and columns
// from which on the roster stands beside the tasks.
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

// taskMarks show the state of a task.
var taskMarks = map[task.Status]span{
	task.Pending: {plain, "○"}, task.InProgress: {yellow, "◐"}, task.Completed: {green, "●"},
}

func (v *View) taskLines() []line {
	var out []line
	subjects := 0
	for _, t := range v.record.Tasks {
		subjects = max(subjects, cells.Width(taskTitle(t)))
	}
	for _, t := range v.record.Tasks {
		mark, style := taskMarks[t.Status], plain
		l := line{{plain, " "}}
		blockers := v.record.blockers(t)
		switch {
		case t.Status == task.Completed:
			style = dim
		case t.Status == task.Pending && len(blockers) > 0:
			mark, style = span{dim, "◌"}, dim
		}
		l = append(l, mark, span{plain, " "}, span{style, taskTitle(t)}).pad(min(subjects, subjectWidth) + 5)
		switch {
		case t.Owner != "":
			owner := v.record.nameOf(t.Owner)
			name := span{plain, owner}
			if m := v.record.named(owner); m != nil {
				name.style = agentColors[m.color]
			}
			l = append(l, name)
			if e, ok := t.Checked(); ok && !e.Passed && t.Status != task.Completed {
				l = append(l, span{red, "  ✗ not proved yet"})
			} else if ok && e.Passed {
				l = append(l, span{green, "  ✓ proved"})
			}
		case len(blockers) > 0:
			l = append(l, span{dim, "waits for #" + flat(strings.Join(blockers, " #"))})
		}
		out = append(out, l)
	}
	return out
}

// subjectWidth is the column up to which owners stand below each other.
const subjectWidth = 32

func taskTitle(t task.Task) string { return "#" + flat(t.ID) + " " + flat(t.Subject) }

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
