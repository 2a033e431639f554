package protocol

import "github.com/cadre-dev/cadre/mailbox"

// TypeLoopDamped is ours alone.
const TypeLoopDamped = "loop_damped"

// LoopDamped tells the lead that an agent was kept from answering a peer.
type LoopDamped struct {
	Type      string `json:"type"`
	From      string `json:"from"`
	Peer      string `json:"peer"`
	Answers   int    `json:"answers"`
	Timestamp string `json:"timestamp"`
}

func (LoopDamped) kind() string { return TypeLoopDamped }

// parseOurs reads the messages that only our own runtimes exchange; ok is false
// for any other type.
func parseOurs(kind, text string) (c Control, ok bool) {
	switch kind {
	case TypeMailReturned:
		return decode[MailReturned](text)
	case TypeLoopDamped:
		return decode[LoopDamped](text)
	case TypeStopRequest:
		return decode[StopRequest](text)
	}
	return nil, false
}

// TypeMailReturned is ours alone.
const TypeMailReturned = "mail_returned"

// MailReturned tells a sender, and the lead, that a message was never shown: its
// recipient has left the team.
type MailReturned struct {
	Type      string `json:"type"`
	From      string `json:"from"` // who wrote it
	To        string `json:"to"`
	Summary   string `json:"summary,omitempty"`
	Text      string `json:"text"`
	Timestamp string `json:"timestamp"` // of the message
}

func (MailReturned) kind() string { return TypeMailReturned }

// Of reports whether this is the return of a message that was sent to an agent.
func (r MailReturned) Of(to string, m mailbox.Message) bool {
	return r.To == to && r.From == m.From && r.Timestamp == m.Timestamp && r.Text == m.Text
}

// TypeStopRequest is ours alone.
const TypeStopRequest = "stop_request"

// StopRequest tells the runtime that runs an agent to end it, whatever its model
// does.
type StopRequest struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	From      string `json:"from"`
	Force     bool   `json:"force"`
	Reason    string `json:"reason,omitempty"`
	Timestamp string `json:"timestamp"`
}

func (StopRequest) kind() string { return TypeStopRequest }
