package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// sim is a team runtime as small as it can be: it gives the script requests and
// does what the replies ask for, on real files, in an order that a seed decides.
// Who moves next, who is handed which open task and when mail arrives are all
// left to chance, so a script that survives it depends on none of that.
type sim struct {
	t       *testing.T
	dir     string
	model   provider.Model
	rand    *rand.Rand
	agents  []*simAgent
	tasks   []task.Task
	team    string
	mail    []string // "from>to", of what agents wrote to each other
	denied  func(tool string, input map[string]any) string
	events  *event.Stream // nil: nobody watches
	clock   time.Time     // of the evidence
	mayFail bool          // a teammate's turn may end with an error
	late    int           // waits whose time was up
	early   int           // tries to close a task that its check refused
}

type simAgent struct {
	provider.Agent
	messages []transcript.Message
	inbox    []simMail
	busy     bool
	leaving  bool
	gone     bool
	said     []string
	color    string
	outcome  event.Outcome
	waits    *simWait // nil when it does not wait
}

// simWait is a call of Wait that has not returned.
type simWait struct {
	call  string
	tasks []string
}

type simMail struct{ from, text string }

func newSim(t *testing.T, dir string, model provider.Model, seed uint64) *sim {
	lead := &simAgent{Agent: provider.Agent{Session: "s"}}
	lead.inbox = []simMail{{"", Goal}}
	return &sim{t: t, dir: dir, model: model, rand: rand.New(rand.NewPCG(seed, 1)), agents: []*simAgent{lead}}
}

func (s *sim) lead() *simAgent { return s.agents[0] }

// tell publishes an event as the runtime would.
func (s *sim) tell(a *simAgent, body event.Body) {
	if s.events != nil {
		s.events.Publish(event.Agent{Session: "s", ID: a.ID, Name: a.Name, Color: a.color}, body)
	}
}

func (s *sim) tellTasks(a *simAgent, tasks ...task.Task) {
	for _, t := range tasks {
		s.tell(a, event.TaskChanged{List: s.team, Task: t})
	}
}

func (s *sim) tellRoster() {
	members := []event.Member{{Name: "team-lead", Lead: true}}
	for _, a := range s.agents[1:] {
		if !a.gone {
			members = append(members, event.Member{Name: a.Name, Color: a.color})
		}
	}
	s.tell(s.lead(), event.TeamChanged{Team: s.team, Members: members})
}

func (s *sim) agent(name string) *simAgent {
	for _, a := range s.agents {
		if !a.gone && (a.Name == name || name == "team-lead" && a == s.lead()) {
			return a
		}
	}
	return nil
}

// run lets agents move until nobody can.
func (s *sim) run() {
	for range 2000 {
		var ready []*simAgent
		for _, a := range s.agents {
			switch {
			case a.gone || a.waits != nil && len(a.inbox) == 0 && s.waitDone(a.waits) < len(a.waits.tasks):
			case a.busy || len(a.inbox) > 0 || s.claimable(a) != nil:
				ready = append(ready, a)
			}
		}
		if len(ready) == 0 && s.lead().waits != nil {
			ready = append(ready, s.lead()) // its time is up
		}
		if len(ready) == 0 {
			return
		}
		s.move(ready[s.rand.IntN(len(ready))])
	}
	s.t.Fatalf("the team is still busy after 2000 moves; the lead said last: %q", s.lead().last())
}

func (a *simAgent) last() string {
	if len(a.said) == 0 {
		return ""
	}
	return a.said[len(a.said)-1]
}

// claimable lists what an idle teammate may be handed.
func (s *sim) claimable(a *simAgent) []int {
	if a == s.lead() || a.busy || a.leaving {
		return nil
	}
	var open []int
	for i, t := range s.tasks {
		if t.Owner == a.Name && t.Status == task.InProgress {
			return nil
		}
		if task.Claimable(s.tasks, t) {
			open = append(open, i)
		}
	}
	return open
}

