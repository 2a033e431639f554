package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type sendMessage struct{ teams *team.Teams }

const sendMessageDescription = `Sends mail to other members of your team. This is the only way to reach them: they do not see the text of your replies.

Types:
- message: to one member. Give recipient (a name like "tester", or "team-lead"), content, and summary (5 to 10 words, shown to people and in listings). This is the default.
- broadcast: the same to everybody else. Every member has to read it, so use it only for what concerns all of them; otherwise write to those whom it concerns.
- shutdown_request: the lead asks a teammate to shut down. Give recipient, and the reason in content. The teammate answers by itself; you are notified.
- shutdown_response: a teammate answers such a request. Give request_id (it is in the request) and approve. With approve true you shut down at once, so finish or hand over your work first; with approve false give the reason in content and continue.
- plan_approval_response: the lead answers a teammate's plan. Give recipient, request_id and approve; when you reject it, say in content what to change.

receipt: if true, you get one note when the recipient has been shown the message. Use it only when something depends on that: a message that was sent is never lost.

Instead of recipient and content you may use to and message; "*" as to is a broadcast.

How to write: begin with the result or the question, name files and task numbers, and leave out greetings and thanks. Do not answer only to confirm that you have read something. Do not repeat what a task already says. Mail arrives in the order in which you sent it, between the recipient's tool calls, or at once when it is idle: do not ask whether it arrived. If it was not delivered, the result says so.`

const sendMessageSchema = `{"type":"object","properties":{` +
	`"type":{"type":"string","enum":["message","broadcast","shutdown_request","shutdown_response","plan_approval_response"],"description":"Kind of mail; message by default"},` +
	`"recipient":{"type":"string","description":"Name of the recipient"},` +
	`"content":{"type":"string","description":"The text; for a shutdown or plan, the reason or feedback"},` +
	`"summary":{"type":"string","description":"The content in 5 to 10 words"},` +
	`"request_id":{"type":"string","description":"Id of the request that this answers"},` +
	`"approve":{"type":"boolean","description":"Whether the request is granted"},` +
	`"to":{"type":"string","description":"Same as recipient; \"*\" for everybody"},` +
	`"message":{"type":"string","description":"Same as content"},` +
	`"receipt":{"type":"boolean","description":"Tell me when the recipient has been shown the message; for type message only"}` +
	`},"additionalProperties":false}`

var sendMessageSpec = tool.Spec{
	Name: "SendMessage", Description: sendMessageDescription, Schema: tool.NewSchema(sendMessageSchema),
	Delegates: true,
}

func (sendMessage) Spec() tool.Spec { return sendMessageSpec }

func (sendMessage) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

// mailInput is the input in both of its forms.
type mailInput struct {
	Type      string  `json:"type"`
	Recipient *string `json:"recipient"`
	Content   *string `json:"content"`
	Summary   *string `json:"summary"`
	RequestID *string `json:"request_id"`
	Approve   *bool   `json:"approve"`
	To        *string `json:"to"`
	Message   *string `json:"message"`
	Receipt   bool    `json:"receipt"`
}

func (t sendMessage) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[mailInput](call)
	if failed != nil {
		return *failed
	}
	in.normalize()
	if missing := in.missing(); missing != "" {
		return tool.UseError(missing)
	}
	if in.Receipt && in.Type != "message" {
		return tool.UseError("receipt is for messages to one member only. Leave it out.")
	}
	if failed, ok := checkLength(map[string]string{"content": deref(in.Content), "summary": deref(in.Summary)}); !ok {
		return failed
	}
	seat, ok := t.teams.Seat(tool.CallerFrom(ctx))
	if !ok {
		return teamError(team.ErrNoTeam)
	}
	switch in.Type {
	case "broadcast":
		return broadcast(ctx, seat, in)
	case "shutdown_request":
		return requestShutdown(ctx, seat, in)
	case "shutdown_response":
		return respondShutdown(ctx, seat, in)
	case "plan_approval_response":
		return respondPlan(ctx, seat, in)
	}
	return send(ctx, seat, in)
}

