// Package event is what may be told of a running session tree: plain values
// with a sequence number, and the stream that carries them to any number of
// front ends. Events carry vocabulary, never live objects; everything that
// matters in them can be rebuilt from what was stored.
package event

import (
	"encoding/json"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// Event is one thing that happened in a session tree.
type Event struct {
	Seq   uint64 // greater than that of every event before it, also before a restart
	At    time.Time
	Agent Agent
	Body  Body
}

// Agent names the session that an event is about.
type Agent struct {
	Session string // the root session's id
	ID      string // agent id; "" for the root session
	Name    string // name in a team, or an agent type; "" for a plain root session
	Color   string // of a teammate
	Call    string // for a sub-agent: the tool_use id that started it
}

// Body is one of the types below.
type Body interface{ body() }

// Turns and rounds.
type (
	// TurnStarted: input was stored and a turn begins.
	TurnStarted struct{ Input string } // what started it, in one line
	// TextDelta is a piece of streamed text; Thinking marks a thought.
	TextDelta struct {
		Text     string
		Thinking bool
	}
	// Stored: an entry was kept in the transcript.
	Stored struct{ Entry transcript.Entry }
	// Waiting: the model's server has sent nothing of an answer for a while.
	Waiting struct {
		Host    string
		Attempt int           // of the request that waits; 1: the first
		Silent  time.Duration // so far
		Limit   time.Duration // of silence, at which the request is given up and sent again
	}
	// Retrying: the model's API failed in a way that may pass, and the request
	// is sent again after Wait.
	Retrying struct {
		Attempt int           // the one that will be made
		Max     int           // about how many there will be if all fail; 0: no end
		Wait    time.Duration //
		Left    time.Duration // after which no more attempts begin; 0: not known, or never
		Status  int           // HTTP status; 0: none
		Reason  string
		Silent  time.Duration // how long the server gave no sign, when that was the failure
	}
	// ToolStarted: a call passed the permission decision and runs.
	ToolStarted struct {
		Call  string // tool_use id
		Tool  string
		Input json.RawMessage
	}
	// ToolEnded: a call's result was stored.
	ToolEnded struct {
		Call    string
		Tool    string
		Writes  bool // the tool is one that changes files or runs commands
		IsError bool
		Text    string // of the result, shortened
		Took    time.Duration
	}
	// ToolDenied: the permission decision refused a call without asking.
	ToolDenied struct {
		Call, Tool string
		Input      json.RawMessage
		Reason     string
		Remedy     string // the flag or rule that would allow it; "" when none
	}
	// TurnEnded: the turn returned and everything of it is stored.
	TurnEnded struct{ Outcome Outcome }
)

// Questions.
type (
	// Asked: a question waits for a person.
	Asked struct{ Ask ask.Ask }
	// Answered: the question has its answer.
	Answered struct {
		ID     string
		Answer ask.Answer
	}
)

// Agents, jobs, teams.
type (
	// AgentStarted: a sub-agent or teammate session was opened.
	AgentStarted struct {
		Type, Model string
		Teammate    bool
		Prompt      string
	}
	// AgentEnded: it was closed. Exactly one per AgentStarted.
	AgentEnded struct{ Reason string }
	// JobStarted and JobEnded bracket a job: exactly one end per start.
	JobStarted struct{ ID, Kind, Title string }
	JobEnded   struct {
		ID, Kind, Title, Status string
		Unwaited                bool // nobody waited: its owner gets a notice
	}
	// TeamChanged: the roster of a team is now this.
	TeamChanged struct {
		Team    string
		Members []Member // empty: the team is gone
	}
	// TaskChanged: a task was created, changed, or (status deleted) removed.
	TaskChanged struct {
		List string
		Task task.Task
	}
	// MailSent: a message stands in the recipient's inbox.
	MailSent struct {
		To      mailbox.Address
		Message mailbox.Message
	}
	// Idle: the agent waits for input.
	Idle struct{ Reason string }
	// Gap: events with numbers above From, up to To, are not kept any more, so this
	// subscriber missed them. What was stored of them follows, each as [Stored] (one
	// that the subscriber has seen may come again; it has the same UUID); streamed text
	// and notices are gone. Err says why nothing follows. A Gap has the number From.
	Gap struct {
		From, To uint64
		Err      string
	}
	// Noticed: something a person should know, that fits nowhere else.
	Noticed struct{ Level, Text string } // level: info, warning, error
)

// Member is a line of a team's roster.
type Member struct {
	Name, AgentType, Model, Color, Backend string
	Lead                                   bool
}

// Outcome is how a turn ended. What it used is counted by a [Tally].
type Outcome struct {
	Reason     Reason
	Text       string // the last text of the assistant
	Err        string // why, for Failed
	Class      string // of the model's error, for Failed: a provider.Class
	Status     int    // HTTP status of it; 0: none
	StopReason string // of the last reply
	Rounds     int
	Took       time.Duration
	APITime    time.Duration
	Denied     []Denied
	Stalled    int // messages that the agent was not given, for Failed: they wait for something new to come
}

// Denied is a call that was refused.
type Denied struct {
	Tool, Call string
	Input      json.RawMessage
}

// Reason says why a turn ended.
type Reason string

// The reasons.
const (
	Done        Reason = "completed"
	MaxRounds   Reason = "max_turns"
	Failed      Reason = "error"
	Interrupted Reason = "interrupted"
)

func (TurnStarted) body()  {}
func (TextDelta) body()    {}
func (Stored) body()       {}
func (Waiting) body()      {}
func (Retrying) body()     {}
func (ToolStarted) body()  {}
func (ToolEnded) body()    {}
func (ToolDenied) body()   {}
func (TurnEnded) body()    {}
func (Asked) body()        {}
func (Answered) body()     {}
func (AgentStarted) body() {}
func (AgentEnded) body()   {}
func (JobStarted) body()   {}
func (JobEnded) body()     {}
func (TeamChanged) body()  {}
func (TaskChanged) body()  {}
func (MailSent) body()     {}
func (Idle) body()         {}
func (Gap) body()          {}
func (Noticed) body()      {}
