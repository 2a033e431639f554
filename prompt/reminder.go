package prompt

import "strings"

const (
	reminderStart = "<system-reminder>"
	reminderEnd   = "</system-reminder>"
)

// Reminder puts text into the tag that marks what the runtime itself says to a
// model, among the words of people and agents.
func Reminder(text string) string { return reminderStart + "\n" + text + "\n" + reminderEnd }

// Unremind returns the text of a [Reminder]; any other text stays as it is.
func Unremind(text string) string {
	inner, begins := strings.CutPrefix(text, reminderStart+"\n")
	inner, ends := strings.CutSuffix(inner, "\n"+reminderEnd)
	if !begins || !ends {
		return text
	}
	return inner
}

// IsReminder reports whether text begins as a [Reminder] does: more may follow it.
func IsReminder(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), reminderStart) }
