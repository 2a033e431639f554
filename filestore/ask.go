package filestore

import (
	"context"
	"encoding/json"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/transcript"
)

// asks implements [ask.Store]: lines in a side file of the session, replayed at the
// first call.
type asks struct {
	*files
	ref   transcript.Ref
	file  *journal.File      // nil until the first call
	order []string           // ids, oldest first
	open  map[string]ask.Ask // without an answer
	known map[string]bool    // every id ever put
}

// askLine is one line: an ask, or the answer to one.
type askLine struct {
	Ask    *ask.Ask    `json:"ask,omitempty"`
	ID     string      `json:"id,omitempty"`
	Answer *ask.Answer `json:"answer,omitempty"`
}

func (l askLine) id() string {
	if l.Ask != nil {
		return l.Ask.ID
	}
	return l.ID
}

func (a *asks) Put(ctx context.Context, question ask.Ask) (err error) {
	defer wrap(&err, "keep question %s of session %s", question.ID, a.ref)
	return a.add(ctx, askLine{Ask: &question})
}

func (a *asks) Resolve(ctx context.Context, id string, answer ask.Answer) (err error) {
	defer wrap(&err, "answer question %s of session %s", id, a.ref)
	return a.add(ctx, askLine{ID: id, Answer: &answer})
}

func (a *asks) Pending(ctx context.Context) (pending []ask.Ask, err error) {
	defer wrap(&err, "read questions of session %s", a.ref)
	if err := a.load(ctx); err != nil {
		return nil, err
	}
	for _, id := range a.order {
		if question, ok := a.open[id]; ok {
			pending = append(pending, question)
		}
	}
	return pending, nil
}

// add appends one line, and applies it.
func (a *asks) add(ctx context.Context, line askLine) error {
	if err := a.load(ctx); err != nil {
		return err
	}
	if err := a.check(line); err != nil {
		return err
	}
	data, err := jsonx.Marshal(line)
	if err == nil {
		err = a.file.Append(append(data, '\n'))
	}
	// Questions are rare, and nobody closes this store.
	if closeErr := a.file.Close(); err == nil && closeErr != nil {
		a.warn(closeErr) // the line is in the file
	}
	if err == nil {
		a.apply(line)
	}
	return err
}

// check reports why a line may not be added.
func (a *asks) check(line askLine) error {
	id := line.id()
	_, open := a.open[id]
	switch {
	case open:
		return nil
	case a.known[id]:
		return ask.ErrAnswered
	case line.Answer != nil:
		return ask.ErrUnknown
	}
	return nil
}

func (a *asks) apply(line askLine) {
	id := line.id()
	if line.Ask == nil {
		delete(a.open, id)
		return
	}
	if !a.known[id] {
		a.order = append(a.order, id)
	}
	a.known[id] = true
	a.open[id] = *line.Ask
}

func (a *asks) load(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.file != nil {
		return nil
	}
	if err := checkRef(a.ref); err != nil {
		return err
	}
	path := a.side(a.ref, "asks")
	a.open, a.known, a.order = make(map[string]ask.Ask), make(map[string]bool), nil
	err := a.scanPrivate(path, func(line []byte) bool {
		var l askLine
		if json.Unmarshal(line, &l) != nil {
			return false
		}
		if a.check(l) == nil {
			a.apply(l)
		}
		return true
	})
	if err == nil {
		a.file = a.journal(path)
	}
	return err
}
