package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// members answers who belongs to a team, whose program runs them, and whether it runs.
// It adds what this process knows to what is stored. Its methods may be called from any
// goroutine.
type members struct {
	rosters  *roster.RepairingStore
	records  roster.Records
	presence roster.Presence
	mail     mailbox.Store
	crews    *crews
	publish  func(by event.Agent, body event.Body)
}

// update changes a roster and publishes the change. Of changes that are made at the
// same time, an older one is not published after a newer one.
func (ms *members) update(ctx context.Context, team string, by event.Agent, change func(*roster.Roster) error) (roster.Roster, error) {
	var number int
	config, err := ms.rosters.Update(ctx, team, func(c *roster.Roster) error {
		if err := change(c); err != nil {
			return err
		}
		number = ms.crews.countChange(team)
		return nil
	})
	if err != nil {
		return roster.Roster{}, err
	}
	ms.crews.publishChange(team, number, func() {
		ms.publish(by, event.TeamChanged{Team: team, Members: rosterOf(config)})
	})
	return config, nil
}

// rosterOf is a roster as events carry it.
func rosterOf(c roster.Roster) []event.Member {
	members := make([]event.Member, len(c.Members))
	for i, m := range c.Members {
		members[i] = event.Member{
			Name: m.Name, AgentType: m.AgentType, Model: m.Model, Color: m.Color, Backend: m.BackendType,
			Lead: m.AgentID == c.LeadAgentID,
		}
	}
	return members
}

// find returns the member that was asked for, by name or name@team. Errors:
// [*roster.UnknownMemberError], also for one that is leaving: it reads no more mail.
func (ms *members) find(ctx context.Context, c *roster.Roster, asked string) (roster.Member, error) {
	departing := func(name string) bool {
		return ms.crews.isDeparting(mailbox.Address{Team: c.Name, Agent: name})
	}
	name := strings.TrimSpace(asked)
	if m := c.Find(strings.TrimSuffix(name, "@"+c.Name)); m != nil && !departing(m.Name) {
		return *m, nil
	}
	unknown := &roster.UnknownMemberError{Name: name, Team: c.Name}
	unknown.Departed = departing(name) || ms.hadMail(ctx, c, name)
	for _, m := range c.Members {
		if !departing(m.Name) {
			unknown.Members = append(unknown.Members, m.Name)
		}
	}
	local, _, _ := strings.Cut(name, "@")
	unknown.Near = near.Names(local, unknown.Members)
	return roster.Member{}, unknown
}

// hadMail reports whether an agent that is not on the roster has been on it once: it has
// an inbox with mail.
func (ms *members) hadMail(ctx context.Context, c *roster.Roster, name string) bool {
	clean, err := roster.CleanName(name)
	if err != nil || clean != name || c.Find(name) != nil {
		return false
	}
	all, err := ms.mail.All(ctx, mailbox.Address{Team: c.Name, Agent: name})
	return err == nil && len(all) > 0
}

// isUnknown reports whether err says that a recipient does not exist.
func isUnknown(err error) bool {
	_, ok := errors.AsType[*roster.UnknownMemberError](err)
	return ok
}

