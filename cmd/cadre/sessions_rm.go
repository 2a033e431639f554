package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

func newSessionsRm() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm ID", Short: "Remove a conversation with everything that belongs to it", Args: exactly(1, "the id of a session, or the beginning of it"),
		Long:              "Removes a conversation with those of its sub-agents. That of a lead goes with its teams and the sessions of its\nteammates; while one of them runs, nothing is removed.",
		ValidArgsFunction: complete(ownSessionCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return removeSession(cmd.Context(), places, args[0], yes) })
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func removeSession(ctx context.Context, places []place, id string, yes bool) error {
	p, info, err := findSession(ctx, places, id)
	if err != nil {
		return err
	}
	doomed := removal{lead: info}
	if !p.foreign {
		if doomed, err = p.removalOf(ctx, info); err != nil {
			return err
		}
		if err := p.checkUnused(ctx, doomed); err != nil {
			return err
		}
	}
	if err := p.mayRemove(doomed.String(), yes); err != nil {
		return err
	}
	return p.remove(ctx, doomed)
}

// removal is a session that is to be removed, with what nobody could use without it.
type removal struct {
	lead  transcript.Info
	teams []roster.Roster   // that it leads
	mates []transcript.Info // sessions of teammates in the teams that it leads or has led
}

// String names all of it.
func (r removal) String() string {
	text := "session " + r.lead.Ref.Session
	var parts []string
	for _, t := range r.teams {
		parts = append(parts, "its team "+t.Name)
	}
	for _, m := range r.mates {
		parts = append(parts, "the session of its teammate "+m.Agent)
	}
	if len(parts) > 0 {
		text += " with " + strings.Join(parts, ", ")
	}
	return text
}

// removalOf finds out what goes with a session.
func (p place) removalOf(ctx context.Context, info transcript.Info) (removal, error) {
	r := removal{lead: info}
	all, err := p.Rosters().List(ctx)
	if err != nil {
		return r, err
	}
	ours := func(c roster.Roster) bool { return c.LeadSessionID == info.Ref.Session }
	for _, c := range all {
		if ours(c) {
			r.teams = append(r.teams, c)
		}
	}
	err = withFinished(ctx, []place{p}, func(_ place, c roster.Roster) error {
		all = append(all, c)
		return nil
	})
	if err != nil || !slices.ContainsFunc(all, ours) {
		return r, err
	}
	infos, err := p.Transcripts().List(ctx, "")
	if err != nil {
		return r, err
	}
	for _, mate := range infos {
		team, err := p.teamOf(ctx, mate, all)
		if err != nil {
			return r, err
		}
		if team != nil && ours(*team) {
			r.mates = append(r.mates, mate)
		}
	}
	return r, nil
}

// teamOf is the team that a teammate's session began in: the newest of its name that there
// was at the time. nil for every other session.
func (p place) teamOf(ctx context.Context, info transcript.Info, teams []roster.Roster) (*roster.Roster, error) {
	if info.Agent == "" || !slices.ContainsFunc(teams, func(c roster.Roster) bool { return c.Name == info.Team }) {
		return nil, nil
	}
	b, _, err := p.branch(ctx, info.Ref, "teammate")
	if err != nil {
		return nil, err
	}
	var newest *roster.Roster
	for _, c := range teams {
		if c.Name == info.Team && c.CreatedAt <= b.Began.UnixMilli() && (newest == nil || c.CreatedAt > newest.CreatedAt) {
			newest = &c
		}
	}
	return newest, nil
}

// checkUnused refuses to remove what a process has open.
func (p place) checkUnused(ctx context.Context, r removal) error {
	for _, info := range append([]transcript.Info{r.lead}, r.mates...) {
		h, err := p.holder(ctx, info.Ref)
		if err != nil {
			return err
		}
		if h != nil {
			return &exit{
				code: exitFailed, hint: "End that process first.",
				err: fmt.Errorf("%s is open in process %d on %s since %s", nameOf(info), h.PID, h.Host, h.Since.Local().Format(time.DateTime)),
			}
		}
	}
	for _, c := range r.teams {
		for _, m := range c.Members { // a lead that ends its team has given up its session already
			proc, here, err := p.Presence().Find(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
			if err != nil {
				return err
			}
			if here {
				return &exit{
					code: exitFailed, hint: "End that process first.",
					err: fmt.Errorf("%s of team %s runs in process %d on %s", m.Name, c.Name, proc.PID, proc.Host),
				}
			}
		}
	}
	return nil
}

// nameOf says whose session it is.
func nameOf(info transcript.Info) string {
	name := "session " + info.Ref.Session
	if info.Agent != "" {
		name += " of teammate " + info.Agent + " in team " + info.Team
	}
	return name
}

// remove removes the session of a lead last: as long as it is there, the rest can be found
// again.
func (p place) remove(ctx context.Context, r removal) error {
	for _, c := range r.teams {
		if err := p.removeRoster(ctx, c.Name); err != nil {
			return err
		}
	}
	for _, info := range append(slices.Clone(r.mates), r.lead) {
		err := p.Transcripts().Remove(ctx, info.Ref)
		if errors.Is(err, transcript.ErrNotFound) && info.Ref != r.lead.Ref {
			continue // somebody else has removed it meanwhile
		}
		if err = cmp.Or(err, writeOut([]byte("Removed "+cleanCell(nameOf(info))+".\n"))); err != nil {
			return err
		}
	}
	return nil
}

// removeRoster removes a team and says so.
func (p place) removeRoster(ctx context.Context, name string) error {
	if err := errors.Join(p.Rosters().Remove(ctx, name), p.Tasks().Remove(ctx, name)); err != nil {
		return err
	}
	return writeOut([]byte("Removed team " + cleanCell(name) + " with its mail and its task list.\n"))
}
