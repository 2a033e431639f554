package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/transcript"
)

func newTeamResume() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "resume NAME [prompt]", Short: "Open a team again: its lead and every teammate",
		Long:              "Continues the lead's session, in its folder, and brings back its teammates with their history, tasks and mail.\nWith -p it answers one prompt, otherwise it is a conversation. It takes the flags of cadre itself.",
		Args:              between(1, math.MaxInt, "the name of a team, and a prompt or none"),
		ValidArgsFunction: complete(ownTeamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			lead, err := leadToResume(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if o.resume != "" || o.cont {
				return usagef("the team says which session is resumed: leave --resume and --continue out")
			}
			o.resume = lead.session
			if err := os.Chdir(lead.folder); err != nil {
				return fmt.Errorf("go to the team's folder: %w", err)
			}
			return runRoot(cmd.Context(), &o, args[1:])
		},
	}
	addFlags(cmd, o.flags())
	// The team says which session is resumed.
	for _, name := range []string{"continue", "resume", "fork-session", "session-id"} {
		_ = cmd.Flags().MarkHidden(name) // they were defined a line above
	}
	return cmd
}

// leadSession is where a team's lead can be resumed.
type leadSession struct{ session, folder string }

func leadToResume(ctx context.Context, name string) (lead leadSession, err error) {
	err = withPlaces(func(places []place) error {
		p, config, err := findTeam(ctx, places, name)
		if err != nil {
			return err
		}
		open, err := p.leadIsOpen(ctx, config)
		switch {
		case err != nil:
			return err
		case p.foreign:
			return &exit{code: exitFailed, err: fmt.Errorf("team %s belongs to another program, in %s", config.Name, p.root)}
		case open:
			return &exit{
				code: exitFailed, err: fmt.Errorf("team %s is at work: a process leads it", config.Name),
				hint: "cadre team watch " + config.Name + " shows it.",
			}
		}
		info, err := p.findSession(ctx, config.LeadSessionID)
		if errors.Is(err, transcript.ErrNotFound) {
			return &exit{
				code: exitFailed, err: fmt.Errorf("find the session of %s of team %s: %w", mailbox.LeadName, config.Name, err),
				hint: fmt.Sprintf("Without it the team cannot be resumed. cadre team log %s shows what it did, cadre team rm %[1]s removes it.", config.Name),
			}
		}
		if err != nil {
			return fmt.Errorf("find the session of %s: %w", mailbox.LeadName, err)
		}
		lead = leadSession{info.Ref.Session, strings.TrimRight(info.Ref.Project, "/")}
		return nil
	})
	return lead, err
}
