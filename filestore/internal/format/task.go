package format

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
)

// taskFields are those of a task (facts: claude-code §3.1).
func taskFields(t *task.Task) fields {
	return fields{
		{"id", &t.ID, true},
		{"subject", &t.Subject, true},
		{"description", &t.Description, true},
		{"activeForm", &t.ActiveForm, false},
		{"owner", &t.Owner, false},
		{"status", &t.Status, true},
		{"blocks", &t.Blocks, true},
		{"blockedBy", &t.BlockedBy, true},
		{"metadata", &t.Metadata, false},
	}
}

var taskKeys = taskFields(new(task.Task)).keys()

// requiredOfTask are the fields without which a file is no task (facts: claude-code §3.1).
var requiredOfTask = []string{"subject", "description", "status", "blocks", "blockedBy"}

// ErrNoTask says that a file lacks what makes a task.
var ErrNoTask = errors.New("the file is no task")

// DecodeTask reads the file of a task, which has its id from the name of the file. With
// [ErrNoTask] only doc is set, to what the file says.
func DecodeTask(id string, data []byte) (t task.Task, doc jsonx.Object, err error) {
	if err := json.Unmarshal(data, &doc); err != nil {
		return t, doc, err
	}
	t.Extra = taskFields(&t).decode(&doc, taskKeys)
	t.ID = id
	t.Extra.Delete("id")
	for _, key := range requiredOfTask {
		if !doc.Has(key) || t.Extra.Has(key) {
			return task.Task{}, doc, ErrNoTask
		}
	}
	// Whoever holds the task may append to the edges, not into our copy.
	t.Blocks, t.BlockedBy = slices.Clip(t.Blocks), slices.Clip(t.BlockedBy)
	return t, doc, nil
}

// EncodeTask writes t over the file's old content (empty for a new file): known fields in
// their order, then those of others, then known ones that are new.
func EncodeTask(old jsonx.Object, t task.Task) jsonx.Object {
	var doc jsonx.Object
	for _, key := range append(slices.Clone(taskKeys), old.Keys()...) {
		if old.Has(key) && !doc.Has(key) {
			doc.Set(key, old.Raw(key))
		}
	}
	t.Blocks, t.BlockedBy = orEmpty(t.Blocks), orEmpty(t.BlockedBy)
	taskFields(&t).encode(&doc, taskKeys, t.Extra)
	return doc
}
