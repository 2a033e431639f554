package control

import (
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// Account gathers from the events of a tree what the result of a run says. One
// goroutine at a time may use it.
type Account struct {
	last   *event.Outcome
	text   string
	rounds int
	api    time.Duration
	denied []event.Denied
	main   transcript.Usage
	models map[string]*spent
	reply  map[string]string // agent id -> the newest reply, whose usage is counted
	inTool bool              // the last interruption came while a tool ran
}

// spent is what one model cost.
type spent struct {
	usage transcript.Usage
	usd   float64
	known bool
}

// NewAccount makes an empty account.
func NewAccount() *Account {
	return &Account{models: make(map[string]*spent), reply: make(map[string]string)}
}

// Add takes in an event.
func (a *Account) Add(ev event.Event) {
	switch body := ev.Body.(type) {
	case event.Stored:
		a.addEntry(ev.Agent, body.Entry)
	case event.TurnEnded:
		a.addTurn(ev.Agent, body.Outcome)
	}
}

// addEntry counts a reply once, though each of its blocks is an entry. Replies
// are priced one by one: some models price by the length of the prompt.
func (a *Account) addEntry(agent event.Agent, e transcript.Entry) {
	if e.Kind == transcript.KindUser && agent.ID == "" {
		if mark := interruption(e.Message); mark != "" {
			a.inTool = mark == transcript.InterruptedForTool
		}
	}
	if e.Kind != transcript.KindAssistant {
		delete(a.reply, agent.ID) // ids of replies are the server's, and not always unique
		return
	}
	if id, counted := a.reply[agent.ID]; counted && id == e.Message.ID {
		return
	}
	a.reply[agent.ID] = e.Message.ID
	usage := e.Message.Usage
	if agent.ID == "" {
		a.main = a.main.Add(usage)
	}
	s := a.models[e.Message.Model]
	if s == nil {
		s = &spent{known: true}
		a.models[e.Message.Model] = s
	}
	usd, known := provider.Cost(e.Message.Model, usage)
	s.usage, s.usd, s.known = s.usage.Add(usage), s.usd+usd, s.known && known
}

func (a *Account) addTurn(agent event.Agent, out event.Outcome) {
	a.api += out.APITime
	a.denied = append(a.denied, out.Denied...)
	if agent.ID != "" {
		return
	}
	a.last = &out
	a.rounds += out.Rounds
	if out.Text != "" {
		a.text = out.Text
	}
}

// Text is the main session's last text.
func (a *Account) Text() string { return a.text }

// Last is how the main session's last turn ended; nil when none has.
func (a *Account) Last() *event.Outcome { return a.last }

// End says what the events do not: how the whole run came to its end.
type End struct {
	SessionID string
	Took      time.Duration
	Err       error // a failure outside any turn
	OpenWork  error // the team was still at work when its time had passed
	// Interrupted says that a person or a signal ended the run.
	Interrupted bool
}

// Result is the one result of the run.
func (a *Account) Result(end End) Result {
	r := Result{
		Type: typeResult, DurationMS: end.Took.Milliseconds(), DurationAPIMS: a.api.Milliseconds(),
		NumTurns: a.rounds, SessionID: end.SessionID, UUID: ids.UUID(),
		Usage:      Usage{Usage: a.main, ServiceTier: "standard", CacheCreation: CacheCreation{Ephemeral5m: a.main.CacheCreationInputTokens}},
		ModelUsage: make(map[string]ModelUsage), PermissionDenials: []Denial{},
	}
	for model, s := range a.models {
		r.ModelUsage[model] = s.wire(model)
		r.TotalCostUSD += s.usd
	}
	for _, d := range a.denied {
		r.PermissionDenials = append(r.PermissionDenials, Denial{d.Tool, d.Call, d.Input})
	}
	if a.last != nil && a.last.StopReason != "" {
		r.StopReason = &a.last.StopReason
	}
	a.conclude(&r, end)
	return r
}

func (s *spent) wire(model string) ModelUsage {
	info, _ := provider.Lookup(model)
	u := ModelUsage{
		InputTokens: s.usage.InputTokens, OutputTokens: s.usage.OutputTokens,
		CacheReadInputTokens: s.usage.CacheReadInputTokens, CacheCreationInputTokens: s.usage.CacheCreationInputTokens,
		CostUSD: s.usd, ContextWindow: info.Context, MaxOutputTokens: info.MaxOutput,
	}
	if !s.known {
		u.CostBasis = "unknown"
	}
	return u
}

// conclude fills in how it ended (the table of facts: sdk-contract §2.3).
func (a *Account) conclude(r *Result, end End) {
	switch {
	case end.Err != nil:
		r.fail(ErrorDuringExecution, "", end.Err.Error())
	case end.Interrupted || a.last != nil && a.last.Reason == event.Interrupted:
		r.fail(ErrorDuringExecution, AbortedStreaming)
		if a.inTool {
			r.TerminalReason = AbortedTools
		}
	case a.last == nil:
		r.fail(ErrorDuringExecution, "", "The run ended before its first turn did.")
	case a.last.Reason == event.MaxRounds:
		r.NumTurns++ // the turn that was not made counts (facts: sdk-contract §2.3)
		r.fail(ErrorMaxTurns, MaxTurns, fmt.Sprintf("Reached maximum number of turns (%d)", a.last.Rounds))
	case a.last.Reason == event.Failed && a.last.Class != "":
		text, stop, status := apiErrorText(*a.last), "stop_sequence", a.last.Status
		r.Subtype, r.IsError, r.TerminalReason, r.Result, r.StopReason = Success, true, APIError, &text, &stop
		if status != 0 {
			r.APIErrorStatus = &status
		}
	case a.last.Reason == event.Failed:
		r.fail(ErrorDuringExecution, ModelError, a.last.Err)
	case end.OpenWork != nil:
		r.fail(ErrorDuringExecution, OpenWork, end.OpenWork.Error())
	default:
		r.Subtype, r.TerminalReason, r.Result = Success, Completed, &a.text
	}
}

func (r *Result) fail(subtype, reason string, errs ...string) {
	r.Subtype, r.IsError, r.TerminalReason = subtype, true, reason
	r.Errors = append([]string{}, errs...)
}

// apiErrorText is how clients know an error of the model's API.
func apiErrorText(out event.Outcome) string {
	if out.Status == 0 {
		return "API Error: " + out.Err
	}
	return fmt.Sprintf("API Error: %d %s", out.Status, out.Err)
}

// errorName turns a class of ours into the name that clients know (facts:
// sdk-contract §2.3, assistant.error).
func errorName(class string) string {
	switch c := provider.Class(class); c {
	case provider.Auth, provider.Billing, provider.RateLimit, provider.Overloaded, provider.Server, provider.ModelNotFound:
		return class
	case provider.TooLong:
		return string(provider.Invalid)
	case provider.Invalid:
		return class
	}
	return "unknown"
}