// move is one step of an agent: it receives input, or makes a round.
func (s *sim) move(a *simAgent) {
	switch {
	case a.waits != nil:
		s.wake(a)
		return
	case a.busy:
		s.round(a)
		return
	}
	open := s.claimable(a)
	a.busy = true
	a.outcome = event.Outcome{}
	s.tell(a, event.TurnStarted{})
	if input := s.receive(a); input != nil {
		a.add(input...)
		return
	}
	t := &s.tasks[open[s.rand.IntN(len(open))]]
	t.Owner, t.Status = a.Name, task.InProgress
	s.tellTasks(a, *t)
	a.add(transcript.TextBlock(fmt.Sprintf(
		"<teammate-message teammate_id=\"task-list\">\nComplete all open tasks. Start with task #%s: \n\n %s\n\n%s\n</teammate-message>",
		t.ID, t.Subject, t.Description)))
}

func (a *simAgent) add(blocks ...transcript.Block) {
	a.messages = transcript.Join(a.messages, transcript.Message{Role: transcript.User, Content: blocks})
}

// receive returns all waiting mail as the agent's model gets it.
func (s *sim) receive(a *simAgent) []transcript.Block {
	var blocks []transcript.Block
	for _, m := range a.inbox {
		text := m.text
		if strings.Contains(text, `"type":"shutdown_approved"`) {
			mate := s.agent(m.from)
			mate.gone = true
			s.tell(mate, event.AgentEnded{})
			text = fmt.Sprintf(`{"type":"teammate_terminated","message":"%s has shut down."}`, m.from)
			for i := range s.tasks {
				if t := &s.tasks[i]; t.Owner == m.from && t.Status != task.Completed {
					t.Owner, t.Status = "", task.Pending
					s.tellTasks(s.lead(), *t)
				}
			}
			s.tellRoster()
		}
		if m.from != "" {
			text = fmt.Sprintf("<teammate-message teammate_id=%q color=\"blue\">\n%s\n</teammate-message>", m.from, text)
		}
		blocks = append(blocks, transcript.TextBlock(text))
	}
	a.inbox = nil
	return blocks
}

// post delivers a message; the summary is for people and may be missing.
func (s *sim) post(from, to, text string, summary ...string) error {
	a := s.agent(to)
	if a == nil {
		return fmt.Errorf("No agent named %s", to)
	}
	a.inbox = append(a.inbox, simMail{from, text})
	s.tell(s.agent(from), event.MailSent{To: mailbox.Address{Team: s.team, Agent: to}, Message: mailbox.Message{From: from, Text: text, Summary: strings.Join(summary, "")}})
	return nil
}

// waitDone counts the tasks that are waited for and completed.
func (s *sim) waitDone(w *simWait) int {
	done := 0
	for _, t := range s.tasks {
		if slices.Contains(w.tasks, t.ID) && t.Status == task.Completed {
			done++
		}
	}
	return done
}

// wake ends a wait, as the tool does: when all is done, or else when input
// waits, or else when nobody will do anything any more.
func (s *sim) wake(a *simAgent) {
	w, done := a.waits, s.waitDone(a.waits)
	a.waits = nil
	head := ""
	switch {
	case done == len(w.tasks):
	case len(a.inbox) > 0:
		head = "Something for you came in; it follows. The wait has ended early. "
	default:
		head = "The time is up (10m0s). "
		s.late++
	}
	text := head + fmt.Sprintf("%d of %d done:", done, len(w.tasks))
	result := transcript.Block{Type: transcript.ToolResult, ToolUseID: w.call, Text: text}
	s.tell(a, event.Stored{Entry: transcript.Entry{Kind: transcript.KindUser, Message: transcript.Message{Role: transcript.User, Content: []transcript.Block{result}}}})
	s.tell(a, event.ToolEnded{Call: w.call, Tool: "Wait", Text: text})
	a.add(append([]transcript.Block{result}, s.receive(a)...)...)
}