// await waits until an agent is on its team's roster. A roster that is missing or cannot
// be read may be so only for the moment in which another program writes it.
func (ms *members) await(ctx context.Context, who mailbox.Address) (roster.Roster, roster.Member, error) {
	tick := time.NewTicker(joinPoll)
	defer tick.Stop()
	for {
		config, err := ms.rosters.Load(ctx, who.Team)
		if err == nil {
			if m := config.Find(who.Agent); m != nil && m.AgentID != config.LeadAgentID {
				return config, *m, nil
			}
			err = &roster.UnknownMemberError{Name: who.Agent, Team: who.Team}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return roster.Roster{}, roster.Member{}, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// record is what was kept of a teammate; ok is false when nothing was.
func (ms *members) record(ctx context.Context, who mailbox.Address) (r roster.AgentRecord, ok bool, err error) {
	doc, err := ms.records.Get(ctx, who.Team, roster.RecordAgent, who.Agent)
	if errors.Is(err, roster.ErrNoRecord) {
		return roster.AgentRecord{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(doc, &r)
	}
	if err != nil {
		return roster.AgentRecord{}, false, fmt.Errorf("read what is kept of %s: %w", who, err)
	}
	return r, true, nil
}

// foundingVersion is the version of what is ours alone about a team.
const foundingVersion = "1"

// found keeps that our own runtime leads a team, unless it is kept already.
func (ms *members) found(ctx context.Context, team string) error {
	founded, err := ms.isFounded(ctx, team)
	if err != nil || founded {
		return err
	}
	return ms.records.Put(ctx, team, roster.RecordTeam, team, jsonx.MustMarshal(roster.Founding{Version: foundingVersion, At: time.Now().UTC()}))
}

// isFounded reports whether our own runtime leads a team. What is sent in its lead's
// name carries a seal then.
func (ms *members) isFounded(ctx context.Context, team string) (bool, error) {
	if ms.crews.isFounded(team) {
		return true, nil
	}
	_, err := ms.records.Get(ctx, team, roster.RecordTeam, team)
	if errors.Is(err, roster.ErrNoRecord) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out who leads team %q: %w", team, err)
	}
	ms.crews.setFounded(team)
	return true, nil
}

// isOurs reports whether an agent is run by our own runtime: it takes a place, and what
// it posts carries a seal.
func (ms *members) isOurs(ctx context.Context, who mailbox.Address) (bool, error) {
	if who.Agent == mailbox.LeadName {
		return ms.isFounded(ctx, who.Team)
	}
	record, _, err := ms.record(ctx, who)
	return record.Signs, err
}

// isForeign reports whether an agent is a member of the team whose program is not ours,
// and so cannot seal.
func (ms *members) isForeign(ctx context.Context, who mailbox.Address) (bool, error) {
	if who.Agent != mailbox.LeadName {
		config, err := ms.rosters.Load(ctx, who.Team)
		if err != nil || config.Find(who.Agent) == nil {
			return false, err
		}
	}
	ours, err := ms.isOurs(ctx, who)
	return !ours, err
}

// leadPresent reports whether a process leads the team, as [Teams.LeadPresent] does.
func (ms *members) leadPresent(ctx context.Context, team string) (present, known bool, err error) {
	if _, err := ms.rosters.Load(ctx, team); errors.Is(err, roster.ErrNotFound) {
		return false, true, nil
	}
	return ms.present(ctx, mailbox.Address{Team: team, Agent: mailbox.LeadName})
}

// present reports whether a process reads an agent's mail, as [Teams.Present] does.
func (ms *members) present(ctx context.Context, who mailbox.Address) (present, known bool, err error) {
	config, err := ms.rosters.Load(ctx, who.Team)
	if err != nil {
		return false, false, err
	}
	at := who
	if who.Agent != mailbox.LeadName {
		m := config.Find(who.Agent)
		if m == nil {
			return false, true, nil
		}
		if !m.Apart() {
			at.Agent = mailbox.LeadName
		}
	}
	ours, err := ms.isOurs(ctx, at)
	if err != nil {
		return false, false, err
	}
	_, present, err = ms.presence.Find(ctx, at)
	return present, present || ours, err
}

// runs reports whether a teammate on the roster of a team that this process leads runs,
// as far as can be known: another program's in a pane is believed to, once its lead has
// seen it run.
func (ms *members) runs(ctx context.Context, team string, m roster.Member) (bool, error) {
	who := mailbox.Address{Team: team, Agent: m.Name}
	if !m.Apart() {
		return ms.crews.mate(who) != nil, nil
	}
	_, present, err := ms.presence.Find(ctx, who)
	if present || err != nil {
		return present, err
	}
	// One whose record is damaged counts as not running: a program of ours would have
	// taken its place, and who brings it back finds the damage.
	record, kept, err := ms.record(ctx, who)
	return err == nil && !record.Signs && !record.Starting && (kept || m.PaneID != ""), nil
}

// running lists the teammates on a roster that run, as far as can be known. A team that
// is gone has none.
func (ms *members) running(ctx context.Context, team string) ([]roster.Member, error) {
	config, err := ms.rosters.Load(ctx, team)
	if errors.Is(err, roster.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var running []roster.Member
	for _, m := range config.Teammates() {
		runs, err := ms.runs(ctx, team, m)
		if err != nil {
			return nil, err
		}
		if runs {
			running = append(running, m)
		}
	}
	return running, nil
}
