// Package mailbox is the vocabulary of mail between agents: a message, its
// identity, and the store that keeps it. It knows neither sessions nor teams:
// who may write to whom is team policy, and waking a reader is a signal on a
// channel.
package mailbox

import (
	"context"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Message is one entry of an inbox (facts: claude-code §5).
type Message struct {
	From      string
	Text      string
	Summary   string // "" when absent
	Timestamp string // as written: RFC 3339, UTC, milliseconds
	Color     string // the sender's; "" when absent
	Read      bool
	Extra     jsonx.Object // fields that other programs wrote

	// ID is the identity that [Identify] gives; it is not kept with the message.
	ID ID
}

// ID identifies a message of one inbox: the format has no id of its own, so it
// is a digest of from, timestamp and text, and the occurrence among equal ones.
type ID string

// Address is where an agent gets its mail.
type Address struct {
	Team  string // raw team name; "" is the mail of agents without a team
	Agent string
}

func (a Address) String() string { return a.Agent + "@" + a.Team }

// Store keeps inboxes. Implementations pass the suite in internal/storetest.
// All methods may be called from any goroutine and any process at once.
type Store interface {
	// Post appends m, unread, to an inbox, made if missing. When it returns nil
	// the message survives the kill of any process, and local watchers have
	// been signalled; after an error the message is not in the inbox. It blocks
	// while another process holds the inbox's lock, at most until ctx ends.
	Post(ctx context.Context, to Address, m Message) error
	// Unread lists what is not marked read, oldest first, with IDs. An absent
	// inbox is empty. One that is damaged is kept aside, with a warning, and what
	// is whole of it goes on.
	Unread(ctx context.Context, at Address) ([]Message, error)
	// All lists a whole inbox like Unread.
	All(ctx context.Context, at Address) ([]Message, error)
	// MarkRead marks these messages read; an id that is not there, or marked
	// already, is no error.
	MarkRead(ctx context.Context, at Address, ids []ID) error
	// Watch returns a channel of capacity one that is signalled when mail may
	// have arrived, at the latest after the store's poll interval when another
	// process wrote it. stop ends the watch; the channel is never closed.
	Watch(at Address) (signal <-chan struct{}, stop func())
}
