package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

// teamPicture draws a team on a terminal. Each drawing replaces the one before
// where it stands, in one write, so that nothing flickers and what was on the
// terminal before stays in its history.
type teamPicture struct {
	size func() (columns, rows int)

	drawn []string // the lines as they were drawn
}

func (p *teamPicture) draw(now *teamState) error {
	columns, rows := p.size()
	lines := pictureOf(now, columns-1, rows-1)
	if slices.Equal(lines, p.drawn) {
		return nil
	}
	var b bytes.Buffer
	if up := p.height(columns); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", min(up, rows-1))
	}
	b.WriteString("\x1b[J")
	for _, line := range lines {
		b.WriteString(line + "\r\n") // the terminal is raw: it adds no return of its own
	}
	p.drawn = lines
	return writeOut(b.Bytes())
}

// height is how many rows the drawing has on the terminal, which wraps its lines when it
// is made narrower.
func (p *teamPicture) height(columns int) int {
	rows := 0
	for _, line := range p.drawn {
		rows += max(1, (cells.Width(line)+columns-1)/max(columns, 1))
	}
	return rows
}

// removed implements [watcher]. The last picture stays where it is.
func (p *teamPicture) removed() error { return writeOut([]byte(teamIsGone + "\r\n")) }

// closed implements [watcher]. The last picture says it.
func (p *teamPicture) closed() error { return nil }

// section is a part of the picture. When there is no room for all of it, its end
// counts more if newest is set, else its beginning.
type section struct {
	head   string
	lines  []string
	newest bool
}

// pictureOf is a team in lines that fit into a terminal.
func pictureOf(s *teamState, columns, rows int) []string {
	sections := []section{
		memberLines(s), {lines: taskLines(s.tasks, false)}, {lines: askLines(s.asks)}, {lines: mailLines(s.mail), newest: true},
	}
	room := rows - 2 // the first and the last line
	for _, part := range sections {
		if len(part.lines) > 0 {
			room-- // the empty line before it
		}
		if part.head != "" {
			room--
		}
	}
	lines := []string{headLine(s.view)}
	const ofTasks = 1 // their place in sections
	got := shares(sections, max(room, 0))
	if got[ofTasks] < len(sections[ofTasks].lines) {
		sections[ofTasks].lines = taskLines(s.tasks, true)
	}
	for i, n := range got {
		lines = append(lines, sections[i].cut(n)...)
	}
	last := "q or Ctrl+C leaves; the team goes on."
	if len(s.asks) > 0 {
		last += " To answer: cadre answer ID allow|deny"
	}
	lines = append(lines[:min(len(lines), max(rows-1, 1))], last)
	for i := range lines {
		lines[i] = cells.Fit(lines[i], columns)
	}
	return lines
}

func headLine(v teamView) string {
	return strings.TrimRight(fmt.Sprintf("%s  %s  %s  %s", cleanCell(v.Name), v.state(), v.Tasks, cleanCell(v.Description)), " ")
}

// shares divides the room among the sections: a line each in turn, until each has
// what it wants or nothing is left.
func shares(sections []section, room int) []int {
	got := make([]int, len(sections))
	for again := true; again && room > 0; {
		again = false
		for i, part := range sections {
			if got[i] < len(part.lines) && room > 0 {
				got[i]++
				room--
				again = true
			}
		}
	}
	return got
}

// cut is the section in n lines, below an empty one.
func (s section) cut(n int) []string {
	if n == 0 {
		return nil
	}
	out := []string{""}
	if s.head != "" {
		out = append(out, s.head)
	}
	left := len(s.lines) - n + 1 // with the line that says so
	switch {
	case left <= 1:
		return append(out, s.lines...)
	case s.newest:
		return append(append(out, fmt.Sprintf("… %d before", left)), s.lines[left:]...)
	}
	return append(append(out, s.lines[:n-1]...), fmt.Sprintf("… %d more", left))
}

// How many columns names and models get, and the subjects of tasks, so that what
// stands behind them is seen too.
const (
	widestName    = 24
	widestSubject = 40
)

func memberLines(s *teamState) section {
	rows := [][]string{{"MEMBER", "STATE", "UNREAD", "DOES", "MODEL"}}
	for _, m := range s.view.Members {
		unread := strconv.Itoa(m.Unread)
		if m.Error != "" {
			unread = "?"
		}
		rows = append(rows, []string{
			shorten(m.Name, widestName), m.State, unread, doing(s.tasks, m.Name), shorten(m.Model, widestName),
		})
	}
	lines := columnLines(rows)
	return section{head: lines[0], lines: lines[1:]}
}

// doing is the task that a member is working on.
func doing(tasks []task.Task, name string) string {
	for _, t := range tasks {
		if t.Owner == name && t.Status == task.InProgress && !t.Internal() {
			return shorten("#"+t.ID+" "+t.Subject, widestSubject)
		}
	}
	return ""
}

// taskLines are the tasks, the most important ones first when there are many, or room for
// some only: those in progress, then those that are open, then the others.
func taskLines(tasks []task.Task, some bool) []string {
	var shown []task.Task
	for _, t := range tasks {
		if !t.Internal() {
			shown = append(shown, t)
		}
	}
	if some || len(shown) > fewTasks {
		slices.SortStableFunc(shown, func(a, b task.Task) int { return taskRank(a) - taskRank(b) })
	}
	lines := make([]string, len(shown))
	for i, t := range shown {
		t.Subject = shorten(t.Subject, widestSubject)
		lines[i] = tui.TaskLine(t)
		if waits := openBlockers(t, tasks); t.Status == task.Pending && len(waits) > 0 {
			lines[i] += "  waits for " + cleanCell(joinIDs(waits))
		}
	}
	return lines
}

// fewTasks are shown in their own order.
const fewTasks = 12

func taskRank(t task.Task) int {
	switch {
	case t.Status == task.InProgress, t.IsUnproved():
		return 0
	case t.Status != task.Completed:
		return 1
	}
	return 2
}

// askLines are the questions that wait.
func askLines(asks []askView) []string {
	lines := make([]string, len(asks))
	for i, a := range asks {
		lines[i] = a.brief()
	}
	return lines
}

func mailLines(mail []post) []string {
	lines := make([]string, len(mail))
	for i, m := range mail {
		lines[i] = m.line()
	}
	return lines
}

func (m post) line() string { return "✉ " + tui.Mail(m.to, m.Message) }
