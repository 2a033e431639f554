package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
)

// crowd is a team with a lot of everything, all of it hostile.
func crowd(members, tasks, asks, mail int) *teamState {
	const hostile = "\x1b]0;title\x07\x1b[2J\x9b1A 日本語の長い題名 \r\nnext\u202e"
	s := &teamState{view: teamView{Name: "alpha" + hostile, Description: hostile}}
	for i := range members {
		s.view.Members = append(s.view.Members, memberView{Name: fmt.Sprint("w", i, hostile), Model: hostile, State: "working"})
	}
	for i := range tasks {
		item := task.Task{ID: fmt.Sprint(i), Subject: hostile, Owner: hostile, Status: task.Completed}
		item.Metadata.Set(task.CheckKey, hostile)
		s.tasks = append(s.tasks, item)
	}
	for i := range asks {
		s.asks = append(s.asks, askView{Ask: ask.Ask{ID: fmt.Sprint("ask-", i), AgentName: hostile, Tool: "Bash", Question: hostile}})
	}
	for i := range mail {
		m := mailbox.Message{From: hostile, Text: fmt.Sprint(i, hostile), Summary: hostile}
		s.mail = append(s.mail, post{mailbox.Address{Team: "alpha", Agent: hostile}, m})
	}
	return s
}

// Whatever a team holds, its picture fits into the terminal, and nothing of it
// moves the cursor.
func TestPictureFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 50}, {40, 12}, {20, 5}, {1, 1}} {
		for _, s := range []*teamState{crowd(0, 0, 0, 0), crowd(1, 1, 1, 1), crowd(4, 4, 0, 30), crowd(200, 300, 20, 500)} {
			lines := pictureOf(s, size[0], size[1])
			if len(lines) > max(size[1], 2) {
				t.Errorf("%d lines in a terminal of %d", len(lines), size[1])
			}
			for _, line := range lines {
				if cells.Width(line) > size[0] || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e }) {
					t.Errorf("in %d columns: %q", size[0], line)
				}
			}
		}
	}
}

// Every part gets its share of the room, and says how much of it is not shown.
func TestPictureSharesItsRoom(t *testing.T) {
	text := strings.Join(pictureOf(crowd(100, 100, 2, 100), 200, 30), "\n")
	for _, want := range []string{"w0", "… 94 more", "? ask-1 ", "cadre answer ID allow|deny", "… 94 before", "not proved, never checked"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// What somebody works on is seen also where there is room for some tasks only.
func TestSmallPictureShowsTheWorkAtHand(t *testing.T) {
	s := crowd(3, 0, 0, 20)
	for i := range 4 {
		s.tasks = append(s.tasks, task.Task{ID: fmt.Sprint(i + 1), Subject: "part", Status: task.Completed})
	}
	s.tasks[3].Status, s.tasks[3].Owner = task.InProgress, "ada"
	if text := strings.Join(pictureOf(s, 50, 14), "\n"); !strings.Contains(text, "#4 part (ada)") {
		t.Errorf("the task at work is hidden:\n%s", text)
	}
}

// Whoever waits for an answer does not look idle.
func TestMemberThatAsks(t *testing.T) {
	v := teamView{Members: []memberView{{Name: "team-lead", Lead: true, State: stateOpen}, {Name: "ann", State: "idle"}, {Name: "bob", State: stateGone}}}
	v.markAsking([]askView{{Ask: ask.Ask{AgentName: "ann"}}, {Ask: ask.Ask{AgentName: "bob"}}})
	if got := strings.Join([]string{v.Members[0].State, v.Members[1].State, v.Members[2].State}, " "); got != "open asks gone" {
		t.Error(got)
	}
	v.markAsking([]askView{{}})
	if got := v.Members[0].State; got != stateAsks {
		t.Errorf("the lead: %s", got)
	}
}
