package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tui"
)

func newTeamWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch NAME", Short: "Watch a team: members, tasks, mail", Args: exactly(1, "the name of a team"),
		Long: "Shows a team as it changes, from outside its processes, until it is removed or Ctrl+C.\nWhen the output is no terminal, each change is a line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return watchTeam(cmd.Context(), places, args[0]) })
		},
	}
}

// look is how often the roster is looked at: no signal tells of its changes.
const look = time.Second

// teamState is what a watch shows.
type teamState struct {
	config team.Config
	view   teamView
	tasks  []task.Task
	mail   []post
}

// post is a message and whose inbox it lies in.
type post struct {
	to mailbox.Address
	mailbox.Message
}

func watchTeam(ctx context.Context, places []place, name string) error {
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		return err
	}
	ctx, stopSignals := interruptible(ctx)
	defer stopSignals()
	var show func(was, now *teamState) error
	if term.IsTerminal(int(os.Stdout.Fd())) {
		show = drawTeam
	} else {
		show = tellChanges(tui.NewLines(os.Stdout, tui.Look{}))
	}
	changed, stop := p.Tasks().Watch(config.Name)
	defer stop()
	posted, stopMail := p.Mail().Watch(mailbox.Address{Team: config.Name, Agent: team.LeadName})
	defer stopMail()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for was := (*teamState)(nil); ; {
		now, err := p.stateOf(ctx, config.Name)
		switch {
		case errors.Is(err, team.ErrNotFound):
			return writeOut([]byte("The team is gone.\n"))
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if was == nil || !reflect.DeepEqual(was, now) {
			if err := show(was, now); err != nil {
				return err
			}
		}
		was = now
		select {
		case <-changed:
		case <-posted:
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// stateOf reads all that a watch shows.
func (p place) stateOf(ctx context.Context, name string) (*teamState, error) {
	config, err := p.Rosters().Load(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &teamState{config: config, view: p.viewTeam(ctx, config)}
	if s.tasks, err = p.Tasks().List(ctx, config.Name); err != nil {
		return nil, err
	}
	for _, m := range config.Members {
		at := mailbox.Address{Team: config.Name, Agent: m.Name}
		all, err := p.Mail().All(ctx, at)
		if err != nil {
			continue // told with the member
		}
		for _, one := range all {
			s.mail = append(s.mail, post{at, one})
		}
	}
	byName(s.mail, func(m post) string { return m.Timestamp })
	return s, nil
}

// tellChanges tells what is new as lines.
func tellChanges(lines *tui.Lines) func(was, now *teamState) error {
	members, known := "", make(map[mailbox.Address]map[mailbox.ID]bool)
	return func(_, now *teamState) error {
		if roster := now.roster(); roster != members {
			members = roster
			if err := writeOut([]byte("● " + roster + "\n")); err != nil {
				return err
			}
		}
		for _, t := range now.tasks {
			if !t.Internal() {
				lines.Event(event.Event{Body: event.TaskChanged{List: now.config.Name, Task: t}})
			}
		}
		for _, m := range now.mail {
			if known[m.to] == nil {
				known[m.to] = make(map[mailbox.ID]bool)
			}
			if !known[m.to][m.ID] {
				known[m.to][m.ID] = true
				lines.Event(event.Event{Body: event.MailSent{To: m.to, Message: m.Message}})
			}
		}
		return nil
	}
}

// roster is the members and what they do, in one line.
func (s *teamState) roster() string {
	parts := make([]string, len(s.view.Members))
	for i, m := range s.view.Members {
		parts[i] = cleanCell(m.Name) + " " + m.State
	}
	return strings.Join(parts, ", ")
}

// Codes that a watch on a terminal needs: home and clear, clear to the end.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

// drawTeam draws the whole picture anew.
func drawTeam(_, now *teamState) error {
	if err := writeOut([]byte(clearScreen)); err != nil {
		return err
	}
	state := "closed"
	if now.view.Open {
		state = "open"
	}
	head := fmt.Sprintf("%s  %s  %s  %s\n\n", now.config.Name, now.config.Description, state, now.view.Tasks)
	if err := writeOut([]byte(tui.Clean(head))); err != nil {
		return err
	}
	rows := [][]string{{"MEMBER", "STATE", "DOES", "UNREAD", "MODEL"}}
	for _, m := range now.view.Members {
		rows = append(rows, []string{m.Name, m.State, doing(now.tasks, m.Name), fmt.Sprint(m.Unread), m.Model})
	}
	if err := table(rows); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, t := range shownTasks(now.tasks) {
		b.WriteString(tui.TaskLine(t) + evidenceNote(t) + "\n")
	}
	if left := len(now.tasks) - maxShownTasks; left > 0 {
		fmt.Fprintf(&b, "… %d more\n", left)
	}
	b.WriteString("\n")
	for _, m := range now.mail[max(0, len(now.mail)-newestMail):] {
		b.WriteString("✉ " + tui.Mail(m.to, m.Message) + "\n")
	}
	b.WriteString("\nCtrl+C leaves; the team goes on.\n")
	return writeOut([]byte(b.String()))
}

// doing is the task that a member is at.
func doing(tasks []task.Task, name string) string {
	for _, t := range tasks {
		if t.Owner == name && t.Status == task.InProgress && !t.Internal() {
			return shorten("#"+t.ID+" "+t.Subject, 40)
		}
	}
	return ""
}

// maxShownTasks is how many tasks the picture has room for.
const maxShownTasks = 20

// shownTasks are the tasks that matter most now: what is not completed, then
// the newest of the others.
func shownTasks(all []task.Task) []task.Task {
	var open, done []task.Task
	for _, t := range all {
		switch {
		case t.Internal():
		case t.Status == task.Completed:
			done = append(done, t)
		default:
			open = append(open, t)
		}
	}
	if room := maxShownTasks - len(open); room < len(done) {
		done = done[len(done)-max(room, 0):]
	}
	shown := append(done, open...)
	return shown[:min(len(shown), maxShownTasks)]
}

// evidenceNote says of a task that proves itself how far that is.
func evidenceNote(t task.Task) string {
	if t.Check() == "" {
		return ""
	}
	e, ok := t.Checked()
	switch {
	case !ok:
		return "  (to prove: " + shorten(t.Check(), 60) + ")"
	case e.Passed:
		return "  (proved: " + shorten(e.Command, 60) + " passed " + e.At.Local().Format(time.TimeOnly) + ")"
	}
	return fmt.Sprintf("  (not proved: %s gave exit code %d at %s)", shorten(e.Command, 60), e.ExitCode, e.At.Local().Format(time.TimeOnly))
}
