package filestore

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
)

// taskKeys is the order of a task file (facts: claude-code §3.1).
var taskKeys = []string{"id", "subject", "description", "activeForm", "owner", "status", "blocks", "blockedBy", "metadata"}

// unreadable is the status that a damaged task file gets in memory: it is not
// listed and never written, but what waits for it goes on waiting.
const unreadable task.Status = "unreadable"

// errNoTask says that a file lacks what makes a task (facts: claude-code §3.1).
var errNoTask = errors.New("the file is no task")

// taskFile is one version of a task file. It is not changed once made.
type taskFile struct {
	id     string
	number int // of the id, for ordering
	key    fsx.Key
	task   task.Task // without an ID when err is errNoTask
	doc    jsonx.Object
	err    error // errNoTask, or why it cannot be read
}

func unreadableTask(id string, err error) *taskFile {
	return &taskFile{id: id, number: task.Number(id), task: task.Task{ID: id, Status: unreadable}, err: err}
}

// mayHeal reports whether the file may become readable without looking changed, as
// one does that others were kept from reading.
func (f *taskFile) mayHeal() bool {
	var torn *TornError
	return f.task.Status == unreadable && !errors.As(f.err, &torn)
}

func decodeTask(id string, data []byte) (*taskFile, error) {
	var doc jsonx.Object
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	t := task.Task{ID: id, Extra: extraOf(&doc, taskKeys)}
	required := []struct {
		key string
		to  any
	}{
		{"subject", &t.Subject}, {"description", &t.Description}, {"status", &t.Status},
		{"blocks", &t.Blocks}, {"blockedBy", &t.BlockedBy},
	}
	for _, field := range required {
		if ok, err := doc.Get(field.key, field.to); !ok || err != nil {
			return &taskFile{id: id, number: task.Number(id), doc: doc, err: errNoTask}, nil
		}
	}
	// Whoever holds the task may append to the edges, not into our copy.
	t.Blocks, t.BlockedBy = slices.Clip(t.Blocks), slices.Clip(t.BlockedBy)
	take(&doc, &t.Extra, "activeForm", &t.ActiveForm)
	take(&doc, &t.Extra, "owner", &t.Owner)
	take(&doc, &t.Extra, "metadata", &t.Metadata)
	return &taskFile{id: id, number: task.Number(id), task: t, doc: doc}, nil
}

// encodeTask writes t over the file's old content (empty for a new file): known
// keys in their order, then those of others, then known ones that are new.
func encodeTask(old jsonx.Object, t task.Task) jsonx.Object {
	var doc jsonx.Object
	for _, key := range append(slices.Clone(taskKeys), old.Keys()...) {
		if old.Has(key) && !doc.Has(key) {
			doc.Set(key, old.Raw(key))
		}
	}
	amend(&doc, "id", t.ID, true)
	amend(&doc, "subject", t.Subject, true)
	amend(&doc, "description", t.Description, true)
	amend(&doc, "activeForm", t.ActiveForm, false)
	amend(&doc, "owner", t.Owner, false)
	amend(&doc, "status", t.Status, true)
	amend(&doc, "blocks", list(t.Blocks), true)
	amend(&doc, "blockedBy", list(t.BlockedBy), true)
	amend(&doc, "metadata", t.Metadata, false)
	amendExtra(&doc, taskKeys, t.Extra)
	return doc
}

// list spells no elements as [], not null.
func list(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	return ids
}
