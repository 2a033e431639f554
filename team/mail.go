package team

import (
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/mailbox"
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
