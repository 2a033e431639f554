package protocol

import (
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/mailbox"
)

// Wrap is a message as its recipient's model gets it (facts: claude-code §4.5).
// The original escapes nothing; here the text can neither end the wrapper nor
// open another, nor speak as the runtime, and is the same otherwise.
func Wrap(m mailbox.Message) string {
	var b strings.Builder
	b.WriteString(`<teammate-message teammate_id="` + attribute(m.From) + `"`)
	if m.Color != "" {
		b.WriteString(` color="` + attribute(m.Color) + `"`)
	}
	if m.Summary != "" {
		b.WriteString(` summary="` + attribute(m.Summary) + `"`)
	}
	b.WriteString(">\n" + EscapeText(m.Text) + "\n</teammate-message>")
	return b.String()
}

// MaxShown is the most bytes of one message that a model is shown. Our own agents
// cannot send more; what another program wrote must not fill the whole context of
// whoever reads it.
const MaxShown = 128 << 10

// Shortened cuts from the middle of a text what is too much.
func Shortened(text string) string {
	const head, tail = MaxShown * 3 / 4, MaxShown / 4
	if len(text) <= MaxShown {
		return text
	}
	return strings.ToValidUTF8(text[:head], "") +
		fmt.Sprintf("\n[… %d bytes are left out here: ask for what you need of them in a file …]\n", len(text)-head-tail) +
		strings.ToValidUTF8(text[len(text)-tail:], "")
}

// Unverified marks the name of a sender whom nothing vouches for, which may be of
// any length. An agent's own name cannot be the same, since it would be marked as
// well; it is never cut.
func Unverified(name string) string { return cut(name, maxAttribute/2) + " (unverified)" }

// WrapSystem is a note of the runtime in the same form.
func WrapSystem(c Control) string {
	return Wrap(mailbox.Message{From: mailbox.SystemName, Text: Shortened(Encode(c))})
}

// runtimeTag matches the start of a tag with which the runtime marks its own
// words, opening or closing, however it is spaced.
var runtimeTag = lazy.Regexp(`(?i)<([\s\pZ\p{Cf}]*/?[\s\pZ\p{Cf}]*(?:teammate-message|system-reminder|task-notification))`)

// EscapeText is text that cannot be taken for the runtime's own words: no tag of the
// runtime can begin or end in it.
func EscapeText(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return runtimeTag().ReplaceAllString(text, "&lt;$1")
}

var attributeEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", " ", "\n", " ", "\t", " ",
)

// maxAttribute is the most bytes of a name or a summary that a model is shown:
// another program may have written anything there.
const maxAttribute = 1 << 10

func attribute(value string) string { return attributeEscapes.Replace(cut(value, maxAttribute)) }

// cut is a text without what is beyond so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
