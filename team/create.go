package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// Create forms a team led by the caller's session and empties its task list. A
// name that exists is replaced by a random one (facts: claude-code §2.1).
// Errors: [*roster.NameError], [*LeadingError], [ErrNotMain].
func (t *Teams) Create(ctx context.Context, by tool.Caller, name, description, agentType string) (roster.Roster, error) {
	name, err := roster.CleanTeamName(name)
	if err != nil {
		return roster.Roster{}, err
	}
	if by.Depth > 0 || by.Team != "" {
		return roster.Roster{}, ErrNotMain
	}
	if seat, ok := t.Seat(by); ok {
		return roster.Roster{}, &LeadingError{seat.Team}
	}
	config, err := createUnderFreeName(ctx, t.members.rosters, newConfig(by, description, agentType), name)
	if err != nil {
		return roster.Roster{}, err
	}
	err = t.options.Tasks.Reset(ctx, config.Name)
	var seat *Seat
	if err == nil {
		seat, err = t.lead(ctx, &config)
	}
	if err != nil {
		return roster.Roster{}, errors.Join(err, t.members.rosters.Remove(ctx, config.Name))
	}
	t.options.Publish(seat.agent(), event.TeamChanged{Team: config.Name, Members: rosterOf(config)})
	return config, nil
}

// createUnderFreeName stores a new team under the name, or under the first random one that
// is free.
func createUnderFreeName(ctx context.Context, rosters roster.Store, c roster.Roster, name string) (roster.Roster, error) {
	const tries = 20
	for n := 0; ; n++ {
		if n > 0 || roster.MailKey(name) == noTeamFolder {
			name = ids.Words()
		}
		c.Name = name
		c.LeadAgentID = roster.AgentID(mailbox.LeadName, name)
		c.Members[0].AgentID = c.LeadAgentID
		err := rosters.Create(ctx, c)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, roster.ErrExists) || n == tries {
			return roster.Roster{}, err
		}
	}
}

// noTeamFolder holds the mail of agents without a team (facts: claude-code
// §5.1): no team may have it.
const noTeamFolder = "default"

func newConfig(by tool.Caller, description, agentType string) roster.Roster {
	if agentType == "" {
		agentType = mailbox.LeadName
	}
	now := time.Now().UnixMilli()
	return roster.Roster{
		Description: description, CreatedAt: now, LeadSessionID: by.SessionID,
		Members: []roster.Member{{
			Name: mailbox.LeadName, AgentType: agentType, Model: by.Model, JoinedAt: now, Cwd: by.Cwd, Subscriptions: []string{},
		}},
	}
}

// lead makes the caller's session the lead of a team that it has created or
// found: it takes the lead's place, and the team is marked as one that our own
// runtime leads. Errors: [*roster.PresentError] when another process leads it.
func (t *Teams) lead(ctx context.Context, c *roster.Roster) (*Seat, error) {
	release, err := t.options.Presence.Enter(ctx, mailbox.Address{Team: c.Name, Agent: mailbox.LeadName})
	if err != nil {
		return nil, fmt.Errorf("lead team %q: %w", c.Name, err)
	}
	if err := t.members.found(ctx, c.Name); err != nil {
		return nil, errors.Join(err, release())
	}
	seat := newSeat(t, c.Name, mailbox.LeadName, c.LeadSessionID)
	seat.Lead = true
	t.crews.addLead(seat, c, release)
	return seat, nil
}

// Deletion says what became of a team that was to be deleted.
type Deletion struct {
	Team   string   // "" when the caller has none
	Active []string // teammates on the roster: the team stays
}

// Delete removes the team that the caller leads, with its inboxes and its task
// list, unless teammates are on its roster. Approvals of shutdowns that wait in
// the lead's inbox count; its other unread mail is kept for the lead's [Inbox].
// Errors: [ErrNotLead].
func (t *Teams) Delete(ctx context.Context, by tool.Caller) (Deletion, error) {
	if by.Depth > 0 || by.Team != "" {
		return Deletion{}, ErrNotLead
	}
	seat, ok := t.Seat(by)
	if !ok {
		return Deletion{}, nil
	}
	if err := t.carryOutApprovals(ctx, seat); err != nil {
		return Deletion{}, err
	}
	config, err := seat.config(ctx)
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		return Deletion{}, err
	}
	if mates := config.Teammates(); len(mates) > 0 {
		active := make([]string, len(mates))
		for i, m := range mates {
			active[i] = m.Name
		}
		return Deletion{seat.Team, active}, nil
	}
	if err := t.remove(ctx, seat); err != nil {
		return Deletion{}, err
	}
	return Deletion{Team: seat.Team}, nil
}

// remove deletes a team without teammates, and forgets it. After an error, what its
// lead's model has not been shown yet comes as notes.
func (t *Teams) remove(ctx context.Context, seat *Seat) error {
	inbox := t.crews.inbox(seat.session)
	var rest []Mail
	if inbox != nil {
		var err error
		if rest, _, err = inbox.read(ctx, seat); err != nil {
			t.crews.note(seat.session, rest...)
			return err
		}
	}
	if err := t.options.Removing(ctx, seat.Team); err != nil {
		t.options.Publish(seat.agent(), event.Noticed{Level: "warning", Text: err.Error()})
	}
	if err := t.removeFiles(ctx, seat.Team); err != nil {
		t.crews.note(seat.session, rest...)
		return err
	}
	if inbox != nil {
		inbox.deliveries.dropInbox(seat.Address())
	}
	seat.leave()
	t.crews.disband(seat, rest)
	t.options.Publish(seat.agent(), event.TeamChanged{Team: seat.Team})
	return nil
}

// removeFiles removes what is stored of a team, and gives up the lead's place in it.
func (t *Teams) removeFiles(ctx context.Context, team string) error {
	if err := t.members.rosters.Remove(ctx, team); err != nil {
		return err
	}
	if release := t.crews.detachLeadRelease(team); release != nil {
		if err := release(); err != nil {
			return err
		}
	}
	return t.options.Tasks.Remove(ctx, team)
}
