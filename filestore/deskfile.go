package filestore

import (
	"encoding/json"
	"errors"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
)

// sealedFile is a file on the desk.
type sealedFile struct {
	Content json.RawMessage `json:"content"` // an ask or an answer, byte for byte what the seal is about
	Seal    string          `json:"seal"`
}

// maxAsk is the largest file on the desk that we read.
const maxAsk = 64 << 20

var (
	// errUnsealed says that a file on the desk was not written by us, not with
	// this key, or not for this.
	errUnsealed = errors.New("it is torn, or has no seal of ours for this question")
	errAskID    = errors.New("no id of a question: letters, digits, dash and underscore make one")
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

// question reads the file of an open question. Errors: [fs.ErrNotExist],
// errUnsealed.
func (d *desk) question(key secret, path string) (ask.Ask, error) {
	var a ask.Ask
	err := d.readSealed(path, &a, func(f sealedFile) bool {
		return key.vouches(f.Seal, questionParts(f.Content)...)
	})
	if err == nil && d.root.OpenAsk(a.ID) != path {
		err = &unsealedError{path} // a copy of another one
	}
	return a, err
}

// answer reads the answer that was left for this very question. Errors as of
// question.
func (d *desk) answer(key secret, a ask.Ask) (ask.Answer, error) {
	var answer ask.Answer
	err := d.readSealed(d.root.AskAnswer(a.ID), &answer, func(f sealedFile) bool {
		return key.vouches(f.Seal, answerParts(a, f.Content)...)
	})
	return answer, err
}

// readSealed reads a file on the desk into content, if vouched says that it is
// ours.
func (s *Store) readSealed(path string, content any, vouched func(sealedFile) bool) error {
	data, _, err := fsx.ReadFile(s.fsys, path, maxAsk)
	if errors.Is(err, fsx.ErrNotRegular) || errors.Is(err, fsx.ErrTooLarge) || errors.Is(err, fsx.ErrChanging) {
		return &unsealedError{path}
	}
	if err != nil {
		return err
	}
	var file sealedFile
	if json.Unmarshal(data, &file) != nil || !vouched(file) || json.Unmarshal(file.Content, content) != nil {
		return &unsealedError{path}
	}
	return nil
}
