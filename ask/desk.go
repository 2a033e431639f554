package ask

import "context"

// Desk is where other processes of the same user find open questions, and leave answers
// to them: `cadre asks`, `cadre answer`. It only points to the [Store] of a session, which
// alone says what was asked and answered.
// Implementations pass the suite in internal/storetest. All methods may be called
// from any goroutine and any process at once.
type Desk interface {
	// Lay makes an open question visible. Another question of another session, or about
	// another input, replaces it; to lay the same one again changes nothing. An answer
	// that was left stays.
	Lay(ctx context.Context, a Ask) error
	// Open lists the questions on the desk, oldest first. Those of a process that was
	// killed stay there until their session is opened again.
	Open(ctx context.Context) ([]Ask, error)
	// Leave leaves an answer, bound to the question's digest and sealed with our
	// key: [ErrUnknown] when there is no such question, [ErrAnswered] when it has an
	// answer already.
	Leave(ctx context.Context, id string, answer Answer) error
	// Left is the answer that was left for this very question, if any. What was
	// not sealed with our key, or for other input, is no answer.
	Left(ctx context.Context, a Ask) (answer Answer, ok bool, err error)
	// Clear removes a question that is not open any more, and its answer; a missing one is
	// no error.
	Clear(ctx context.Context, id string) error
	// Watch returns a channel of capacity one that is signalled when an answer
	// may have been left, at the latest after the store's poll interval. stop
	// ends the watch; the channel is never closed.
	Watch() (signal <-chan struct{}, stop func())
}
