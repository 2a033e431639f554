package task

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Keys of [Task].Metadata that are ours.
const (
	// CheckKey holds a command that proves that the task is done.
	CheckKey = "check"
	// CheckedKey holds the [Evidence] of the last time that it ran.
	CheckedKey = "checked"
)

// Check is the command that must succeed before the task is completed; "" when
// there is none.
func (t Task) Check() string {
	var command string
	if _, err := t.Metadata.Get(CheckKey, &command); err != nil {
		return ""
	}
	return strings.TrimSpace(command)
}

// Evidence is what came of running a task's check.
type Evidence struct {
	Command  string    `json:"command"`
	Passed   bool      `json:"passed"`
	ExitCode int       `json:"exitCode"`
	Output   string    `json:"output"` // its end
	By       string    `json:"by"`     // the agent in whose folder it ran
	At       time.Time `json:"at"`
}

// MaxEvidence is how many bytes of a check's output are kept.
const MaxEvidence = 4 << 10

// Metadata is the change of a task's metadata that keeps the evidence, with no
// more than the end of the output.
func (e Evidence) Metadata() jsonx.Object {
	e.Output = tail(strings.ToValidUTF8(e.Output, "\ufffd"), MaxEvidence)
	var o jsonx.Object
	o.Set(CheckedKey, e)
	return o
}

// Checked is the evidence that was kept last. ok is false when there is none, or
// when it is of another command than the task's check is now.
func (t Task) Checked() (e Evidence, ok bool) {
	ok, err := t.Metadata.Get(CheckedKey, &e)
	if !ok || err != nil || strings.TrimSpace(e.Command) != t.Check() {
		return Evidence{}, false
	}
	return e, true
}

// IsProved reports whether the task's check has passed as it is now.
func (t Task) IsProved() bool {
	e, ok := t.Checked()
	return ok && e.Passed
}

// IsUnproved reports whether the task is completed although it has a check that
// has not passed: another program, which runs no checks, has written so, or the
// check was changed since.
func (t Task) IsUnproved() bool { return t.Status == Completed && t.Check() != "" && !t.IsProved() }

// tail is the end of text, at most so many bytes of it and whole characters.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
