package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// reading are the tools whose calls in a row are told as one, and their verbs.
var reading = map[string]string{"Read": "reads", "Glob": "lists", "Grep": "searches"}

// quiet are the tools of which only the effect is told, or nothing.
var quiet = map[string]bool{
	"TaskCreate": true, "TaskUpdate": true, "TaskList": true, "TaskGet": true,
	"TeamCreate": true, "TeamDelete": true, "SendMessage": true, "Agent": true, "Task": true, waitTool: true,
}

// waitTool is the tool that waits without talking: its calls are told by what
// they wait for and what they wake to.
const waitTool = "Wait"

// asked notes the calls of a reply as it is stored, which is before anything
// comes of them: the event that a call begins may be overtaken by its effects.
func (t *teller) asked(m *member, e transcript.Entry) {
	for _, use := range e.Message.ToolUses() {
		c := newCall(use.Name, use.Input)
		t.calls[use.ID] = c
		if c.tool == "SendMessage" && (c.text("type") == "broadcast" || c.text("to") == "*") {
			m.broadcast = cmp.Or(c.text("content"), c.text("message"))
		}
	}
}

func (t *teller) begin(m *member, started event.ToolStarted) {
	c := newCall(started.Tool, started.Input)
	t.calls[started.Call] = c
	verb, what := t.describe(c)
	m.doing = strings.TrimSpace(verb + " " + what)
}

// call is one that has begun and not ended.
type call struct {
	tool   string
	input  map[string]any
	denied bool
}

func newCall(tool string, input json.RawMessage) call {
	c := call{tool: tool}
	if json.Unmarshal(input, &c.input) != nil {
		c.input = nil
	}
	return c
}

func (c call) text(field string) string {
	s, _ := c.input[field].(string)
	return s
}

// describe says what a call does: a verb and its object.
func (t *teller) describe(c call) (verb, what string) {
	if c.tool == "TaskUpdate" && task.Status(c.text("status")) == task.Completed {
		return "closes", flat("#" + strings.TrimPrefix(c.text("taskId"), "#"))
	}
	switch c.tool {
	case "Bash":
		return "runs", firstLine(c.text("command"))
	case "Read":
		return "reads", t.path(c.text("file_path"))
	case "Glob", "Grep":
		return reading[c.tool], firstLine(c.text("pattern"))
	case "Edit":
		return "edits", t.path(c.text("file_path"))
	case "Write":
		return "writes", t.path(c.text("file_path"))
	case "TaskCreate":
		return "plans", firstLine(c.text("subject"))
	case "TaskList", "TaskGet", "TaskUpdate":
		return "looks at", "the task list"
	case "TeamCreate":
		return "forms", "a team"
	case "TeamDelete":
		return "dissolves", "the team"
	case waitTool:
		return "waits", awaited(c)
	case "SendMessage":
		return "writes", "a message"
	case "Agent", "Task":
		return "calls in", flat(c.text("name"))
	}
	return "calls", flat(c.tool)
}

// path shows a file as people would call it.
func (t *teller) path(path string) string {
	if rel, err := filepath.Rel(t.dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return flat(filepath.ToSlash(path))
}

// results notes what tells most in whole results: events have them shortened.
func (t *teller) results(e transcript.Entry) {
	for _, b := range e.Message.Content {
		if b.Type == transcript.ToolResult {
			t.last[b.ToolUseID] = telling(b.ResultText())
		}
	}
}

// telling is the line of an output that tells most: the last, or, of a test of
// the project, how many of its checks fail and which first.
func telling(output string) string {
	ok, failed, first := 0, 0, ""
	for line := range strings.Lines(output) {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "ok":
			ok++
		case "FAIL":
			if failed++; failed == 1 {
				first = rest
			}
		}
	}
	last := lastLine(output)
	switch word, _, _ := strings.Cut(last, " "); {
	case word != "ok" && word != "FAIL":
		return last
	case failed > 0:
		return fmt.Sprintf("%d of %d fail: %s", failed, ok+failed, flat(first))
	}
	return fmt.Sprintf("%d checks pass", ok)
}

func (t *teller) toolEnded(m *member, ended event.ToolEnded) []entry {
	c, ok := t.calls[ended.Call]
	if !ok {
		c.tool = ended.Tool
	}
	last := t.last[ended.Call]
	delete(t.calls, ended.Call)
	delete(t.last, ended.Call)
	m.doing = ""
	verb, what := t.describe(c)
	switch {
	case c.denied:
		return nil // told when it was
	case reading[c.tool] != "" && !ended.IsError:
		t.hasRead(m, verb, what)
		return nil
	case c.tool == waitTool && !ended.IsError:
		return t.waitEnds(m, ended.Text, t.record.elapsed(t.record.ended))
	case quiet[c.tool] && !ended.IsError:
		return nil
	case ended.IsError && t.wasRefused(m, c):
		return nil
	case ended.IsError && (c.tool != "Bash" || last == ""):
		last = firstLine(ended.Text)
	}
	return []entry{{who: m, verb: verb, text: what, mark: c.mark(ended.IsError, last)}}
}

// wasRefused reports whether a failed call is a try to close a task that its
// check refused, which was told when the check ended.
func (t *teller) wasRefused(m *member, c call) bool {
	try := refused{m.name, strings.TrimPrefix(c.text("taskId"), "#")}
	was := c.tool == "TaskUpdate" && t.told[try]
	delete(t.told, try)
	return was
}

// hasRead adds to what the agent reads in a row, which is told later.
func (t *teller) hasRead(m *member, verb, what string) {
	for _, read := range t.reads {
		if read.who == m && read.verb == verb {
			read.text += ", " + what
			return
		}
	}
	t.reads = append(t.reads, &entry{at: t.record.elapsed(t.record.ended), who: m, verb: verb, style: dim, text: what})
}

// mark says how a call went; last is what tells most of its result.
func (c call) mark(failed bool, last string) span {
	switch {
	case failed:
		return span{red, "✗ " + last}
	case c.tool == "Bash" && strings.HasSuffix(last, "pass"):
		return span{green, "✓ " + last}
	case c.tool == "Bash":
		return span{green, "✓"}
	case c.tool == "Edit":
		added, removed := changedLines(c.text("old_string"), c.text("new_string"))
		return span{dim, fmt.Sprintf("+%d −%d", added, removed)}
	case c.tool == "Write":
		added, _ := changedLines("", c.text("content"))
		return span{dim, fmt.Sprintf("+%d", added)}
	}
	return span{}
}

// changedLines counts the lines that differ when old becomes now, without
// those that both begin and end with.
func changedLines(old, now string) (added, removed int) {
	split := func(text string) []string {
		if text == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	a, b := split(old), split(now)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(b), len(a)
}
