package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tui"
)

func newTeamStop() *cobra.Command {
	var force bool
	var reason string
	cmd := &cobra.Command{
		Use: "stop NAME AGENT", Short: "Stop a teammate", Args: exactly(2, "a team, and one of its teammates"),
		Long:              "Asks a teammate to end; its model answers, and may first finish what it is at. With --force it is ended within\n5 s, whatever its model does; its open tasks become unassigned, and the lead is notified.",
		ValidArgsFunction: complete(teamCandidates, teammateCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error {
				return stopTeammate(cmd.Context(), places, args[0], args[1], reason, force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "end it without asking its model")
	cmd.Flags().StringVar(&reason, "reason", "", "tell the teammate and the lead why")
	return cmd
}

// How long a teammate may take: to answer when it is asked, to be ended by the
// process that runs it, and after that process was killed.
const (
	answerTime = 30 * time.Second
	forceTime  = 3 * time.Second
)

func stopTeammate(ctx context.Context, places []place, name, agent, reason string, force bool) error {
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		return err
	}
	agent = strings.TrimSuffix(agent, "@"+config.Name)
	if member := config.Find(agent); p.foreign && force && member != nil {
		return cannotForce(config, *member)
	}
	_, err = p.Teams().RequestStop(ctx, config.Name, agent, reason, force)
	var unknown *roster.UnknownMemberError
	switch {
	case errors.As(err, &unknown):
		return noMember(unknown)
	case err != nil && agent == mailbox.LeadName:
		return &exit{
			code: exitFailed, err: fmt.Errorf("%s leads team %s, and ends with its session", agent, config.Name),
			hint: "cadre team stop ends teammates. The process of the lead ends with Ctrl+C where it runs.",
		}
	case err != nil:
		return err
	}
	member := *config.Find(agent)
	who := mailbox.Address{Team: config.Name, Agent: member.Name}
	switch dead, err := p.isDead(ctx, config, member); {
	case err != nil:
		return err
	case dead:
		return p.removeDead(ctx, who)
	}
	patience := answerTime
	if force {
		patience = forceTime
	} else {
		fmt.Fprintf(os.Stderr, "Asked %s to end; it has %s to answer.\n", tui.Clean(who.String()), patience)
		p.warnOfQuestion(ctx, config, who.Agent)
	}
	gone, err := p.awaitGone(ctx, who, patience)
	switch {
	case err != nil:
		return err
	case gone:
		return hasLeft(who)
	case force:
		return p.killTeammate(ctx, config, who)
	}
	return &exit{
		code: exitFailed, err: fmt.Errorf("%s was asked to end, and has not ended yet", who),
		hint: "It may be finishing its work. To end it now, add --force.",
	}
}

// warnOfQuestion says that a teammate answers nothing before it has an answer itself.
func (p place) warnOfQuestion(ctx context.Context, c roster.Roster, agent string) {
	asks, err := p.asksOf(ctx, c)
	if err != nil {
		return // it may end all the same
	}
	for _, a := range asks {
		if a.AgentName == agent {
			fmt.Fprintf(os.Stderr, "It is waiting for an answer first: cadre answer %s allow|deny\n", tui.Clean(a.ID))
		}
	}
}

// cannotForce says that a teammate of another program can only be asked to end: that
// program does not obey cadre, and may keep the teammate running although it is no
// longer on the roster.
func cannotForce(c roster.Roster, m roster.Member) *exit {
	e := &exit{
		code: exitFailed, err: fmt.Errorf("%s@%s is run by another program, which cadre cannot force to end it", m.Name, c.Name),
		hint: "To ask it, leave --force out.",
	}
	if m.PaneID != "" && m.BackendType != roster.InProcess {
		e.hint += " Its own pane is " + m.PaneID + "."
	}
	return e
}

// isDead reports whether it is known that no process runs a teammate.
func (p place) isDead(ctx context.Context, c roster.Roster, m roster.Member) (bool, error) {
	present, known, err := p.Teams().Present(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
	if err != nil || known || p.foreign || m.BackendType != roster.InProcess {
		return known && !present, err
	}
	open, err := p.leadIsOpen(ctx, c)
	return !open, err
}

// removeDead removes a teammate whose process is gone from its team.
func (p place) removeDead(ctx context.Context, who mailbox.Address) error {
	if err := p.Teams().Remove(ctx, who.Team, who.Agent, "its process is gone"); err != nil {
		return err
	}
	return writeOut([]byte(who.Agent + " was not running any more; it was removed from " + who.Team + ".\n"))
}

// awaitGone waits until a teammate is off the roster.
func (p place) awaitGone(ctx context.Context, who mailbox.Address, patience time.Duration) (bool, error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		config, err := p.Rosters().Load(ctx, who.Team)
		if errors.Is(err, roster.ErrNotFound) || err == nil && config.Find(who.Agent) == nil {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		select {
		case <-ticks.C:
		case <-over.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// killTeammate ends a teammate whose process does not respond. One that runs inside
// its lead's process cannot be ended alone.
func (p place) killTeammate(ctx context.Context, c roster.Roster, who mailbox.Address) error {
	proc, here, err := p.Presence().Find(ctx, who)
	if err != nil {
		return err
	}
	if c.Find(who.Agent).BackendType == roster.InProcess {
		return &exit{
			code: exitFailed, err: fmt.Errorf("%s runs inside its lead's process, which does not respond", who),
			hint: "cadre team show " + who.Team + " names the lead's session; end its process, then cadre team resume " + who.Team + ".",
		}
	}
	if here {
		if host, err := os.Hostname(); err == nil && proc.Host != host {
			return fmt.Errorf("%s runs on %s: stop it there", who, proc.Host)
		}
		process, err := os.FindProcess(proc.PID)
		if err == nil {
			err = process.Kill()
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end process %d of %s: %w", proc.PID, who, err)
		}
	}
	switch gone, err := p.awaitGone(ctx, who, forceTime/3); {
	case err != nil:
		return err
	case gone:
		return hasLeft(who)
	}
	if !here {
		return p.removeUnresponsive(ctx, c, who)
	}
	return p.removeDead(ctx, who)
}

func hasLeft(who mailbox.Address) error {
	return writeOut([]byte(who.Agent + " has left " + who.Team + ".\n"))
}

// removeUnresponsive removes a teammate that another program runs from its team. Its
// lead then closes the pane that it opened for it.
func (p place) removeUnresponsive(ctx context.Context, c roster.Roster, who mailbox.Address) error {
	if err := p.Teams().Remove(ctx, who.Team, who.Agent, "it was stopped by the "+mailbox.UserName); err != nil {
		return err
	}
	text := who.Agent + " was removed from " + who.Team
	switch leads, err := p.leadIsOpen(ctx, c); {
	case err != nil:
		return err
	case leads:
		return writeOut([]byte(text + "; its lead closes its pane.\n"))
	}
	return writeOut([]byte(text + ". It is another program: if it still runs, close its pane, " + c.Find(who.Agent).PaneID + ".\n"))
}
