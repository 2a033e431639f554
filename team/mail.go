package team

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Kind says how urgent mail is. Of what waits, a session takes shutdown requests
// first, then the lead's mail, then everybody else's, then a task.
type Kind string

// The kinds, the most urgent first. System is a note of the runtime.
const (
	KindShutdown Kind = "shutdown"
	KindLead     Kind = "lead"
	KindPeer     Kind = "peer"
	KindSystem   Kind = "system"
	KindTask     Kind = "task"
)

// rank orders the kinds. Notes of the runtime keep their place among the mail of
// peers: they came as such.
var rank = map[Kind]int{KindShutdown: 0, KindLead: 1, KindPeer: 2, KindSystem: 2, KindTask: 3}

// Mail is input for a session's model.
type Mail struct {
	Kind    Kind
	Text    string // wrapped, as the model gets it
	Whole   string // of a message between agents, what its sender wrote; Text may be cut. "" for the runtime's words
	From    string // the sender's name
	Color   string // the sender's; "" when it has none
	Preview string // one line for a person
	Mode    string // permission mode that comes with it; "" for none
	Quiet   bool   // news that nobody who waits for something else has to hear at once
	Urgent  bool   // it comes with the next round, however much other mail waits
	// IDs are the receipts to keep with the transcript entry that shows this,
	// and to give to [Inbox.Shown] then.
	IDs []mailbox.ID
}

// Sort puts mail in the order in which a model gets it: by kind, and within a
// kind as it stands.
func Sort(mails []Mail) {
	slices.SortStableFunc(mails, func(a, b Mail) int { return rank[a.Kind] - rank[b.Kind] })
}

// Join is several pieces of mail as one input (facts: claude-code §4.5).
func Join(mails []Mail) string {
	texts := make([]string, len(mails))
	for i, m := range mails {
		texts[i] = m.Text
	}
	return strings.Join(texts, "\n\n")
}

// digested is the mail of these messages, in their order. For a lead, several
// notes that agents are idle become one. An agent's note is part of it only when
// nothing of the agent follows it: the digest stands where the last note stood,
// so nobody is reported idle after something that it did later, or before
// something that it said earlier.
func digested(seat *Seat, arrivals []arrival) []Mail {
	mails := make([]Mail, len(arrivals))
	for i, a := range arrivals {
		mails[i] = a.mail
	}
	if !seat.Lead {
		return mails
	}
	var notes []int
	for i, a := range arrivals {
		if _, ok := a.control.(protocol.IdleNotification); ok && !saysMore(arrivals[i+1:], a.mail.From) {
			notes = append(notes, i)
		}
	}
	if len(notes) < 2 {
		return mails
	}
	last := notes[len(notes)-1]
	mails[last] = idleDigest(arrivals, notes)
	for _, i := range slices.Backward(notes[:len(notes)-1]) {
		mails = slices.Delete(mails, i, i+1)
	}
	return mails
}

// saysMore reports whether an agent has written something else than notes that it
// is idle.
func saysMore(arrivals []arrival, agent string) bool {
	return slices.ContainsFunc(arrivals, func(a arrival) bool {
		_, idle := a.control.(protocol.IdleNotification)
		return !idle && a.mail.From == agent
	})
}

// idleDigest is several notes in one, with the receipts of all.
func idleDigest(arrivals []arrival, notes []int) Mail {
	var ids []mailbox.ID
	var lines, names []string
	quiet := true
	for _, i := range notes {
		quiet = quiet && arrivals[i].mail.Quiet
		note, _ := arrivals[i].control.(protocol.IdleNotification)
		from := arrivals[i].mail.From
		lines = append(lines, "- "+idleLine(from, note))
		ids = append(ids, arrivals[i].mail.IDs...)
		if !slices.Contains(names, from) {
			names = append(names, from)
		}
	}
	who := "1 teammate is idle:"
	if len(names) > 1 {
		who = fmt.Sprintf("%d teammates are idle:", len(names))
	}
	if kept := newest(lines); len(kept) < len(lines) {
		who += fmt.Sprintf("\n(%d earlier notes are left out)", len(lines)-len(kept))
		lines = kept
	}
	return Mail{
		Kind: KindSystem, From: mailbox.SystemName, Preview: oneline.Of("idle: " + strings.Join(names, ", ")), IDs: ids,
		Quiet: quiet,
		Text:  protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: who + "\n" + strings.Join(lines, "\n")}),
	}
}

// newest are as many lines, from the end, as one message may show.
func newest(lines []string) []string {
	size := 0
	for i, line := range slices.Backward(lines) {
		if size += len(line) + 1; size > protocol.MaxShown {
			return lines[i+1:]
		}
	}
	return lines
}

// idleLine is a note in one line.
func idleLine(from string, note protocol.IdleNotification) string {
	parts := []string{from + " (" + string(note.IdleReason) + ")"}
	if note.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%d messages unread", note.Unread))
	}
	if note.CompletedTaskID != "" {
		parts = append(parts, "task #"+note.CompletedTaskID+" "+note.CompletedStatus)
	}
	if note.Summary != "" {
		parts = append(parts, note.Summary)
	}
	if note.FailureReason != "" {
		parts = append(parts, "because "+note.FailureReason)
	}
	return oneline.Of(strings.Join(parts, "; "))
}
