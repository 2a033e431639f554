package scripted

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// Conversation is a request as rules see it: what input the agent got, what it
// did, and what it works on. It is made for each request.
type Conversation struct {
	Agent  provider.Agent
	Inputs []Input // prompts, mail and notices, oldest first
	Made   []Made  // calls with their results, oldest first

	replies []int // where each of the agent's replies begins
	tasks   []openTask
	names   map[string]string // subjects of tasks that were listed
}

// Input is one user message without its tool results.
type Input struct {
	Text string
	at   int
}

// Made is a call that has its result.
type Made struct {
	Tool   string
	Input  json.RawMessage
	Result string
	Failed bool
	at     int
}

// Task is an item of the shared list that the agent works on.
type Task struct {
	ID   string
	Text string // "#ID: SUBJECT", and the description below it as far as it is known
}

type openTask struct {
	Task
	at int
}

// Read makes the conversation of a request. Blocks are numbered as they come,
// which is what "after" means.
func Read(req provider.Request) *Conversation {
	c := &Conversation{Agent: req.Agent, names: make(map[string]string)}
	pending := make(map[string]Made)
	at := 0
	for _, m := range req.Messages {
		if m.Role == transcript.Assistant {
			c.replies = append(c.replies, at)
		}
		var said []string
		for _, b := range m.Content {
			at++
			switch {
			case b.Type == transcript.ToolUse:
				pending[b.ID] = Made{Tool: b.Name, Input: b.Input, at: at}
			case b.Type == transcript.ToolResult:
				made := pending[b.ToolUseID]
				made.Result, made.Failed = b.ResultText(), b.IsError
				c.result(made)
			case b.Type == transcript.Text && m.Role == transcript.User && !prompt.IsReminder(b.Text):
				said = append(said, b.Text)
			}
		}
		if len(said) > 0 {
			c.input(Input{strings.Join(said, "\n\n"), at})
		}
	}
	return c
}

// Input is the newest input, "" when there is none.
func (c *Conversation) Input() string {
	if len(c.Inputs) == 0 {
		return ""
	}
	return c.Inputs[len(c.Inputs)-1].Text
}

// Newest lists the calls of the newest reply; none when that made no calls.
func (c *Conversation) Newest() []Made {
	if len(c.replies) == 0 {
		return nil
	}
	since := c.replies[len(c.replies)-1]
	i := slices.IndexFunc(c.Made, func(m Made) bool { return m.at > since })
	if i < 0 {
		return nil
	}
	return c.Made[i:]
}

// Rounds counts the replies since the newest input.
func (c *Conversation) Rounds() int {
	since, _ := c.point(NewestInput)
	rounds := 0
	for _, at := range c.replies {
		if at >= since {
			rounds++
		}
	}
	return rounds
}

// Role is what the asking agent is.
func (c *Conversation) Role() Role {
	switch {
	case c.Agent.Name == "" || c.Agent.Name == "team-lead":
		return Lead
	case c.Agent.Team != "":
		return Teammate
	}
	return SubAgent
}

// Task is the current one: of those that the agent was given or took, and has
// not completed, the one begun last. ok is false when there is none.
func (c *Conversation) Task() (t Task, ok bool) {
	if len(c.tasks) == 0 {
		return Task{}, false
	}
	t = c.tasks[len(c.tasks)-1].Task
	if t.Text == "" {
		t.Text = "#" + t.ID + ": " + c.names[t.ID]
	}
	return t, true
}

// point returns the number of the block after which something is after p.
func (c *Conversation) point(p Point) (int, bool) {
	switch {
	case p == "":
		return 0, true
	case p == TaskStart && len(c.tasks) > 0:
		return c.tasks[len(c.tasks)-1].at, true
	case p == NewestInput && len(c.Inputs) > 0:
		return c.Inputs[len(c.Inputs)-1].at, true
	case p == LastRound && len(c.replies) > 0:
		return c.replies[len(c.replies)-1], true
	}
	return 0, false
}

// How an agent gets a task: the runtime gives an idle teammate one of the list,
// another agent assigns it, or it claims one itself (facts: claude-code §3.5, §9).
var (
	handedOut = lazy.Regexp(`Start with task #(\d+):\s*((?s:.*?))\s*(?:</teammate-message>|\z)`)
	assigned  = lazy.Regexp(`\{"type":"task_assignment".*\}`)
)

func (c *Conversation) input(in Input) {
	c.Inputs = append(c.Inputs, in)
	for _, m := range handedOut().FindAllStringSubmatch(in.Text, -1) {
		c.begin(m[1], "#"+m[1]+": "+m[2], in.at)
	}
	for _, m := range assigned().FindAllString(in.Text, -1) {
		var a struct{ TaskID, Subject, Description, AssignedBy string }
		// Claiming a task sends an assignment too: it comes late, and adds nothing.
		if json.Unmarshal([]byte(m), &a) == nil && a.TaskID != "" && a.AssignedBy != c.Agent.Name {
			c.begin(a.TaskID, "#"+a.TaskID+": "+a.Subject+"\n\n"+a.Description, in.at)
		}
	}
}

// Subjects as TaskList and TaskGet show them (facts: claude-code §3.2).
var (
	listed = lazy.Regexp(`(?m)^#(\d+) \[\w+\] (.*)$`)
	got    = lazy.Regexp(`(?s)^Task #(\d+): (.*)`)
)

func (c *Conversation) result(made Made) {
	c.Made = append(c.Made, made)
	switch made.Tool {
	case "TaskList":
		for _, m := range listed().FindAllStringSubmatch(made.Result, -1) {
			c.names[m[1]] = m[2]
		}
	case "TaskGet":
		if m := got().FindStringSubmatch(made.Result); m != nil {
			c.names[m[1]] = m[2]
		}
	case "TaskUpdate":
		var in struct{ TaskID, Status string }
		if made.Failed || !strings.HasPrefix(made.Result, "Updated task") || json.Unmarshal(made.Input, &in) != nil {
			return
		}
		switch in.Status {
		case "in_progress":
			c.begin(in.TaskID, "", made.at)
		case "completed", "pending", "deleted":
			c.tasks = slices.DeleteFunc(c.tasks, func(t openTask) bool { return t.ID == in.TaskID })
		}
	}
}

// begin notes that the agent works on a task; one that it works on already
// keeps its place.
func (c *Conversation) begin(id, text string, at int) {
	for i := range c.tasks {
		if c.tasks[i].ID == id {
			if c.tasks[i].Text == "" {
				c.tasks[i].Text = text
			}
			return
		}
	}
	c.tasks = append(c.tasks, openTask{Task{id, text}, at})
}