// normalize turns the newer form, to and message, into the typed one.
func (in *mailInput) normalize() {
	newer := in.To != nil || in.Message != nil
	if in.Recipient == nil {
		in.Recipient = in.To
	}
	if in.Content == nil {
		in.Content = in.Message
	}
	if in.Type == "" {
		in.Type = "message"
	}
	if in.Type == "message" && deref(in.Recipient) == "*" {
		in.Type = "broadcast"
	}
	if newer && in.Summary == nil && in.Content != nil {
		in.Summary = new(firstWords(*in.Content))
	}
}

// summaryWords is how many words of the content replace a missing summary.
const summaryWords = 10

func firstWords(text string) string {
	words := strings.Fields(text)
	if len(words) > summaryWords {
		return strings.Join(words[:summaryWords], " ") + " …"
	}
	return strings.Join(words, " ")
}

// missing says which field that the type needs is not there (facts: claude-code §1).
func (in *mailInput) missing() string {
	needs := map[string]bool{}
	switch in.Type {
	case "message":
		needs = map[string]bool{"recipient": in.Recipient == nil, "content": in.Content == nil, "summary": in.Summary == nil}
	case "broadcast":
		needs = map[string]bool{"content": in.Content == nil, "summary": in.Summary == nil}
	case "shutdown_request":
		needs = map[string]bool{"recipient": in.Recipient == nil}
	case "shutdown_response":
		needs = map[string]bool{"request_id": in.RequestID == nil, "approve": in.Approve == nil}
		if in.RequestID != nil && in.Approve != nil && !*in.Approve && deref(in.Content) == "" {
			return "content (reason) is required when rejecting a shutdown request"
		}
	case "plan_approval_response":
		needs = map[string]bool{"request_id": in.RequestID == nil, "recipient": in.Recipient == nil}
	}
	for _, name := range []string{"recipient", "content", "summary", "request_id", "approve"} {
		if needs[name] {
			return fmt.Sprintf("%s is required for SendMessage of type %s", name, in.Type)
		}
	}
	return ""
}

// routing, sent and broadcasted are results in the form of facts: claude-code
// §5.3.
type routing struct {
	Sender      string `json:"sender"`
	SenderColor string `json:"senderColor,omitempty"`
	Target      string `json:"target"`
	TargetColor string `json:"targetColor,omitempty"`
	Summary     string `json:"summary"`
	Content     string `json:"content"`
}

type sent struct {
	Success bool    `json:"success"`
	Message string  `json:"message"`
	Routing routing `json:"routing"`
	// MessageID is our addition, for a message whose receipt was asked for.
	MessageID string `json:"message_id,omitempty"`
}

type broadcasted struct {
	Success    bool     `json:"success"`
	Message    string   `json:"message"`
	Recipients []string `json:"recipients"`
	Failed     []string `json:"failed,omitempty"` // ours: whom it did not reach
	Routing    *routing `json:"routing,omitempty"`
}

func send(ctx context.Context, seat *team.Seat, in mailInput) tool.Result {
	var options []team.SendOption
	if in.Receipt {
		options = append(options, team.WithReceipt())
	}
	d, err := seat.Send(ctx, *in.Recipient, *in.Content, *in.Summary, options...)
	switch {
	case err != nil && strings.TrimSpace(*in.Recipient) == mailbox.UserName:
		return tool.Error(toPerson)
	case err != nil:
		return teamError(err)
	}
	out := sent{Success: true, Message: "Message sent to " + d.To + "'s inbox", Routing: routing{
		seat.Name, seat.Color, "@" + d.To, d.Color, *in.Summary, *in.Content,
	}}
	if in.Receipt {
		out.MessageID = string(d.ID)
	}
	return prettyResult(out)
}

// toPerson answers an agent that writes mail to a person.
const toPerson = `"` + mailbox.UserName + `" is a person, who has no inbox. Answer in the text of your reply, which they can read; if the team has to know it too, tell ` + mailbox.LeadName + "."

