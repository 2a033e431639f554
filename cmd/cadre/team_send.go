package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

func newTeamSend() *cobra.Command {
	return &cobra.Command{
		Use: "send NAME AGENT TEXT", Short: "Write to a member of a team", Args: exactly(3, "a team, one of its members (team-lead for the lead), and a text (- for stdin)"),
		Long:              "Sends a message from you to a member, which gets it between two rounds of its work, or at once when it is\nidle. Your message ranks like the lead's.",
		ValidArgsFunction: complete(teamCandidates, memberCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error {
				return sendMail(cmd.Context(), places, args[0], args[1], args[2])
			})
		},
	}
}

func sendMail(ctx context.Context, places []place, name, agent, text string) error {
	if text == "-" {
		all, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		text = string(all)
	}
	if strings.TrimSpace(text) == "" {
		return usagef("there is nothing to send")
	}
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		return err
	}
	delivery, err := p.Teams().Say(ctx, config.Name, agent, text)
	var unknown *roster.UnknownMemberError
	switch {
	case errors.As(err, &unknown):
		return noMember(unknown)
	case errors.Is(err, team.ErrProtocol):
		return &exit{code: exitFailed, err: err, hint: "Only cadre itself may send that. To end a teammate: cadre team stop."}
	case err != nil:
		return err
	}
	return writeOut([]byte("Sent to " + delivery.To + "." + p.unreadFor(ctx, config, delivery.To) + "\n"))
}

// unreadFor says that nobody reads the mail of a member now, and until when; "" when its
// process is there, or nothing is known of it.
func (p place) unreadFor(ctx context.Context, c roster.Roster, agent string) string {
	member := c.Find(agent)
	if member == nil || p.foreign {
		return ""
	}
	open, err := p.leadIsOpen(ctx, c)
	if err != nil {
		return ""
	}
	state, err := p.memberState(ctx, p.Teams(), c, *member, open)
	if err == nil && (state == stateClosed || state == stateGone) {
		return " No process runs it now: it reads the message when the team is resumed (cadre team resume " + c.Name + ")."
	}
	return ""
}

// noMember says who else is on the roster.
func noMember(unknown *roster.UnknownMemberError) *exit {
	e := usagef("there is no %q in team %s", unknown.Name, unknown.Team)
	e.hint = cmp.Or(didYouMean(unknown.Near), "Its members are "+strings.Join(unknown.Members, ", ")+".")
	return e
}
