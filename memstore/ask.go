package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/ask"
)

type asks struct {
	mu      sync.Mutex
	pending []ask.Ask
	known   map[string]bool
}

func (a *asks) index(id string) int {
	return slices.IndexFunc(a.pending, func(q ask.Ask) bool { return q.ID == id })
}

func (a *asks) Put(ctx context.Context, question ask.Ask) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.index(question.ID); i >= 0 {
		a.pending[i] = question
		return nil
	}
	if a.known[question.ID] {
		return fmt.Errorf("keep question %s: %w", question.ID, ask.ErrAnswered)
	}
	if a.known == nil {
		a.known = make(map[string]bool)
	}
	a.known[question.ID] = true
	a.pending = append(a.pending, question)
	return nil
}

func (a *asks) Resolve(ctx context.Context, id string, _ ask.Answer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.index(id)
	switch {
	case i >= 0:
		a.pending = slices.Delete(slices.Clone(a.pending), i, i+1)
		return nil
	case a.known[id]:
		return fmt.Errorf("answer question %s: %w", id, ask.ErrAnswered)
	}
	return fmt.Errorf("answer question %s: %w", id, ask.ErrUnknown)
}

func (a *asks) Pending(context.Context) ([]ask.Ask, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.pending), nil
}
