package transcript

import "strings"

// The tags around what a runtime adds to a message for the model alone.
const (
	reminderBegins = "<system-reminder>"
	reminderEnds   = "</system-reminder>"
)

// WithoutReminders is the text of a message as a person wrote it: without the
// reminders that a runtime has put before or after it, each on lines of its own.
func WithoutReminders(text string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], reminderBegins)
		if i < 0 {
			return strings.TrimSpace(text)
		}
		i += from
		length := strings.Index(text[i:], reminderEnds)
		if length < 0 || strings.TrimSpace(text[strings.LastIndexByte(text[:i], '\n')+1:i]) != "" {
			from = i + len(reminderBegins) // quoted in a line of words
			continue
		}
		text = text[:i] + text[i+length+len(reminderEnds):]
		from = i
	}
}

// askLength is how many characters of a prompt a listing shows.
const askLength = 100

// Ask is the prompt of an entry in one short line, for a listing of sessions; "" when the
// entry has none.
func (e Entry) Ask() string {
	if e.Kind != KindUser || e.Sidechain {
		return ""
	}
	line := []rune(strings.Join(strings.Fields(WithoutReminders(JoinText(e.Message.Content))), " "))
	if len(line) > askLength {
		return string(line[:askLength]) + "…"
	}
	return string(line)
}
