package team

import (
	"context"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// A recap lists at most this many members and tasks.
const (
	recapMembers = 20
	recapTasks   = 20
)

// Recap is the runtime's reminder for an agent that may have forgotten where it
// is, after a restart or when its history was compacted: its team, who is in it
// and does what, the open tasks, what mail waits. It is at most a screenful. ""
// for an agent without a team.
func (t *Teams) Recap(ctx context.Context, by tool.Caller) (string, error) {
	seat, ok := t.Seat(by)
	if !ok {
		return "", nil
	}
	state, err := t.recap(ctx, seat)
	if err != nil {
		return "", fmt.Errorf("sum up team %q: %w", seat.Team, err)
	}
	return prompt.Reminder(state), nil
}

func (t *Teams) recap(ctx context.Context, seat *Seat) (string, error) {
	config, err := seat.config(ctx)
	if err != nil {
		return "", err
	}
	list, err := t.tasks.List(ctx, seat.Team)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if seat.Lead {
		fmt.Fprintf(&b, "You lead the team %q. This is how it stands.\n\nTeammates:\n", protocol.EscapeText(config.Name))
	} else {
		fmt.Fprintf(&b, "You are %q, a member of the team %q, which %q leads. This is how it stands.\n\nTeammates:\n",
			protocol.EscapeText(seat.Name), protocol.EscapeText(config.Name), mailbox.LeadName)
	}
	if err := t.recapRoster(ctx, &b, seat, &config, list); err != nil {
		return "", err
	}
	recapList(&b, list)
	unread, err := t.mail.Unread(ctx, seat.Address())
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nUnread mail for you: %d. It comes by itself.", len(unread))
	return b.String(), nil
}

// recapRoster lists the other teammates, and what each does.
func (t *Teams) recapRoster(ctx context.Context, b *strings.Builder, seat *Seat, c *roster.Roster, list []task.Task) error {
	seen, err := t.observe(ctx, seat.Team, list)
	if err != nil {
		return err
	}
	shown, more := 0, 0
	for _, m := range c.Teammates() {
		if m.Name == seat.Name {
			continue
		}
		if shown == recapMembers {
			more++
			continue
		}
		shown++
		state := "not running"
		runs, err := t.runs(ctx, seat.Team, m)
		if err != nil {
			return err
		}
		if runs || !seat.Lead { // a teammate knows only of panes whether they run
			agent, _, err := seen.agent(ctx, m.Name)
			if err != nil {
				return err
			}
			state = string(agent.State)
		}
		unread, err := t.mail.Unread(ctx, mailbox.Address{Team: seat.Team, Agent: m.Name})
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "- %s (%s): %s", protocol.EscapeText(m.Name), protocol.EscapeText(m.AgentType), state)
		if len(unread) > 0 {
			fmt.Fprintf(b, ", %d unread", len(unread))
		}
		b.WriteString("\n")
	}
	switch {
	case more > 0:
		fmt.Fprintf(b, "- and %d more\n", more)
	case shown == 0:
		b.WriteString("- none\n")
	}
	return nil
}

// recapList lists the open tasks.
func recapList(b *strings.Builder, list []task.Task) {
	var open []task.Task
	done := 0
	var unproved []string
	for _, t := range list {
		switch {
		case t.Internal():
		case t.Status == task.Completed:
			done++
			if t.IsUnproved() {
				unproved = append(unproved, "#"+t.ID)
			}
		default:
			open = append(open, t)
		}
	}
	fmt.Fprintf(b, "\nTasks: %d open, %d completed.\n", len(open), done)
	if n := len(unproved); n > 0 {
		fmt.Fprintf(b, "Of these %d are not proved, their checks have not passed: %s\n", n, strings.Join(unproved[:min(n, recapTasks)], ", "))
	}
	for _, t := range open[:min(len(open), recapTasks)] {
		owner := "nobody's"
		if t.Owner != "" {
			owner = t.Owner + "'s"
		}
		fmt.Fprintf(b, "- #%s [%s, %s] %s\n", t.ID, t.Status, protocol.EscapeText(owner), protocol.EscapeText(oneline.Of(t.Subject)))
	}
	if more := len(open) - recapTasks; more > 0 {
		fmt.Fprintf(b, "- and %d more: TaskList shows them\n", more)
	}
}
