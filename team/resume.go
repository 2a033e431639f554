package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// Reopen finds the team that a resumed main session leads, by the session's id
// in the rosters, and takes the lead's place in it. It returns the teammates on
// its roster that run nowhere: whoever is not brought back ([Teams.Revive]) must
// be reported to [Teams.Gone]. Another program's teammate in a pane is not among
// them: only its pane shows whether it runs. Departures that a crash has cut
// short are carried out, and teammates that have vanished from the roster are put
// back ([roster.RepairingStore]). ok is false when the session leads no team. Errors:
// [*roster.PresentError] when another process leads it.
func (t *Teams) Reopen(ctx context.Context, by tool.Caller) (absent []roster.Member, ok bool, err error) {
	configs, err := t.members.rosters.List(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("find the team of session %s: %w", by.SessionID, err)
	}
	at := slices.IndexFunc(configs, func(c roster.Roster) bool { return c.LeadSessionID == by.SessionID })
	if by.SessionID == "" || at < 0 {
		return nil, false, nil
	}
	config := &configs[at]
	seat, err := t.lead(ctx, config)
	if err != nil {
		return nil, false, err
	}
	if err := t.members.rosters.Restore(ctx, *config); err != nil {
		return nil, true, err
	}
	now, err := seat.config(ctx)
	if err != nil {
		return nil, true, err
	}
	if err := t.departures.finishAll(ctx, &now); err != nil {
		return nil, true, err
	}
	if err := t.carryOutApprovals(ctx, seat); err != nil {
		return nil, true, err
	}
	now, err = seat.config(ctx)
	if err != nil {
		return nil, true, err
	}
	for _, m := range now.Teammates() {
		runs, err := t.members.runs(ctx, config.Name, m)
		if err != nil {
			return nil, true, err
		}
		switch {
		case !runs:
			absent = append(absent, m)
		case m.Apart():
			t.newMate(now, m) // this process watches it from now on
		}
	}
	return absent, true, nil
}

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
	case t.options.Backend == nil:
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, errors.ErrUnsupported)
	}
	m, err := t.revive(ctx, by, lead, m)
	if err != nil {
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, err)
	}
	t.changes.announce()
	return m, nil
}

func (t *Teams) revive(ctx context.Context, by tool.Caller, lead *Seat, m roster.Member) (roster.Member, error) {
	record, err := t.endFormer(ctx, mailbox.Address{Team: lead.Team, Agent: m.Name})
	if err != nil {
		return m, err
	}
	goesOn, err := hasConversed(ctx, record, t.options.Conversed)
	if err != nil {
		return m, err
	}
	kind, err := t.options.Backend.Kind(ctx)
	if err != nil {
		return m, err
	}
	config, m, err := t.setBackend(ctx, lead, m.Name, kind)
	if err != nil {
		return m, err
	}
	seat := t.newMate(config, m)
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
		t.crews.removeMate(seat.Address(), seat)
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
	_ = t.options.Backend.Stop(ctx, who, errBroughtBack)
	return t.revivable(ctx, who)
}

// errBroughtBack says why a teammate is ended of which another process goes on.
var errBroughtBack = errors.New("it is brought back by a resumed lead")

// revivable is what was kept of a teammate; the zero record of one whose lead was
// killed when it had just written it down. Another program's, which is started
// by that program, has none and has a pane.
func (t *Teams) revivable(ctx context.Context, who mailbox.Address) (roster.AgentRecord, error) {
	record, kept, err := t.members.record(ctx, who)
	if err != nil || kept {
		return record, err
	}
	config, err := t.members.rosters.Load(ctx, who.Team)
	if err != nil {
		return record, err
	}
	if m := config.Find(who.Agent); m == nil || m.Apart() && m.PaneID != "" {
		return record, roster.ErrNoRecord
	}
	return record, nil
}

