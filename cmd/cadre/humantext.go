package main

import (
	"html"
	"strings"

	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

// wrapped matches what a runtime gives to a model in a tag of its own: mail
// ([protocol.Wrap]) and the ends of jobs.
var wrapped = lazy.Regexp(`(?s)<teammate-message teammate_id="([^"]*)"[^>]*?(?: summary="([^"]*)")?>\n?(.*?)\n?</teammate-message>` +
	`|<task-notification>.*?<summary>(.*?)</summary>.*?</task-notification>(?:\nFull transcript available at: [^\n]*)?`)

// humanText is a text from a user's message as people read it, in parts: reminders for
// the model are left out, mail and the ends of jobs are lines with a mark, and the rest
// is what somebody wrote.
func humanText(text, reader string) []string {
	text = transcript.WithoutReminders(text)
	var parts []string
	add := func(mark, words string) {
		if words = strings.TrimSpace(words); words != "" {
			parts = append(parts, mark+tui.Clean(words))
		}
	}
	done := 0
	for _, at := range wrapped().FindAllStringSubmatchIndex(text, -1) {
		add("> ", text[done:at[0]])
		done = at[1]
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return html.UnescapeString(text[at[2*n]:at[2*n+1]])
		}
		if summary := group(4); summary != "" {
			add("◦ ", summary)
			continue
		}
		add("✉ ", mailText(mailbox.Message{From: group(1), Summary: group(2), Text: group(3)}, reader))
	}
	add("> ", text[done:])
	return parts
}

// mailText is a message in whole, or what it does when it is one of the protocol.
func mailText(m mailbox.Message, reader string) string {
	if c, ok := protocol.Parse(m.Text); ok {
		return protocol.Describe(reader, m, c)
	}
	return m.From + ": " + m.Text
}
