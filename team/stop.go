package team

import (
	"context"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// RequestStop asks, in a person's name, that a teammate ends, and returns the
// request's id. It works from any process: the request goes to the inbox of the
// agent, which the process that runs the agent reads. Without force it is a shutdown
// request like the lead's, which the agent's model answers; with force the runtime
// ends the agent's session ([Seat.Stopping]) without asking its model. While no
// process reads that inbox ([Teams.Present]) nothing happens; the caller can remove
// the teammate from the team itself then, with [Teams.Remove]. Errors:
// [roster.ErrNotFound] for the team, [*roster.UnknownMemberError], [*roster.NameError] for the lead.
func (t *Teams) RequestStop(ctx context.Context, team, agent, reason string, force bool) (id string, err error) {
	config, err := t.members.rosters.Load(ctx, team)
	if err != nil {
		return "", err
	}
	member, err := t.members.find(ctx, &config, agent)
	if err != nil {
		return "", err
	}
	if member.AgentID == config.LeadAgentID {
		return "", &roster.NameError{Name: agent, Reason: "is the lead, which ends with its session"}
	}
	at := time.Now()
	id = protocol.RequestID("shutdown", at, member.Name)
	var c protocol.Control = protocol.ShutdownRequest{
		Type: protocol.TypeShutdownRequest, RequestID: id, From: mailbox.UserName, Reason: reason, Timestamp: protocol.Stamp(at),
	}
	if force {
		c = protocol.StopRequest{
			Type: protocol.TypeStopRequest, RequestID: id, From: mailbox.UserName, Force: true, Reason: reason, Timestamp: protocol.Stamp(at),
		}
	}
	m := mailbox.Message{From: mailbox.UserName, Text: protocol.Encode(c), Timestamp: protocol.Stamp(at)}
	to := mailbox.Address{Team: config.Name, Agent: member.Name}
	return id, t.outbox.post(ctx, event.Agent{Name: mailbox.UserName}, to, m, sealedProtocol)
}

// Depart leaves the team at once, for a teammate with a process of its own whose
// session was closed because of [Seat.Stopping]. The lead gets the same message as
// if the agent had agreed to shut down; where no process leads, the agent is removed
// from the team here. For any other agent Depart does nothing.
func (s *Seat) Depart(ctx context.Context) error {
	request, why, ok := s.stopped()
	if !ok || !s.own || s.hasLeft() {
		return nil
	}
	present, known, err := s.teams.LeadPresent(ctx, s.Team)
	if err != nil {
		return err
	}
	if known && !present {
		return s.teams.Remove(ctx, s.Team, s.Name, why)
	}
	return s.approve(ctx, request.RequestID)
}

// TurnFailed approves a shutdown request in place of the agent's model, which was
// to answer it and cannot, since its turn has failed. It reports whether the agent
// has left. Call it when a turn ends in failure.
func (s *Seat) TurnFailed(ctx context.Context) (left bool, err error) {
	open := s.shutdowns.waiting()
	if len(open) == 0 || s.hasLeft() {
		return s.hasLeft(), nil
	}
	if err := s.approve(ctx, open[0]); err != nil {
		return false, err
	}
	return true, nil
}

// Remove removes a teammate from its team, as its lead would: its open tasks are
// released, its unread mail is returned, and the lead is notified, by mail when
// another process leads. It stops nothing: the caller must know that no process runs
// the teammate ([Teams.Present]). It works from any process. Errors: [roster.ErrNotFound]
// for the team, [*roster.UnknownMemberError].
func (t *Teams) Remove(ctx context.Context, team, agent, why string) error {
	config, err := t.members.rosters.Load(ctx, team)
	if err != nil {
		return err
	}
	member, err := t.members.find(ctx, &config, agent)
	if err != nil {
		return err
	}
	if member.AgentID == config.LeadAgentID {
		return &roster.NameError{Name: agent, Reason: "is the lead, which ends with its session"}
	}
	who := mailbox.Address{Team: config.Name, Agent: member.Name}
	if t.crews.leadsHere(config.Name) {
		return t.Gone(ctx, who, why)
	}
	if t.crews.enter(config.Name, config.LeadSessionID) {
		defer t.crews.forget(config.Name)
	}
	if _, err := t.departures.depart(ctx, who, why, func() error { return nil }); err != nil {
		return fmt.Errorf("remove %s from its team: %w", who, err)
	}
	return nil
}
