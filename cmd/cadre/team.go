package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tui"
)

func newTeamCommand() *cobra.Command {
	return group("team", "Watch teams, take part, stop and resume them", newTeamLs(), newTeamShow(), newTeamWatch(), newTeamLog(),
		newTeamSend(), newTeamStop(), newTeamResume(), newTeamRm())
}

func newTeamLs() *cobra.Command {
	var asJSON, finished bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the teams", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPlaces(func(places []place) error { return listTeams(cmd.Context(), places, finished, asJSON) })
		},
	}
	cmd.Flags().BoolVarP(&finished, "all", "a", false, "also the teams that have finished, while their lead's session is kept")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func listTeams(ctx context.Context, places []place, finished, asJSON bool) error {
	all := []teamView{}
	for _, p := range places {
		views, err := p.teams(ctx)
		if err != nil {
			return err
		}
		all = append(all, views...)
	}
	if finished {
		err := withFinished(ctx, places, func(p place, c roster.Roster) error {
			all = append(all, p.viewTeam(ctx, c))
			return nil
		})
		if err != nil {
			return err
		}
	}
	byName(all, func(v teamView) string { return v.Name })
	if asJSON {
		return writeJSON(all)
	}
	switch {
	case len(all) == 0 && finished:
		return writeOut([]byte("There are no teams.\n"))
	case len(all) == 0:
		return writeOut([]byte("There are no teams. --all also lists those that have finished.\n"))
	}
	rows := [][]string{{"TEAM", "STATE", "MEMBERS", "TASKS", "CREATED", "ROOT"}}
	for _, v := range all {
		state := v.state()
		if v.Error != "" {
			state = "unreadable: " + shorten(v.Error, 60)
		}
		rows = append(rows, []string{v.Name, state, fmt.Sprint(len(v.Members)), v.Tasks.String(), when(v.Created), shownRoot(v.Root)})
	}
	return table(rows)
}

// shownRoot is a state root as a table shows it. What is kept of a finished team lies deep
// inside one, at a place that says nothing to people.
func shownRoot(root layout.Root) string {
	shown, _, _ := strings.Cut(string(root), string(filepath.Separator)+"projects"+string(filepath.Separator))
	home, err := os.UserHomeDir()
	if below, ok := strings.CutPrefix(shown, home+string(filepath.Separator)); err == nil && ok {
		return filepath.Join("~", below)
	}
	return shown
}

func when(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Local().Format("2006-01-02 15:04")
}

// findTeam finds a team by its name, in our root first.
func findTeam(ctx context.Context, places []place, name string) (place, roster.Roster, error) {
	var known []string
	for _, p := range places {
		c, err := p.Rosters().Load(ctx, name)
		if err == nil {
			return p, c, nil
		}
		if name != "" && !errors.Is(err, roster.ErrNotFound) {
			return p, c, err
		}
		names, err := folders(p.root.TeamsDir())
		if err != nil {
			return p, c, err
		}
		known = append(known, names...)
	}
	if _, c, err := findFinished(ctx, places, name); err == nil {
		e := usagef("the team %q has finished", c.Name)
		e.hint = fmt.Sprintf("cadre team log %s shows what it did.", c.Name)
		return place{}, roster.Roster{}, e
	}
	known = append(known, finishedNames(ctx, places)...)
	e := usagef("there is no team %q", name)
	e.hint = cmp.Or(didYouMean(near.Names(name, known)), "cadre team ls lists the teams, and with --all also those that have finished.")
	return place{}, roster.Roster{}, e
}

func newTeamShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a team: members, tasks, newest mail", Args: exactly(1, "the name of a team"),
		ValidArgsFunction: complete(anyTeamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return showTeam(cmd.Context(), places, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// teamDetail is the output of team show.
type teamDetail struct {
	teamView
	List []taskView `json:"taskList"`
	Mail []mailView `json:"mail"`
}

type mailView struct {
	To      string `json:"to"`
	From    string `json:"from"`
	At      string `json:"timestamp"`
	Read    bool   `json:"read"`
	Summary string `json:"summary,omitempty"`
	Text    string `json:"text"`
}

func showTeam(ctx context.Context, places []place, name string, asJSON bool) error {
	p, config, err := findAnyTeam(ctx, places, name)
	if err != nil {
		return err
	}
	tasks, err := p.Tasks().List(ctx, config.Name)
	if err != nil {
		return err
	}
	d := teamDetail{teamView: p.viewTeam(ctx, config), List: viewTasks(config.Name, p.ofSessions().root, tasks), Mail: p.mailOf(ctx, config)}
	asks, err := p.asksOf(ctx, config)
	if err != nil {
		return err
	}
	d.markAsking(asks)
	if asJSON {
		return writeJSON(d)
	}
	return printTeam(d)
}

// mailOf lists all mail of a team, oldest first.
func (p place) mailOf(ctx context.Context, c roster.Roster) []mailView {
	all := []mailView{}
	for _, m := range newMailReader(p).all(ctx, c) {
		all = append(all, m.view())
	}
	return all
}

// newestMail is how many messages team show prints.
const newestMail = 10

func printTeam(d teamDetail) error {
	state := d.state()
	if d.Open {
		state = "open in a process"
	}
	if err := fields([][]string{
		{"team", d.Name}, {"about", d.Description}, {"state", state}, {"lead", d.LeadSession}, {"root", string(d.Root)},
	}); err != nil {
		return err
	}
	rows := [][]string{{"", ""}, {"MEMBER", "STATE", "TYPE", "MODEL", "BACKEND", "UNREAD"}}
	rows[0] = make([]string, len(rows[1]))
	for _, m := range d.Members {
		unread := fmt.Sprint(m.Unread)
		if m.Error != "" {
			unread = "unreadable: " + shorten(m.Error, 60)
		}
		rows = append(rows, []string{m.Name, m.State, m.Type, m.Model, m.Backend, unread})
	}
	if err := table(rows); err != nil {
		return err
	}
	if len(d.List) > 0 {
		if err := writeOut([]byte("\n")); err != nil {
			return err
		}
		if err := printTasks(d.List); err != nil {
			return err
		}
	}
	return printMail(d.Name, d.Mail)
}

func printMail(team string, mail []mailView) error {
	if len(mail) == 0 {
		return nil
	}
	mail = mail[max(0, len(mail)-newestMail):]
	rows := [][]string{{"", ""}, {"SENT", "MAIL"}}
	for _, m := range mail {
		rows = append(rows, []string{m.sent(), shorten(m.line(team), 100)})
	}
	return table(rows)
}

// line is the message as people read it.
func (m mailView) line(team string) string {
	return tui.Mail(mailbox.Address{Team: team, Agent: m.To}, mailbox.Message{From: m.From, Text: m.Text, Summary: m.Summary})
}

// sent is when it was sent, in the time of this place; what another program wrote
// there stays as it is.
func (m mailView) sent() string {
	at, err := time.Parse(time.RFC3339, m.At)
	if err != nil {
		return shorten(m.At, 24)
	}
	return at.Local().Format(time.DateTime)
}

func newTeamRm() *cobra.Command {
	var yes, force bool
	cmd := &cobra.Command{
		Use: "rm NAME", Short: "Remove a team with its mail and its task list", Args: exactly(1, "the name of a team"),
		ValidArgsFunction: complete(ownTeamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return removeTeam(cmd.Context(), places, args[0], yes, force) })
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "also when a member is marked as active")
	return cmd
}

func removeTeam(ctx context.Context, places []place, name string, yes, force bool) error {
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		if _, was, missing := findFinished(ctx, places, name); missing == nil {
			e := usagef("the team %q has finished", was.Name)
			e.hint = fmt.Sprintf("What is left of it goes with its lead's session: cadre sessions rm %s", was.LeadSessionID)
			return e
		}
		return err
	}
	holder, err := p.openIn(ctx, config.LeadSessionID)
	switch {
	case err != nil:
		return err
	case holder != nil:
		return &exit{
			code: exitFailed,
			err:  fmt.Errorf("team %s is at work: process %d on %s has its lead's session open", config.Name, holder.PID, holder.Host),
			hint: "End that process first.",
		}
	}
	for _, m := range config.Teammates() {
		if m.IsActive != nil && *m.IsActive && !force {
			return &exit{
				code: exitFailed, err: fmt.Errorf("team %s: member %s is marked as active", config.Name, m.Name),
				hint: "If its process is gone, add --force.",
			}
		}
	}
	if err := p.mayRemove("team "+config.Name, yes); err != nil {
		return err
	}
	return p.removeRoster(ctx, config.Name)
}
