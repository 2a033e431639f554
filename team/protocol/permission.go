package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
)

// Tools whose calls are questions of their own kind.
const (
	ExitPlanMode    = "ExitPlanMode"
	AskUserQuestion = "AskUserQuestion"
)

// Acceptable are the updates that may go over the mail with an answer. None lifts
// all checks, and none takes away a rule that denies or asks: that is for the
// person in front of the agent.
func Acceptable(updates []ask.Suggestion) []ask.Suggestion {
	var ok []ask.Suggestion
	for _, u := range updates {
		switch u.Type {
		case ask.SetMode:
			if u.Mode == ModeBypass {
				continue
			}
		case ask.AddRules, ask.AddDirectories, ask.RemoveDirectories:
		case ask.ReplaceRules, ask.RemoveRules:
			if u.Behavior != behaviorAllow {
				continue
			}
		default:
			continue
		}
		ok = append(ok, u)
	}
	return ok
}

const behaviorAllow = "allow"

// ForSession are updates that leave no trace in a settings file.
func ForSession(updates []ask.Suggestion) []ask.Suggestion {
	passing := slices.Clone(updates)
	for i := range passing {
		passing[i].Destination = ask.Session
	}
	return passing
}

// NewPermissionRequest is a question in the form of the wire.
func NewPermissionRequest(at time.Time, agent string, a ask.Ask) PermissionRequest {
	suggestions := a.Suggestions
	if suggestions == nil {
		suggestions = []ask.Suggestion{}
	}
	return PermissionRequest{
		Type: TypePermissionRequest, RequestID: "perm-" + strconv.FormatInt(at.UnixMilli(), 10) + "-" + ids.Hex(7),
		AgentID: agent, ToolName: a.Tool, ToolUseID: a.ToolUseID, Description: question(a), Input: Compacted(a.Input),
		Suggestions: suggestions,
	}
}

// question says in a line what the call does (facts: claude-code §7).
func question(a ask.Ask) string {
	var input struct {
		Description string `json:"description"`
	}
	switch {
	case a.Tool != "Bash":
		return a.Question
	case json.Unmarshal(a.Input, &input) == nil && input.Description != "":
		return input.Description
	}
	return "Run shell command"
}

// Compacted is input as a message carries it: what the lead reads, and its
// answer is bound to, byte for byte.
func Compacted(input json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, bytes.ToValidUTF8(input, []byte("\ufffd"))) != nil {
		return nil
	}
	return b.Bytes()
}

// NewPermissionResponse is the response that carries an answer to a question.
func NewPermissionResponse(a ask.Ask, answer ask.Answer) PermissionResponse {
	c := PermissionResponse{Type: TypePermissionResponse, RequestID: a.ID, Subtype: permissionError}
	if !answer.Allow {
		c.Error, c.Interrupt = answer.Message, answer.Interrupt
		if c.Error == "" {
			c.Error = "Permission denied"
		}
		return c
	}
	input, updates := Compacted(answer.UpdatedInput), Acceptable(answer.Updates)
	if input == nil {
		input = a.Input
	}
	if updates == nil {
		updates = []ask.Suggestion{}
	}
	c.Subtype, c.Response = permissionSuccess, &Permission{UpdatedInput: input, Updates: updates, Note: answer.Message}
	return c
}

// AnswerOf reads a response to a request; ok is false when it says neither yes
// nor no.
func AnswerOf(c PermissionResponse, input json.RawMessage) (answer ask.Answer, ok bool) {
	answer.By = mailbox.LeadName
	switch c.Subtype {
	case permissionError:
		answer.Message, answer.Interrupt = c.Error, c.Interrupt
		return answer, true
	case permissionSuccess:
		answer.Allow = true
		if r := c.Response; r != nil {
			// Nothing that comes by mail changes a settings file here.
			answer.Updates, answer.Message = Acceptable(r.Updates), r.Note
			answer.Kept = len(answer.Updates) > 0
			if changed := Compacted(r.UpdatedInput); changed != nil && !bytes.Equal(changed, input) && string(changed) != "null" {
				answer.UpdatedInput = changed
			}
		}
		return answer, true
	}
	return answer, false
}