func (s *sim) round(a *simAgent) {
	if err := transcript.Check(a.messages); err != nil {
		s.t.Fatalf("conversation of %q: %v", a.Name, err)
	}
	var reply transcript.Message
	for ev, err := range s.model.Stream(context.Background(), provider.Request{Model: "demo", Messages: a.messages, Agent: a.Agent}) {
		if err != nil && s.mayFail && a != s.lead() {
			s.fail(a, err)
			return
		}
		if err != nil {
			s.t.Fatalf("%q: %v", a.Name, err)
		}
		switch ev := ev.(type) {
		case provider.TextDelta:
			s.tell(a, event.TextDelta{Text: ev.Text})
		case provider.Reply:
			reply = ev.Message
		}
	}
	a.messages = append(a.messages, reply)
	for _, b := range reply.Content {
		one := reply
		one.Content = []transcript.Block{b}
		s.tell(a, event.Stored{Entry: transcript.Entry{Kind: transcript.KindAssistant, Message: one}})
	}
	a.outcome.Rounds++
	if text := transcript.JoinText(reply.Content); text != "" {
		a.said = append(a.said, text)
	}
	var results []transcript.Block
	for _, use := range reply.ToolUses() {
		if use.Name == "Wait" {
			var in struct{ Tasks []string }
			if err := json.Unmarshal(use.Input, &in); err != nil || len(reply.ToolUses()) != 1 || len(in.Tasks) == 0 {
				s.t.Fatalf("a wait among %d calls for %v: %v", len(reply.ToolUses()), in.Tasks, err)
			}
			s.tell(a, event.ToolStarted{Call: use.ID, Tool: use.Name, Input: use.Input})
			a.waits = &simWait{use.ID, in.Tasks}
			return
		}
		// The event that a call begins may come after its effects.
		late := s.rand.IntN(2) == 0
		started := event.ToolStarted{Call: use.ID, Tool: use.Name, Input: use.Input}
		if !late {
			s.tell(a, started)
		}
		text, err := s.call(a, use)
		if late {
			s.tell(a, started)
		}
		result := transcript.Block{Type: transcript.ToolResult, ToolUseID: use.ID, Text: text}
		if err != nil {
			result.Text, result.IsError = err.Error(), true
		}
		results = append(results, result)
		s.tell(a, event.Stored{Entry: transcript.Entry{Kind: transcript.KindUser, Message: transcript.Message{Role: transcript.User, Content: []transcript.Block{result}}}})
		s.tell(a, event.ToolEnded{Call: use.ID, Tool: use.Name, IsError: err != nil, Text: result.Text})
	}
	if len(results) > 0 && !a.leaving {
		if s.rand.IntN(2) == 0 {
			results = append(results, s.receive(a)...)
		}
		a.add(results...)
		return
	}
	a.busy = false
	a.outcome.Reason = event.Done
	s.tell(a, event.TurnEnded{Outcome: a.outcome})
	switch {
	case a.leaving, a == s.lead():
	case s.claimable(a) == nil || s.rand.IntN(2) == 0:
		_ = s.post(a.Name, "team-lead", fmt.Sprintf(`{"type":"idle_notification","from":%q,"timestamp":"x","idleReason":"available"}`, a.Name))
	}
}

// fail ends a turn with an error, which the runtime tells the lead of.
func (s *sim) fail(a *simAgent, err error) {
	a.busy = false
	a.outcome.Reason, a.outcome.Err = event.Failed, err.Error()
	s.tell(a, event.TurnEnded{Outcome: a.outcome})
	_ = s.post(a.Name, "team-lead", fmt.Sprintf(`{"type":"idle_notification","from":%q,"timestamp":"x","idleReason":"failed","failureReason":"gone"}`, a.Name))
}

