package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// End says what the events do not: how the whole run ended.
type End struct {
	SessionID string
	Took      time.Duration
	Err       error // a failure outside any turn
	OpenWork  error // the team was still working when its time was up
	// Interrupted says that a person or a signal ended the run.
	Interrupted bool
	OpenTasks   []OpenTask // in the order of their ids
}

// NewResult is the result of a run: what its agents did, and how it ended.
// The agent without an id is the main session.
func NewResult(agents []event.AgentTally, end End) Result {
	var main event.AgentTally
	r := Result{
		Type: typeResult, DurationMS: end.Took.Milliseconds(), SessionID: end.SessionID, UUID: ids.UUID(),
		ModelUsage: make(map[string]ModelUsage), PermissionDenials: []Denial{}, OpenTasks: end.OpenTasks,
	}
	var api time.Duration
	models := make(map[string]event.Spending)
	for _, a := range agents {
		if a.Agent.ID == "" {
			main = a
		}
		api += a.APITime
		for _, d := range a.Denied {
			r.PermissionDenials = append(r.PermissionDenials, Denial{d.Tool, d.Call, d.Input})
		}
		for model, spent := range a.Models {
			models[model] = models[model].Add(spent)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		r.ModelUsage[model] = modelUsage(model, models[model])
		r.TotalCostUSD += models[model].CostUSD
	}
	used := main.Spent().Usage
	r.Usage = Usage{Usage: used, ServiceTier: "standard", CacheCreation: CacheCreation{Ephemeral5m: used.CacheCreationInputTokens}}
	r.DurationAPIMS, r.NumTurns = api.Milliseconds(), main.Rounds
	if main.Last != nil && main.Last.StopReason != "" {
		r.StopReason = &main.Last.StopReason
	}
	r.conclude(main, end)
	return r
}

func modelUsage(model string, spent event.Spending) ModelUsage {
	info, _ := provider.Lookup(model)
	u := ModelUsage{
		InputTokens: spent.Usage.InputTokens, OutputTokens: spent.Usage.OutputTokens,
		CacheReadInputTokens: spent.Usage.CacheReadInputTokens, CacheCreationInputTokens: spent.Usage.CacheCreationInputTokens,
		CostUSD: spent.CostUSD, ContextWindow: info.Context, MaxOutputTokens: info.MaxOutput,
	}
	if spent.Unpriced {
		u.CostBasis = "unknown"
	}
	return u
}

// conclude fills in how the run ended (the table of facts: sdk-contract §2.3).
func (r *Result) conclude(main event.AgentTally, end End) {
	last := main.Last
	switch {
	case end.Err != nil:
		r.fail(ErrorDuringExecution, "", end.Err.Error())
	case end.Interrupted || last != nil && last.Reason == event.Interrupted:
		r.fail(ErrorDuringExecution, AbortedStreaming)
		if main.Interruption == transcript.InterruptedForTool {
			r.TerminalReason = AbortedTools
		}
	case last == nil:
		r.fail(ErrorDuringExecution, "", "The run ended before its first turn did.")
	case last.Reason == event.MaxRounds:
		r.NumTurns++ // the turn that was not made counts (facts: sdk-contract §2.3)
		r.fail(ErrorMaxTurns, MaxTurns, fmt.Sprintf("Reached maximum number of turns (%d)", last.Rounds))
	case last.Reason == event.Failed && last.Class != "":
		text, stop, status := apiErrorText(*last), "stop_sequence", last.Status
		r.Subtype, r.IsError, r.TerminalReason, r.Result, r.StopReason = Success, true, APIError, &text, &stop
		if status != 0 {
			r.APIErrorStatus = &status
		}
	case last.Reason == event.Failed:
		r.fail(ErrorDuringExecution, ModelError, last.Err)
	case end.OpenWork != nil:
		r.fail(ErrorDuringExecution, OpenWork, end.OpenWork.Error())
	default:
		r.Subtype, r.TerminalReason, r.Result = Success, Completed, &main.LastText
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

// errorName is the name that clients know for a class of errors (facts:
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
