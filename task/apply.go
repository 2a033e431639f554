package task

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Apply works out what a change to the task with this id does to the list. It
// returns the outcome and the other tasks that must be written too; list itself
// is not changed. For Status Deleted, the outcome's After has that status and
// the store removes the task.
//
// Rules beyond the observed ones (facts: claude-code §3.3, §3.4), where the
// original has a defect: an edge to a missing task, to itself or that closes a
// cycle is refused.
func Apply(list []Task, id string, c Change) (Outcome, []Task, error) {
	at := slices.IndexFunc(list, func(t Task) bool { return t.ID == id })
	if at < 0 {
		return Outcome{}, nil, fmt.Errorf("task #%s: %w", id, ErrNotFound)
	}
	before := list[at]
	if c.Status != nil && *c.Status == Deleted {
		after := before
		after.Status = Deleted
		return Outcome{before, after, []string{"deleted"}}, without(list, id), nil
	}
	if err := CheckEdges(list, id, c.AddBlocks, c.AddBlockedBy); err != nil {
		return Outcome{}, nil, err
	}
	if c.ClaimFor != "" {
		if err := checkClaim(list, before, c.ClaimFor); err != nil {
			return Outcome{}, nil, err
		}
		c.Owner = &c.ClaimFor
	}
	after, fields := applyFields(before, c)
	others := make(map[string]*Task)
	if addEdges(&after.Blocks, c.AddBlocks) {
		fields = append(fields, "blocks")
	}
	if addEdges(&after.BlockedBy, c.AddBlockedBy) {
		fields = append(fields, "blockedBy")
	}
	for _, other := range c.AddBlocks {
		mirror(list, others, other, func(t *Task) bool { return addEdges(&t.BlockedBy, []string{id}) })
	}
	for _, other := range c.AddBlockedBy {
		mirror(list, others, other, func(t *Task) bool { return addEdges(&t.Blocks, []string{id}) })
	}
	var changed []Task
	for _, t := range list {
		if o, ok := others[t.ID]; ok {
			changed = append(changed, *o)
		}
	}
	return Outcome{before, after, fields}, changed, nil
}

// checkClaim reports why owner may not begin t.
func checkClaim(list []Task, t Task, owner string) error {
	if t.Owner != "" && t.Owner != owner {
		return fmt.Errorf("task #%s belongs to %s: %w", t.ID, t.Owner, ErrOwned)
	}
	if open := Blockers(list, t); t.Status == Pending && len(open) > 0 {
		return fmt.Errorf("task #%s waits for #%s: %w", t.ID, strings.Join(open, ", #"), ErrBlocked)
	}
	return nil
}

func applyFields(t Task, c Change) (Task, []string) {
	var fields []string
	set := func(name string, at *string, to *string) {
		if to != nil && *at != *to {
			*at = *to
			fields = append(fields, name)
		}
	}
	set("subject", &t.Subject, c.Subject)
	set("description", &t.Description, c.Description)
	set("activeForm", &t.ActiveForm, c.ActiveForm)
	set("owner", &t.Owner, c.Owner)
	if c.Metadata.Len() > 0 {
		t.Metadata = t.Metadata.Clone()
		for _, key := range c.Metadata.Keys() {
			if value := c.Metadata.Raw(key); bytes.Equal(value, []byte("null")) {
				t.Metadata.Delete(key)
			} else {
				t.Metadata.Set(key, value)
			}
		}
		fields = append(fields, "metadata")
	}
	if c.Status != nil && t.Status != *c.Status {
		t.Status = *c.Status
		fields = append(fields, "status")
	}
	return t, fields
}

// addEdges appends the ids that are not there yet, to a copy.
func addEdges(to *[]string, ids []string) bool {
	grown := slices.Clone(*to)
	for _, id := range ids {
		if !slices.Contains(grown, id) {
			grown = append(grown, id)
		}
	}
	changed := len(grown) > len(*to)
	*to = grown
	return changed
}

func mirror(list []Task, others map[string]*Task, id string, change func(*Task) bool) {
	t, ok := others[id]
	if !ok {
		i := slices.IndexFunc(list, func(t Task) bool { return t.ID == id })
		other := list[i]
		t = &other
	}
	if change(t) {
		others[id] = t
	}
}

// without returns the tasks that have an edge to id, without that edge.
func without(list []Task, id string) []Task {
	var changed []Task
	is := func(other string) bool { return other == id }
	for _, t := range list {
		if t.ID == id || !slices.ContainsFunc(t.Blocks, is) && !slices.ContainsFunc(t.BlockedBy, is) {
			continue
		}
		t.Blocks = slices.DeleteFunc(slices.Clone(t.Blocks), is)
		t.BlockedBy = slices.DeleteFunc(slices.Clone(t.BlockedBy), is)
		changed = append(changed, t)
	}
	return changed
}