// call does what a tool does, with the results that facts §2, §3 and §5 give.
func (s *sim) call(a *simAgent, use transcript.Block) (string, error) {
	var in map[string]any
	if err := json.Unmarshal(use.Input, &in); err != nil {
		s.t.Fatal(err)
	}
	if s.denied != nil {
		if why := s.denied(use.Name, in); why != "" {
			return "", fmt.Errorf("%s", why)
		}
	}
	str := func(name string) string { v, _ := in[name].(string); return v }
	switch use.Name {
	case "Read":
		data, err := os.ReadFile(str("file_path"))
		return string(data), err
	case "Glob", "Grep":
		return "some files", nil
	case "Bash":
		out, code := s.shell(str("command"))
		if code != 0 {
			return "", fmt.Errorf("Exit code %d\n%s", code, out)
		}
		return out, nil
	case "Edit":
		return s.edit(str("file_path"), str("old_string"), str("new_string"))
	case "TeamCreate":
		s.team = str("team_name")
		s.tellRoster()
		return fmt.Sprintf("{\n  \"team_name\": %q\n}", s.team), nil
	case "Agent":
		mate := &simAgent{Agent: provider.Agent{Name: str("name"), Team: s.team, Session: "s", ID: "t" + str("name")}}
		mate.inbox = []simMail{{"team-lead", str("prompt")}}
		mate.color = []string{"blue", "green", "yellow"}[(len(s.agents)-1)%3]
		s.agents = append(s.agents, mate)
		s.tellRoster()
		s.tell(mate, event.AgentStarted{Type: str("subagent_type"), Teammate: true})
		return "Spawned successfully.\nname: " + mate.Name, nil
	case "TaskCreate", "TaskUpdate", "TaskList":
		return s.taskCall(a, use.Name, str, in)
	case "SendMessage":
		return s.send(a, str, in)
	case "TeamDelete":
		for _, mate := range s.agents[1:] {
			if !mate.gone {
				return `{"success": false, "message": "Cannot cleanup team"}`, nil
			}
		}
		s.tell(s.lead(), event.TeamChanged{Team: s.team})
		return `{"success": true}`, nil
	}
	return "", fmt.Errorf("No such tool available: %s", use.Name)
}

