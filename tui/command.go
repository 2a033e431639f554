package tui

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/permission"
)

// commandWord is what makes an entry a command: a slash and one word. Paths
// have more slashes.
var commandWord = lazy.Regexp(`^/[a-z]+(\s|$)`)

func isCommand(text string) bool { return commandWord().MatchString(text) }

// isWholeCommand reports whether a line is one of the commands below and nothing else.
func isWholeCommand(line string) bool {
	words := strings.Fields(line)
	if !isCommand(line) {
		return false
	}
	switch words[0] {
	case "/help", "/cost", "/quit", "/exit":
		return len(words) == 1
	case "/mode":
		return len(words) <= 2
	}
	return false
}

// knownCommand reports whether a line begins with one of the commands that are complete
// without anything behind them.
func knownCommand(line string) bool { return isWholeCommand(strings.Fields(line)[0]) }

const help = `/help         show this list
/mode [MODE]  show or change the permission mode: default, acceptEdits, plan, dontAsk, delegate
/cost         show what each agent has used so far
/quit         leave, like Ctrl+D
End a line with \ to continue it on the next one. What you enter while an agent works reaches it between two rounds.
Ctrl+C interrupts the turn. A second one leaves and shuts the team down in order; a third one ends everything at once.`

func (c *conversation) command(ctx context.Context, words []string) {
	switch words[0] {
	case "/help":
		c.screen.line(help)
	case "/quit", "/exit":
		c.leave(ctx, nil)
	case "/cost":
		if c.Cost != nil {
			c.screen.line(Clean(c.Cost()))
		}
	case "/mode":
		c.setMode(ctx, words[1:])
	default:
		c.screen.line("There is no command " + Clean(words[0]) + ". /help lists the commands. To send this to the agent, put a space before it.")
	}
}

// setMode changes the permission mode. Skipping all questions is for a flag at
// the start, where it cannot be entered by mistake.
func (c *conversation) setMode(ctx context.Context, words []string) {
	if len(words) == 0 {
		c.screen.line("mode " + string(c.Session.State().Mode))
		return
	}
	mode, err := permission.ParseMode(words[0])
	if err == nil && mode != permission.Bypass {
		if err = c.Session.SetMode(ctx, mode); err == nil {
			c.screen.line("mode " + string(mode))
			return
		}
	}
	text := "bypassPermissions can only be chosen at the start: cadre --dangerously-skip-permissions"
	if err != nil {
		text = err.Error()
	}
	c.lines.noticed(event.Agent{}, event.Noticed{Level: "error", Text: text})
}
