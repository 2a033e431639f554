package mailbox

import "context"

// Seals says which messages of an inbox our own runtime wrote. The format has one
// field for text, whoever wrote it, so a model could write what the runtime says;
// a seal stands beside the inbox, made with a key that no model is shown.
// Implementations pass the suite in internal/storetest. All methods may be called
// from any goroutine and any process at once.
type Seals interface {
	// Seal seals a message that is about to be posted. The seal comes first, because a
	// reader may be faster than the poster. about binds it to something that stands in no
	// field of it, like the digest of an approved input; "" to nothing more.
	// When it returns nil the seal survives the kill of any process. A seal of a
	// message that is not posted after all does no harm.
	Seal(ctx context.Context, to Address, m Message, about string) error
	// Sealed reports whether this message (from, timestamp, text) was sealed for
	// this inbox and bound to about.
	Sealed(ctx context.Context, at Address, m Message, about string) (bool, error)
}
