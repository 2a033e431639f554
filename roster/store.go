package roster

import (
	"context"
	"errors"
)

// Errors of a store.
var (
	ErrNotFound = errors.New("no such team")
	ErrExists   = errors.New("the team exists already")
)

// Store keeps rosters. Implementations pass the suite in internal/storetest.
// All methods may be called from any goroutine and any process at once.
type Store interface {
	// Create keeps a new team: [ErrExists] when there is one whose name is kept in
	// the same spelling, whoever made it.
	Create(ctx context.Context, c Roster) error
	// Load returns a team by its raw name, or [ErrNotFound]. A roster that
	// another program is writing at this moment (empty or torn, facts:
	// claude-code §15) is read again for a short while before it is an error.
	// Other callers get the same members: nobody may change them.
	Load(ctx context.Context, name string) (Roster, error)
	// Update changes a roster: change gets what is kept now, under the lock,
	// and must neither block nor call the store. When change fails nothing is
	// written and its error is returned. What it returns may be changed.
	Update(ctx context.Context, name string, change func(*Roster) error) (Roster, error)
	// Remove deletes a team with its inboxes. A missing team is no error.
	Remove(ctx context.Context, name string) error
	// List loads all teams that can be read, by name.
	List(ctx context.Context) ([]Roster, error)
}
