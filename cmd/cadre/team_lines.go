package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

// teamLines prints what is new in a team, a line for each change.
type teamLines struct {
	roster string
	tasks  map[string]string // by id
	asks   map[string]bool
	mail   seenMail
	drawn  bool // at least once
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
	l.drawn = true
	if len(lines) == 0 {
		return nil
	}
	stamp := time.Now().Format(time.TimeOnly) + " "
	return writeOut([]byte(stamp + strings.Join(lines, "\n"+stamp) + "\n"))
}

// removed implements [watcher].
func (*teamLines) removed() error { return writeOut([]byte(teamIsGone + "\n")) }

// closed implements [watcher].
func (*teamLines) closed() error {
	return writeOut([]byte("The team is closed: no process leads it.\n"))
}

func (l *teamLines) newTasks(tasks []task.Task) []string {
	now, lines := make(map[string]string), []string{}
	for _, t := range tasks {
		if t.Internal() {
			continue
		}
		line := tui.TaskLine(t)
		now[t.ID] = line
		if l.tasks[t.ID] != line {
			lines = append(lines, line)
		}
	}
	for id := range l.tasks {
		if now[id] == "" {
			lines = append(lines, "✗ #"+cleanCell(id)+" is not on the list any more")
		}
	}
	l.tasks = now
	return lines
}

// newMail are the messages that have come since the last drawing; at the first, only
// the newest.
func (l *teamLines) newMail(mail []post) []string {
	lines := mailLines(l.mail.unseen(mail))
	if more := len(lines) - newestMail; !l.drawn && more > 0 {
		lines = append([]string{fmt.Sprintf("✉ %d messages before these: cadre team log shows them", more)}, lines[more:]...)
	}
	return lines
}

// seenMail remembers which messages were shown. Ids are those of an inbox.
type seenMail map[mailbox.Address]map[mailbox.ID]bool

// unseen returns the messages that it does not know, and remembers them.
func (s *seenMail) unseen(mail []post) []post {
	if *s == nil {
		*s = make(seenMail)
	}
	var unseen []post
	for _, m := range mail {
		seen := (*s)[m.to]
		if seen == nil {
			seen = make(map[mailbox.ID]bool)
			(*s)[m.to] = seen
		}
		if !seen[m.ID] {
			seen[m.ID] = true
			unseen = append(unseen, m)
		}
	}
	return unseen
}

// roster is the members and what they do, in one line.
func (s *teamState) roster() string {
	parts := make([]string, len(s.view.Members))
	for i, m := range s.view.Members {
		parts[i] = cleanCell(m.Name) + " " + m.State
	}
	return strings.Join(parts, ", ")
}

// brief is the question in one line, for people who know the team.
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
