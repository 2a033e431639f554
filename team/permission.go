package team

import (
	"bytes"
	"context"
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
	exitPlanMode    = "ExitPlanMode"
	askUserQuestion = "AskUserQuestion"
)

// acceptable are the updates that may go over the mail with an answer. None lifts
// all checks, and none takes away a rule that denies or asks: that is for the
// person in front of the agent.
func acceptable(updates []ask.Suggestion) []ask.Suggestion {
	var ok []ask.Suggestion
	for _, u := range updates {
		switch u.Type {
		case ask.SetMode:
			if u.Mode == modeBypass {
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

// forSession are updates that leave no trace in a settings file.
func forSession(updates []ask.Suggestion) []ask.Suggestion {
	passing := slices.Clone(updates)
	for i := range passing {
		passing[i].Destination = ask.Session
	}
	return passing
}

// newPermissionRequest is a question in the form of the wire.
func newPermissionRequest(at time.Time, agent string, a ask.Ask) PermissionRequest {
	suggestions := a.Suggestions
	if suggestions == nil {
		suggestions = []ask.Suggestion{}
	}
	return PermissionRequest{
		Type: typePermissionRequest, RequestID: "perm-" + strconv.FormatInt(at.UnixMilli(), 10) + "-" + ids.Hex(7),
		AgentID: agent, ToolName: a.Tool, ToolUseID: a.ToolUseID, Description: describe(a), Input: compacted(a.Input),
		Suggestions: suggestions,
	}
}

// describe says in a line what the call does (facts: claude-code §7).
func describe(a ask.Ask) string {
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

// compacted is input as a message carries it: what the lead reads, and its
// answer is bound to, byte for byte.
func compacted(input json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, bytes.ToValidUTF8(input, []byte("\ufffd"))) != nil {
		return nil
	}
	return b.Bytes()
}

// asked is the question of a request, as the lead puts it before somebody.
func (s *Seat) asked(m mailbox.Message, c PermissionRequest) ask.Ask {
	a := ask.Ask{
		ID: c.RequestID, Kind: ask.Permission, SessionID: s.session, AgentName: m.From, Team: s.Team,
		Tool: c.ToolName, ToolUseID: c.ToolUseID, Input: c.Input, Digest: ask.DigestOf(c.ToolName, c.Input),
		Question: "May " + c.ToolName + " of " + m.From + " run?", Reason: c.Description,
		Suggestions: acceptable(c.Suggestions), Asked: sentAt(m),
	}
	switch c.ToolName {
	case askUserQuestion:
		a.Kind, a.Question = ask.Choice, m.From+" has a question."
	case exitPlanMode:
		a.Kind, a.Question = ask.Plan, "Is the plan of "+m.From+" good?"
	}
	return a
}

// permissionRequested relays a request in the lead's inbox. Its model is never
// shown one: it may not answer.
func (t *Teams) permissionRequested(ctx context.Context, seat *Seat, m mailbox.Message, c PermissionRequest, mail *Mail) (show bool, err error) {
	if !seat.Lead {
		return true, nil
	}
	member, err := seat.recipient(ctx, m.From)
	if isUnknown(err) || c.RequestID == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a := seat.asked(m, c)
	if done, err := t.answeredBefore(ctx, seat, member.Name, m, c.RequestID, a.Digest); err != nil {
		return false, err
	} else if done {
		t.consent.settled(ctx, a.ID)
		return false, nil
	}
	// A program that cannot seal its requests suggests nothing that lasts: whoever
	// can write to the inbox can be it.
	if ours, err := t.isOurs(ctx, mailbox.Address{Team: seat.Team, Agent: member.Name}); err != nil {
		return false, err
	} else if !ours {
		a.Suggestions = forSession(a.Suggestions)
	}
	held, _, err := t.relayAsk(ctx, seat, member, m, a, func(ctx context.Context, answer ask.Answer) error {
		return seat.respondPermission(ctx, member.Name, a, answer)
	})
	if held {
		mail.IDs = nil
	}
	return false, err
}

// respondPermission posts the answer to a request, bound to the digest of what
// was asked.
func (s *Seat) respondPermission(ctx context.Context, to string, a ask.Ask, answer ask.Answer) error {
	inbox := mailbox.Address{Team: s.Team, Agent: to}
	m := s.unique(inbox, mailbox.Message{
		From: s.Name, Text: encode(permissionResponse(a, answer)), Timestamp: stamp(time.Now()),
	})
	if err := s.teams.seals.Seal(ctx, inbox, m, a.Digest); err != nil {
		return err
	}
	return s.teams.post(ctx, s.agent(), inbox, m, sealedProtocol)
}

func permissionResponse(a ask.Ask, answer ask.Answer) PermissionResponse {
	c := PermissionResponse{Type: typePermissionResponse, RequestID: a.ID, Subtype: permissionError}
	if !answer.Allow {
		c.Error, c.Interrupt = answer.Message, answer.Interrupt
		if c.Error == "" {
			c.Error = "Permission denied"
		}
		return c
	}
	input, updates := compacted(answer.UpdatedInput), acceptable(answer.Updates)
	if input == nil {
		input = a.Input
	}
	if updates == nil {
		updates = []ask.Suggestion{}
	}
	c.Subtype, c.Response = permissionSuccess, &Permission{UpdatedInput: input, Updates: updates, Note: answer.Message}
	return c
}

// answerOf reads a response to a request; ok is false when it says neither yes
// nor no.
func answerOf(c PermissionResponse, input json.RawMessage) (answer ask.Answer, ok bool) {
	answer.By = LeadName
	switch c.Subtype {
	case permissionError:
		answer.Message, answer.Interrupt = c.Error, c.Interrupt
		return answer, true
	case permissionSuccess:
		answer.Allow = true
		if r := c.Response; r != nil {
			// Nothing that comes by mail changes a settings file here.
			answer.Updates, answer.Message = acceptable(r.Updates), r.Note
			answer.Kept = len(answer.Updates) > 0
			if changed := compacted(r.UpdatedInput); changed != nil && !bytes.Equal(changed, input) && string(changed) != "null" {
				answer.UpdatedInput = changed
			}
		}
		return answer, true
	}
	return answer, false
}