// shell runs a command in the project's folder.
func (s *sim) shell(command string) (out string, code int) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// prove runs the check of a task that is to be completed, keeps what came of it,
// and returns what refuses it.
func (s *sim) prove(a *simAgent, id string) error {
	i := slices.IndexFunc(s.tasks, func(t task.Task) bool { return t.ID == id })
	if i < 0 || s.tasks[i].Check() == "" {
		return nil
	}
	check := s.tasks[i].Check()
	if s.denied != nil {
		if why := s.denied("Bash", map[string]any{"command": check}); why != "" {
			return fmt.Errorf("%s", why)
		}
	}
	out, code := s.shell(check)
	s.clock = s.clock.Add(time.Second)
	e := task.Evidence{Command: check, Passed: code == 0, ExitCode: code, Output: out, By: a.Name, At: s.clock}
	kept, _, err := task.Apply(s.tasks, id, task.Change{Metadata: e.Metadata()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.tasks[i] = kept.After
	s.tellTasks(a, kept.After)
	if code != 0 {
		s.early++
		return fmt.Errorf("Task #%s stays in_progress: its check failed, exit code %d.\n\nCheck: %s\n%s", id, code, check, out)
	}
	return nil
}

func (s *sim) edit(path, old, replacement string) (string, error) {
	if !strings.HasPrefix(path, s.dir) {
		return "", fmt.Errorf("edit outside the project: %s", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), old); n != 1 {
		return "", fmt.Errorf("old_string is there %d times", n)
	}
	return "edited", os.WriteFile(path, []byte(strings.Replace(string(data), old, replacement, 1)), 0o600)
}

func (s *sim) taskCall(a *simAgent, tool string, str func(string) string, in map[string]any) (string, error) {
	switch tool {
	case "TaskCreate":
		id := fmt.Sprint(len(s.tasks) + 1)
		created := task.Task{ID: id, Subject: str("subject"), Description: str("description"), Status: task.Pending}
		if metadata, ok := in["metadata"].(map[string]any); ok {
			for key, value := range metadata {
				created.Metadata.Set(key, value)
			}
		}
		s.tasks = append(s.tasks, created)
		s.tellTasks(s.lead(), s.tasks[len(s.tasks)-1])
		return fmt.Sprintf("Task #%s created successfully: %s", id, str("subject")), nil
	case "TaskList":
		var lines []string
		for _, t := range s.tasks {
			line := fmt.Sprintf("#%s [%s] %s", t.ID, t.Status, t.Subject)
			if t.Owner != "" {
				line += " (" + t.Owner + ")"
			}
			if open := task.Blockers(s.tasks, t); len(open) > 0 {
				line += " [blocked by #" + strings.Join(open, ", #") + "]"
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n"), nil
	}
	var c task.Change
	if status := task.Status(str("status")); status != "" {
		c.Status = &status
	}
	if list, ok := in["addBlockedBy"].([]any); ok {
		for _, id := range list {
			c.AddBlockedBy = append(c.AddBlockedBy, id.(string))
		}
	}
	if c.Status != nil && *c.Status == task.Completed {
		if err := s.prove(a, str("taskId")); err != nil {
			return "", err
		}
	}
	out, others, err := task.Apply(s.tasks, str("taskId"), c)
	if err != nil {
		return "", err
	}
	for _, changed := range append(others, out.After) {
		i := slices.IndexFunc(s.tasks, func(t task.Task) bool { return t.ID == changed.ID })
		s.tasks[i] = changed
	}
	s.tellTasks(a, out.After)
	return fmt.Sprintf("Updated task #%s %s", out.After.ID, strings.Join(out.Fields, ", ")), nil
}

func (s *sim) send(a *simAgent, str func(string) string, in map[string]any) (string, error) {
	from, to := a.Name, str("recipient")
	if a == s.lead() {
		from = "team-lead"
	}
	switch str("type") {
	case "message":
		s.mail = append(s.mail, from+">"+to)
		return "sent", s.post(from, to, str("content"), str("summary"))
	case "broadcast":
		for _, other := range s.agents {
			if other == a || other.gone {
				continue
			}
			name := other.Name
			if other == s.lead() {
				name = "team-lead"
			}
			s.mail = append(s.mail, from+">"+name)
			if err := s.post(from, name, str("content"), str("summary")); err != nil {
				return "", err
			}
		}
		return "sent", nil
	case "shutdown_request":
		return "requested", s.post(from, to, string(jsonx.MustMarshal(struct {
			Type      string `json:"type"`
			RequestID string `json:"requestId"`
			From      string `json:"from"`
			Reason    string `json:"reason"`
			Timestamp string `json:"timestamp"`
		}{"shutdown_request", "shutdown-1@" + to, from, str("content"), "x"})))
	case "shutdown_response":
		if in["approve"] != true || str("request_id") != "shutdown-1@"+a.Name {
			return "", fmt.Errorf("no such request")
		}
		a.leaving = true
		return "approved", s.post(from, "team-lead", fmt.Sprintf(`{"type":"shutdown_approved","requestId":"x","from":%q}`, a.Name))
	}
	return "", fmt.Errorf("unknown type")
}

// play runs the script on a fresh project and returns the sim and the outcome.
func play(t *testing.T, script []byte, seed uint64, prepare ...func(*sim)) (*sim, Checks) {
	t.Helper()
	project, err := Prepare(t.Context(), filepath.Join(t.TempDir(), "tally"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ReadScript(script, project.Dir)
	if err != nil {
		t.Fatal(err)
	}
	model, err := parsed.Model()
	if err != nil {
		t.Fatal(err)
	}
	s := newSim(t, project.Dir, model, seed)
	for _, f := range prepare {
		f(s)
	}
	s.run()
	checks, err := Check(t.Context(), project.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, checks
}

var fromPeer = regexp.MustCompile(`^(ada|ben|cleo)>(ada|ben|cleo)$`)