// hasConversed reports whether a teammate has a conversation to go on with. conversed
// may be nil ([Options].Conversed).
func hasConversed(ctx context.Context, r roster.AgentRecord, conversed func(context.Context, roster.AgentRecord) (bool, error)) (bool, error) {
	if r.SessionID == "" || conversed == nil {
		return r.SessionID != "", nil
	}
	return conversed(ctx, r)
}

// beginAgain prepares a teammate that has no conversation for its prompt, which may
// still be in its inbox from the first try. If it had a conversation that was lost, its
// tasks become unassigned: it knows nothing of them any more.
func (s *Seat) beginAgain(ctx context.Context, r roster.AgentRecord, m roster.Member) error {
	if r.SessionID != "" {
		if _, err := s.teams.options.Tasks.Release(ctx, s.Team, s.Name); err != nil {
			return err
		}
	}
	r.AgentID, r.SessionID, r.Project = "", "", ""
	r.Backend, r.Signs, r.Starting, r.Orphaned = m.BackendType, !m.Apart(), m.Apart(), false
	if err := s.Remember(ctx, r); err != nil {
		return err
	}
	unread, err := s.teams.options.Mail.Unread(ctx, s.Address())
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
	return s.teams.options.Mail.MarkRead(ctx, s.Address(), first)
}

// setBackend writes into the roster that a member runs where this process runs its
// teammates, and is not at work.
func (t *Teams) setBackend(ctx context.Context, lead *Seat, name, kind string) (roster.Roster, roster.Member, error) {
	config, err := t.members.update(ctx, lead.Team, lead.agent(), func(c *roster.Roster) error {
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

// backNote is the runtime's note to a teammate that was brought back.
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
	list, err := t.options.Tasks.List(ctx, seat.Team)
	if err != nil {
		return "", err
	}
	seen, err := t.observe(ctx, seat.Team, list)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if seat.Lead {
		fmt.Fprintf(&b, "You lead the team %q. This is how it stands.\n\nTeammates:\n", protocol.EscapeText(seat.Team))
	} else {
		fmt.Fprintf(&b, "You are %q, a member of the team %q, which %q leads. This is how it stands.\n\nTeammates:\n",
			protocol.EscapeText(seat.Name), protocol.EscapeText(seat.Team), mailbox.LeadName)
	}
	if err := seen.recapRoster(ctx, &b, seat); err != nil {
		return "", err
	}
	recapList(&b, list)
	unread, err := t.options.Mail.Unread(ctx, seat.Address())
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nUnread mail for you: %d. It comes by itself.", len(unread))
	return b.String(), nil
}

// recapRoster lists the other teammates, and what each does.
func (o *observation) recapRoster(ctx context.Context, b *strings.Builder, seat *Seat) error {
	shown, more := 0, 0
	for _, m := range o.config.Teammates() {
		if m.Name == seat.Name {
			continue
		}
		if shown == recapMembers {
			more++
			continue
		}
		shown++
		state := "not running"
		runs, err := o.teams.members.runs(ctx, seat.Team, m)
		if err != nil {
			return err
		}
		if runs || !seat.Lead { // a teammate knows only of panes whether they run
			agent, _, err := o.agent(ctx, m.Name)
			state = string(agent.State)
			if err != nil { // what is damaged of one member does not hide the others
				state = "state unknown"
			}
		}
		unread, err := o.teams.options.Mail.Unread(ctx, mailbox.Address{Team: seat.Team, Agent: m.Name})
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
		owner := "unassigned"
		if t.Owner != "" {
			owner = "owned by " + t.Owner
		}
		fmt.Fprintf(b, "- #%s [%s, %s] %s\n", t.ID, t.Status, protocol.EscapeText(owner), protocol.EscapeText(oneline.Of(t.Subject)))
	}
	if more := len(open) - recapTasks; more > 0 {
		fmt.Fprintf(b, "- and %d more: TaskList shows them\n", more)
	}
}
