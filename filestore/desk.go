package filestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/filewatch"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// desk implements [ask.Desk]: a file per open question, and one for the answer that was
// left to it. All changes are made under one lock. Both files carry a seal, so that what
// a person reads is what our runtime asked.
type desk struct {
	*files
	keys    *keyring
	watcher *filewatch.Watcher
}

func (d *desk) Lay(ctx context.Context, a ask.Ask) (err error) {
	defer wrap(&err, "lay question %s on the desk", a.ID)
	if !validID(a.ID) {
		return errAskID
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	key, err := d.keys.getOrCreate(ctx)
	if err != nil {
		return err
	}
	data, err := sealQuestion(key, a)
	if err != nil {
		return err
	}
	if err := d.makeBelow(string(d.root), d.root.AsksDir()); err != nil {
		return err
	}
	return d.locked(ctx, func(lock *dirlock.Lock) error {
		old, err := d.question(key, d.root.OpenAsk(a.ID))
		if err == nil && old.Digest == a.Digest && old.SessionID == a.SessionID {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnsealed) {
			return err
		}
		return d.write(d.root.OpenAsk(a.ID), data, lock)
	})
}

func (d *desk) Open(ctx context.Context) (asks []ask.Ask, err error) {
	defer wrap(&err, "list open questions")
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	entries, err := d.readDir(d.root.AsksDir())
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	key, _, err := d.keys.read() // without a key, no question is ours
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !isShared(e.Name()) || strings.HasSuffix(e.Name(), layout.AnswerSuffix) {
			continue
		}
		a, err := d.question(key, filepath.Join(d.root.AsksDir(), e.Name()))
		switch {
		case err == nil:
			asks = append(asks, a)
		case !errors.Is(err, fs.ErrNotExist): // else it was answered meanwhile
			d.warn(fmt.Errorf("left out of the open questions: %w", err))
		}
	}
	slices.SortStableFunc(asks, func(a, b ask.Ask) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID))
	})
	return asks, nil
}

func (d *desk) Leave(ctx context.Context, id string, answer ask.Answer) (err error) {
	defer wrap(&err, "leave an answer to question %s", id)
	if !validID(id) {
		return fmt.Errorf("%w: %w", ask.ErrUnknown, errAskID)
	}
	key, err := d.keyFor(ctx, id)
	if err != nil {
		return err
	}
	err = d.locked(ctx, func(lock *dirlock.Lock) error {
		a, err := d.question(key, d.root.OpenAsk(id))
		if err != nil {
			return err
		}
		_, err = d.answer(key, a)
		if err == nil {
			return ask.ErrAnswered
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnsealed) {
			return err
		}
		data, err := sealAnswer(key, a, answer)
		if err != nil {
			return err
		}
		return d.write(d.root.AskAnswer(id), data, lock)
	})
	return asUnknown(err)
}

// keyFor returns the key if the question exists: only then is there a folder to lock.
func (d *desk) keyFor(ctx context.Context, id string) (secret, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	key, _, err := d.keys.read()
	if err == nil {
		_, err = d.question(key, d.root.OpenAsk(id))
	}
	return key, asUnknown(err)
}

// asUnknown makes [ask.ErrUnknown] of the error for a question that is missing, or that
// our runtime did not write.
func asUnknown(err error) error {
	switch {
	case errors.Is(err, errUnsealed):
		return fmt.Errorf("%w: %w", ask.ErrUnknown, err)
	case errors.Is(err, fs.ErrNotExist):
		return ask.ErrUnknown
	}
	return err
}

func (d *desk) Left(ctx context.Context, a ask.Ask) (answer ask.Answer, ok bool, err error) {
	defer wrap(&err, "read the answer to question %s", a.ID)
	if !validID(a.ID) {
		return answer, false, errAskID
	}
	if ctx.Err() != nil {
		return answer, false, context.Cause(ctx)
	}
	key, _, err := d.keys.read()
	if err == nil {
		answer, err = d.answer(key, a)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return answer, false, nil
	case errors.Is(err, errUnsealed):
		d.warn(fmt.Errorf("no answer to question %s: %w", a.ID, err))
		return answer, false, nil
	}
	return answer, err == nil, err
}

