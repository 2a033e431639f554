package team

import (
	"strings"

	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/mailbox"
)

// Names under which the runtime itself speaks to a model.
const (
	systemName   = "system"
	taskListName = "task-list"
)

// Wrap is a message as its recipient's model gets it (facts: claude-code §4.5).
// The original escapes nothing; here the text can neither end the wrapper nor
// open another, nor speak as the runtime, and is the same otherwise.
func Wrap(m mailbox.Message) string {
	var b strings.Builder
	b.WriteString(`<teammate-message teammate_id="` + escapeAttribute(m.From) + `"`)
	if m.Color != "" {
		b.WriteString(` color="` + escapeAttribute(m.Color) + `"`)
	}
	if m.Summary != "" {
		b.WriteString(` summary="` + escapeAttribute(m.Summary) + `"`)
	}
	b.WriteString(">\n" + escapeText(m.Text) + "\n</teammate-message>")
	return b.String()
}

// unverified marks the name of a sender whom nothing vouches for. An agent's own
// name cannot be the same, since it would be marked as well.
func unverified(name string) string { return name + " (unverified)" }

// wrapSystem is a note of the runtime in the same form.
func wrapSystem(c Control) string {
	return Wrap(mailbox.Message{From: systemName, Text: encode(c)})
}

// runtimeTag matches the start of a tag with which the runtime marks its own
// words, opening or closing, however it is spaced.
var runtimeTag = lazy.Regexp(`(?i)<(\s*/?\s*(?:teammate-message|system-reminder|task-notification))`)

func escapeText(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return runtimeTag().ReplaceAllString(text, "&lt;$1")
}

var attributeEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", " ", "\n", " ", "\t", " ",
)

func escapeAttribute(value string) string { return attributeEscapes.Replace(value) }
