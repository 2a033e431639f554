package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/ask"
)

type desk struct {
	watchers watchers
	mu       sync.Mutex
	asks     map[string]ask.Ask
	answers  map[string]leftAnswer
}

// leftAnswer is for the question with this digest alone.
type leftAnswer struct {
	digest string
	answer ask.Answer
}

var errAskID = errors.New("the question's id is empty")

func checkAsk(ctx context.Context, id string) error {
	if id == "" {
		return errAskID
	}
	return context.Cause(ctx)
}

func (d *desk) Lay(ctx context.Context, a ask.Ask) error {
	if err := checkAsk(ctx, a.ID); err != nil {
		return fmt.Errorf("lay question %s on the desk: %w", a.ID, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.asks[a.ID]; ok && old.Digest == a.Digest && old.SessionID == a.SessionID {
		return nil
	}
	if d.asks == nil {
		d.asks, d.answers = make(map[string]ask.Ask), make(map[string]leftAnswer)
	}
	d.asks[a.ID] = a
	return nil
}

func (d *desk) Open(ctx context.Context) ([]ask.Ask, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list open questions: %w", context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var asks []ask.Ask
	for _, a := range d.asks {
		asks = append(asks, a)
	}
	slices.SortFunc(asks, func(a, b ask.Ask) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID))
	})
	return asks, nil
}

func (d *desk) Leave(ctx context.Context, id string, answer ask.Answer) error {
	err := checkAsk(ctx, id)
	if err == nil {
		err = d.leave(id, answer)
	}
	if err != nil {
		return fmt.Errorf("leave an answer to question %s: %w", id, err)
	}
	d.watchers.wake(anyAnswer)
	return nil
}

func (d *desk) leave(id string, answer ask.Answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, ok := d.asks[id]
	if !ok {
		return ask.ErrUnknown
	}
	if left, ok := d.answers[id]; ok && left.digest == a.Digest {
		return ask.ErrAnswered
	}
	d.answers[id] = leftAnswer{a.Digest, answer}
	return nil
}

func (d *desk) Left(ctx context.Context, a ask.Ask) (ask.Answer, bool, error) {
	if err := checkAsk(ctx, a.ID); err != nil {
		return ask.Answer{}, false, fmt.Errorf("read the answer to question %s: %w", a.ID, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	left, ok := d.answers[a.ID]
	if !ok || left.digest != a.Digest {
		return ask.Answer{}, false, nil
	}
	return left.answer, true, nil
}

func (d *desk) Clear(ctx context.Context, id string) error {
	if err := checkAsk(ctx, id); err != nil {
		return fmt.Errorf("clear question %s away: %w", id, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asks, id)
	delete(d.answers, id)
	return nil
}

// anyAnswer is what all watchers of the desk wait for.
const anyAnswer = "answers"

func (d *desk) Watch() (signal <-chan struct{}, stop func()) { return d.watchers.watch(anyAnswer) }