func (d *desk) Clear(ctx context.Context, id string) (err error) {
	defer wrap(&err, "clear question %s away", id)
	if !validID(id) {
		return errAskID
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	question, err := d.exists(d.root.OpenAsk(id))
	if err != nil {
		return err
	}
	answer, err := d.exists(d.root.AskAnswer(id))
	if err != nil || !question && !answer {
		return err
	}
	return d.locked(ctx, func(*dirlock.Lock) error {
		// The question first, so that nobody answers it any more.
		return errors.Join(d.remove(d.root.OpenAsk(id)), d.remove(d.root.AskAnswer(id)))
	})
}

func (d *desk) Watch() (signal <-chan struct{}, stop func()) {
	return d.watcher.Folder(d.root.AsksDir())
}

func (d *desk) write(path string, data []byte, lock *dirlock.Lock) error {
	version, err := d.writePrivate(path, data, lock)
	if err == nil {
		d.watcher.Wrote(path, version)
	}
	return err
}

func (d *desk) remove(path string) error {
	err := d.removePrivate(path)
	if err == nil {
		d.watcher.Wrote(path, fsx.Key{})
	}
	return err
}

// locked calls change while it holds the lock of the folder of questions.
func (d *desk) locked(ctx context.Context, change func(*dirlock.Lock) error) error {
	return d.lockedFolder(ctx, d.root.AsksDir(), d.sweep, change)
}

// sweep deletes what killed processes have left: temporary files, and answers whose
// question was removed.
func (d *desk) sweep() error {
	folder := d.root.AsksDir()
	entries, err := d.fsys.ReadDir(folder)
	if err != nil {
		return err
	}
	questions := make(map[string]bool, len(entries))
	for _, e := range entries {
		questions[e.Name()] = true
	}
	errs := []error{fsx.SweepTemps(d.fsys, folder, "")}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), layout.AnswerSuffix)
		if ok && !questions[id+recordSuffix] {
			errs = append(errs, d.fsys.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sealedFile is the file of a question or an answer.
type sealedFile struct {
	Content json.RawMessage `json:"content"` // byte for byte what was sealed
	Seal    string          `json:"seal"`
}

// maxAsk is the largest question or answer that we read.
const maxAsk = 64 << 20

var (
	// errUnsealed says that our runtime did not write a file, or not with this key, or
	// not for this question.
	errUnsealed = errors.New("it is torn, or has no seal of ours for this question")
	errAskID    = errors.New("not the id of a question, which has letters, digits, dashes and underscores only")
)

// unsealedError says which file has no seal.
type unsealedError struct{ path string }

func (e *unsealedError) Error() string { return "read " + e.path + ": " + errUnsealed.Error() }

func (e *unsealedError) Unwrap() error { return errUnsealed }

func sealQuestion(key secret, a ask.Ask) ([]byte, error) {
	content, err := jsonx.Marshal(a)
	if err != nil {
		return nil, err
	}
	return jsonx.Marshal(sealedFile{content, key.mac(questionParts(content)...)})
}

func sealAnswer(key secret, a ask.Ask, answer ask.Answer) ([]byte, error) {
	content, err := jsonx.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return jsonx.Marshal(sealedFile{content, key.mac(answerParts(a, content)...)})
}

func questionParts(content []byte) []string { return []string{"question", string(content)} }

func answerParts(a ask.Ask, content []byte) []string {
	return []string{"answer", a.ID, a.Digest, string(content)}
}

// question reads an open question. Errors: [fs.ErrNotExist], errUnsealed.
func (d *desk) question(key secret, path string) (ask.Ask, error) {
	var a ask.Ask
	err := d.readSealed(path, &a, func(f sealedFile) bool {
		return key.verifies(f.Seal, questionParts(f.Content)...)
	})
	if err == nil && d.root.OpenAsk(a.ID) != path {
		err = &unsealedError{path} // it is a copy of another question
	}
	return a, err
}

// answer reads the answer that was left for this very question. Errors as of
// question.
func (d *desk) answer(key secret, a ask.Ask) (ask.Answer, error) {
	var answer ask.Answer
	err := d.readSealed(d.root.AskAnswer(a.ID), &answer, func(f sealedFile) bool {
		return key.verifies(f.Seal, answerParts(a, f.Content)...)
	})
	return answer, err
}

// readSealed reads a file on the desk into content, if it has the right seal.
func (d *desk) readSealed(path string, content any, isSealed func(sealedFile) bool) error {
	data, _, err := fsx.ReadFile(d.fsys, path, maxAsk)
	if errors.Is(err, fsx.ErrNotRegular) || errors.Is(err, fsx.ErrTooLarge) || errors.Is(err, fsx.ErrChanging) {
		return &unsealedError{path}
	}
	if err != nil {
		return err
	}
	var file sealedFile
	if json.Unmarshal(data, &file) != nil || !isSealed(file) || json.Unmarshal(file.Content, content) != nil {
		return &unsealedError{path}
	}
	return nil
}