func broadcast(ctx context.Context, seat *team.Seat, in mailInput) tool.Result {
	reach, err := seat.Broadcast(ctx, *in.Content, *in.Summary)
	if err != nil {
		return teamError(err)
	}
	if len(reach.Reached)+len(reach.Missed) == 0 {
		return prettyResult(broadcasted{
			Success: true, Message: "No teammates to broadcast to (you are the only team member)", Recipients: []string{},
		})
	}
	out := broadcasted{
		Success:    len(reach.Missed) == 0,
		Message:    fmt.Sprintf("Message broadcast to %d teammate(s): %s", len(reach.Reached), strings.Join(reach.Reached, ", ")),
		Recipients: listed(reach.Reached),
		Routing: &routing{
			Sender: seat.Name, SenderColor: seat.Color, Target: "@team", Summary: *in.Summary, Content: *in.Content,
		},
	}
	for _, m := range reach.Missed {
		out.Failed = append(out.Failed, m.Name)
		out.Message += fmt.Sprintf(". NOT delivered to %s: %v", m.Name, m.Err)
	}
	result := prettyResult(out)
	result.IsError = !out.Success
	return result
}

// answered is the result of the requests and responses.
type answered struct {
	Success   bool   `json:"success"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	Target    string `json:"target,omitempty"`
}

func requestShutdown(ctx context.Context, seat *team.Seat, in mailInput) tool.Result {
	d, id, err := seat.RequestShutdown(ctx, *in.Recipient, deref(in.Content))
	if err != nil {
		return teamError(err)
	}
	return prettyResult(answered{true, fmt.Sprintf("Shutdown request sent to %s. Request ID: %s", d.To, id), id, d.To})
}

func respondShutdown(ctx context.Context, seat *team.Seat, in mailInput) tool.Result {
	if err := seat.RespondShutdown(ctx, *in.RequestID, *in.Approve, deref(in.Content)); err != nil {
		return requestError(err)
	}
	if !*in.Approve {
		return prettyResult(answered{
			Success: true, RequestID: *in.RequestID,
			Message: fmt.Sprintf("Shutdown rejected. Reason: \"%s\". Continuing to work.", *in.Content),
		})
	}
	result := prettyResult(answered{
		Success: true, RequestID: *in.RequestID,
		Message: fmt.Sprintf("Shutdown approved. Sent confirmation to %s. Agent %s is now exiting.", mailbox.LeadName, seat.Name),
	})
	result.EndTurn = true
	return result
}

func respondPlan(ctx context.Context, seat *team.Seat, in mailInput) tool.Result {
	if !seat.Lead {
		return tool.Error("Only the team lead can approve plans. Teammates cannot approve their own or other plans.")
	}
	approve, feedback := in.Approve != nil && *in.Approve, deref(in.Content)
	if feedback == "" {
		feedback = "Plan needs revision"
	}
	d, err := seat.Plans.Respond(ctx, *in.Recipient, *in.RequestID, approve, feedback, "") // in the mode of the lead
	if err != nil {
		return requestError(err)
	}
	out := answered{Success: true, RequestID: *in.RequestID}
	out.Message = fmt.Sprintf("Plan rejected for %s with feedback: \"%s\"", d.To, feedback)
	if approve {
		out.Message = fmt.Sprintf("Plan approved for %s. They will receive the approval and can proceed with implementation.", d.To)
	}
	return prettyResult(out)
}

func requestError(err error) tool.Result {
	if errors.Is(err, team.ErrPersonDecides) {
		return tool.Error("A person decides about plans here, and has been asked. Nothing was sent: you will be notified of the decision.")
	}
	if errors.Is(err, team.ErrLeadPlans) {
		return tool.Error("You are in plan mode yourself, so you cannot approve the plan of another agent. Nothing was sent. Leave plan mode first, or reject the plan.")
	}
	if errors.Is(err, team.ErrNoRequest) {
		return tool.Error(capitalized(err.Error()) + " Use the request_id exactly as it is in the request; a request can be answered only once.")
	}
	return teamError(err)
}
