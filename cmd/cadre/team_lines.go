package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

// teamLines tells what is new in a team, a line for each change.
type teamLines struct {
	roster string
	tasks  map[string]string // by id
	asks   map[string]bool
	mail   map[mailbox.Address]map[mailbox.ID]bool
}

// draw implements [watcher].
func (l *teamLines) draw(now *teamState) error {
	var lines []string
	if roster := now.roster(); roster != l.roster {
		l.roster = roster
		lines = append(lines, "● "+roster)
	}
	lines = append(lines, l.newTasks(now.tasks)...)
	asks := make(map[string]bool)
	for _, a := range now.asks {
		asks[a.ID] = true
		if !l.asks[a.ID] {
			lines = append(lines, a.brief())
		}
	}
	l.asks = asks
	lines = append(lines, l.newMail(now.mail)...)
	if len(lines) == 0 {
		return nil
	}
	stamp := time.Now().Format(time.TimeOnly) + " "
	return writeOut([]byte(stamp + strings.Join(lines, "\n"+stamp) + "\n"))
}

// end implements [watcher].
func (*teamLines) end() error { return nil }

func (l *teamLines) newTasks(tasks []task.Task) []string {
	told, lines := make(map[string]string), []string{}
	for _, t := range tasks {
		if t.Internal() {
			continue
		}
		line := tui.TaskLine(t)
		told[t.ID] = line
		if l.tasks[t.ID] != line {
			lines = append(lines, line)
		}
	}
	for id := range l.tasks {
		if told[id] == "" {
			lines = append(lines, "✗ #"+cleanCell(id)+" is not on the list any more")
		}
	}
	l.tasks = told
	return lines
}

// newMail tells what was posted since the last look; at the first, only the newest.
func (l *teamLines) newMail(mail []post) []string {
	first := l.mail == nil
	if first {
		l.mail = make(map[mailbox.Address]map[mailbox.ID]bool)
	}
	lines := []string{}
	for _, m := range mail {
		if l.mail[m.to] == nil {
			l.mail[m.to] = make(map[mailbox.ID]bool)
		}
		if !l.mail[m.to][m.ID] {
			l.mail[m.to][m.ID] = true
			lines = append(lines, m.line())
		}
	}
	if more := len(lines) - newestMail; first && more > 0 {
		lines = append([]string{fmt.Sprintf("✉ %d messages before these: cadre team log tells them", more)}, lines[more:]...)
	}
	return lines
}

// roster is the members and what they do, in one line.
func (s *teamState) roster() string {
	parts := make([]string, len(s.view.Members))
	for i, m := range s.view.Members {
		parts[i] = cleanCell(m.Name) + " " + m.State
	}
	return strings.Join(parts, ", ")
}

// brief is the question in one line, for who knows the team.
func (v askView) brief() string {
	about := v.Question
	if call := tui.Call(v.Tool, v.Input); call != cleanCell(v.Tool) {
		about += " " + call
	}
	who := v.AgentName
	if who == "" {
		who = mailbox.LeadName
	}
	return "? " + cleanCell(v.ID) + " " + shorten(who+" asks: "+tui.Visible(about), 120)
}
