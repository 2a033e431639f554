package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
)

// waits is a wait of an agent as it is told: once, however often mail interrupts
// it, until what it is for is there.
type waits struct {
	what  string        // it is for
	tasks []string      // of what, those that are tasks
	since time.Duration // the beginning
	done  string        // how much of it was told to be there: "2 of 4 done"
}

// waitBegins tells of a wait, unless it goes on with one that was told.
func (t *teller) waitBegins(m *member, started event.ToolStarted, at time.Duration) []entry {
	c := newCall(started.Tool, started.Input)
	what := awaited(c)
	if now := t.waits[m]; now != nil && now.what == what {
		return nil
	}
	t.waits[m] = &waits{what: what, tasks: c.list("tasks"), since: at}
	return []entry{{who: m, verb: "waits", text: what}}
}

// waitEnds tells how far things are when a wait has ended: each time that more
// is done, or that it ended for another reason than mail.
func (t *teller) waitEnds(m *member, result string, at time.Duration) []entry {
	now := t.waits[m]
	if now == nil {
		return nil
	}
	head := firstLine(result)
	early := strings.HasPrefix(head, "Something for you came in")
	done := progressOf(head)
	if early && (done == now.done || done == "") {
		return nil
	}
	now.done = done
	if early {
		return t.afterNews(now, entry{who: m, verb: "wakes", style: dim, text: done + "; reads its mail and waits on"})
	}
	delete(t.waits, m)
	if done == "" || strings.HasPrefix(head, "The ") {
		return []entry{{who: m, verb: "wakes", style: yellow, text: strings.TrimSuffix(head, ":")}}
	}
	took := (at - now.since).Round(100 * time.Millisecond).String()
	return t.afterNews(now, entry{who: m, verb: "wakes", text: done, mark: span{dim, "after " + took + ", without polling"}})
}

// afterNews is a wake-up, held back while the task that it came from is not told
// to be closed: whoever waits may notice that before the event is there.
func (t *teller) afterNews(w *waits, wake entry) []entry {
	claimed, known := 0, 0
	if _, err := fmt.Sscanf(wake.text, "%d of", &claimed); err != nil {
		return []entry{wake}
	}
	for _, one := range t.record.Tasks {
		if one.Status == task.Completed && slices.Contains(w.tasks, one.ID) {
			known++
		}
	}
	if len(w.tasks) == 0 || known >= claimed {
		return []entry{wake}
	}
	t.held = append(t.held, wake)
	return nil
}

// letGo returns the wake-ups that were held back for what body tells, or that
// m, who is about to be told of, has woken to.
func (t *teller) letGo(m *member, body event.Body) []entry {
	changed, isTask := body.(event.TaskChanged)
	var out, held []entry
	for _, wake := range t.held {
		if wake.who == m || isTask && changed.Task.Status == task.Completed {
			out = append(out, wake)
		} else {
			held = append(held, wake)
		}
	}
	t.held = held
	return out
}

// progressOf finds "2 of 4 done" at the end of the first line of a result.
func progressOf(head string) string {
	head = strings.TrimSuffix(head, ":")
	if i := strings.LastIndex(head, ". "); i >= 0 {
		head = head[i+2:]
	}
	if !strings.HasSuffix(head, " done") {
		return ""
	}
	return head
}

// awaited says what a call of Wait waits for.
func awaited(c call) string {
	var names []string
	for _, id := range c.list("tasks") {
		names = append(names, "#"+strings.TrimPrefix(id, "#"))
	}
	names = append(names, c.list("agents")...)
	switch {
	case len(names) == 0:
		return "for everybody"
	case len(names) > 1 && c.text("mode") == "any":
		return flat("for one of " + strings.Join(names, ", "))
	}
	return flat("for " + strings.Join(names, ", "))
}

// list is a field of the input that holds texts.
func (c call) list(field string) []string {
	var texts []string
	items, _ := c.input[field].([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
