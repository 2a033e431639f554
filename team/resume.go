package team

import (
	"context"
	"errors"
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

// Revive brings back a teammate that [Teams.Reopen] found absent, by the backend
// of this process, whatever it ran in before: its conversation goes on, its tasks
// are still its own, and its unread mail comes by itself. One whose conversation
// never began, or is gone, is started with its prompt. When it cannot be brought
// back it is absent as before, to be reported to [Teams.Gone]. Errors: [ErrNotLead],
// [roster.ErrNoRecord] when nothing was kept of it, as of another program's teammate.
func (t *Teams) Revive(ctx context.Context, by tool.Caller, m roster.Member) (roster.Member, error) {
	lead, ok := t.Seat(by)
	switch {
	case !ok || !lead.Lead:
		return m, ErrNotLead
	case t.backend == nil:
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, errors.ErrUnsupported)
	}
	m, err := t.revive(ctx, by, lead, m)
	if err != nil {
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, err)
	}
	t.changes.beat()
	return m, nil
}

func (t *Teams) revive(ctx context.Context, by tool.Caller, lead *Seat, m roster.Member) (roster.Member, error) {
	record, err := t.endFormer(ctx, mailbox.Address{Team: lead.Team, Agent: m.Name})
	if err != nil {
		return m, err
	}
	goesOn, err := t.hasConversed(ctx, record)
	if err != nil {
		return m, err
	}
	kind, err := t.backend.Kind(ctx)
	if err != nil {
		return m, err
	}
	config, m, err := t.rehouse(ctx, lead, m.Name, kind)
	if err != nil {
		return m, err
	}
	seat := t.seat(config, m)
	spawn := firstSpawn(by, seat, &config, m, SpawnRequest{Description: record.Description, Prompt: m.Prompt})
	if goesOn {
		spawn.Record, spawn.Introduction = &record, ""
		spawn.Input, err = seat.backNote(ctx)
	} else {
		err = seat.beginAgain(ctx, record, m)
	}
	if err == nil {
		m, err = t.start(ctx, lead, spawn)
	}
	if err != nil {
		t.unseat(seat)
	}
	return m, err
}

// endFormer ends what an earlier lead may have started of a teammate just before it
// was killed, and returns what is kept of it then: a program that takes its place
// only now may have had its prompt before it ends.
func (t *Teams) endFormer(ctx context.Context, who mailbox.Address) (roster.AgentRecord, error) {
	if record, err := t.revivable(ctx, who); err != nil {
		return record, err
	}
	// Where it cannot be ended, the start of the next one finds that too, and says so.
	_ = t.backend.Stop(ctx, who, errBroughtBack)
	return t.revivable(ctx, who)
}

// errBroughtBack says why a teammate is ended of which another process goes on.
var errBroughtBack = errors.New("it is brought back by a resumed lead")

// revivable is what was kept of a teammate; the zero record of one whose lead was
// killed when it had just written it down. Another program's, which is started
// by that program, has none and has a pane.
func (t *Teams) revivable(ctx context.Context, who mailbox.Address) (roster.AgentRecord, error) {
	record, kept, err := t.record(ctx, who)
	if err != nil || kept {
		return record, err
	}
	config, err := t.store.Load(ctx, who.Team)
	if err != nil {
		return record, err
	}
	if m := config.Find(who.Agent); m == nil || m.Apart() && m.PaneID != "" {
		return record, roster.ErrNoRecord
	}
	return record, nil
}

// hasConversed reports whether a teammate has a conversation to go on with.
func (t *Teams) hasConversed(ctx context.Context, r roster.AgentRecord) (bool, error) {
	if r.SessionID == "" || t.options.Conversed == nil {
		return r.SessionID != "", nil
	}
	return t.options.Conversed(ctx, r)
}

// beginAgain prepares a teammate that has no conversation for its prompt. That of the
// first try may still wait in its inbox. What it had begun, if its conversation was
// lost, is anybody's: it knows nothing of it.
func (s *Seat) beginAgain(ctx context.Context, r roster.AgentRecord, m roster.Member) error {
	if r.SessionID != "" {
		if _, err := s.teams.tasks.Release(ctx, s.Team, s.Name); err != nil {
			return err
		}
	}
	r.AgentID, r.SessionID, r.Project = "", "", ""
	r.Backend, r.Signs, r.Starting, r.Orphaned = m.BackendType, !m.Apart(), m.Apart(), false
	if err := s.Remember(ctx, r); err != nil {
		return err
	}
	unread, err := s.teams.mail.Unread(ctx, s.Address())
	if err != nil {
		return err
	}
	var first []mailbox.ID
	for _, mail := range unread {
		if mail.From == mailbox.LeadName && mail.Text == m.Prompt {
			first = append(first, mail.ID)
		}
	}
	if len(first) == 0 {
		return nil
	}
	return s.teams.mail.MarkRead(ctx, s.Address(), first)
}

// rehouse writes into the roster that a member runs where this process runs its
// teammates, and is not at work.
func (t *Teams) rehouse(ctx context.Context, lead *Seat, name, kind string) (roster.Roster, roster.Member, error) {
	config, err := t.updateRoster(ctx, lead.Team, lead.agent(), func(c *roster.Roster) error {
		m := c.Find(name)
		if m == nil {
			return &roster.UnknownMemberError{Name: name, Team: lead.Team}
		}
		m.BackendType, m.PaneID, m.IsActive = kind, firstPane(kind), nil
		return nil
	})
	if err != nil {
		return roster.Roster{}, roster.Member{Name: name}, err
	}
	return config, *config.Find(name), nil
}

// unseat takes away the seat of a teammate that did not start, which stays a
// member.
func (t *Teams) unseat(seat *Seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[seat.Team]; ok && crew.mates[seat.Name] == seat {
		delete(crew.mates, seat.Name)
	}
}

// backNote is what a teammate that was brought back is told.
func (s *Seat) backNote(ctx context.Context) (string, error) {
	state, err := s.teams.recap(ctx, s)
	if err != nil {
		return "", err
	}
	return prompt.Reminder("You were stopped, and are back. What you were doing when it happened may be half done: " +
		"look before you do it again. Then go on with your work.\n\n" + state), nil
}

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
