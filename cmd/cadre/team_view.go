package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// teamView is a team as the verbs show it.
type teamView struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Root        layout.Root  `json:"root"`
	Created     time.Time    `json:"createdAt,omitzero"`
	LeadSession string       `json:"leadSessionId,omitempty"`
	Open        bool         `json:"open"` // a process has the lead's session open
	Finished    bool         `json:"finished,omitempty"`
	Members     []memberView `json:"members"`
	Tasks       taskCounts   `json:"tasks"`
	Error       string       `json:"error,omitempty"`
}

// state is open or closed, or unknown of a lead that is another program.
func (v teamView) state() string {
	if v.Finished {
		return stateFinished
	}
	for _, m := range v.Members {
		if m.Lead && m.State == stateUnknown {
			return stateUnknown
		}
	}
	if v.Open {
		return stateOpen
	}
	return stateClosed
}

// asksOf are the open questions of a team's members.
func (p place) asksOf(ctx context.Context, c roster.Roster) ([]askView, error) {
	all, err := p.asks(ctx)
	return slices.DeleteFunc(all, func(a askView) bool {
		return a.Team != c.Name && (c.LeadSessionID == "" || a.SessionID != c.LeadSessionID)
	}), err
}

// markAsking sets the state of running members that are waiting for an answer.
func (v *teamView) markAsking(asks []askView) {
	for i, m := range v.Members {
		asking := slices.ContainsFunc(asks, func(a askView) bool {
			return a.AgentName == m.Name || m.Lead && a.AgentName == ""
		})
		if asking && m.State != stateClosed && m.State != stateGone {
			v.Members[i].State = stateAsks
		}
	}
}

// What a lead or a teammate does, as far as is known.
const (
	stateOpen    = "open"
	stateClosed  = "closed"
	stateUnknown = "unknown" // of another program's agents, which do not register
	stateGone    = "gone"
	stateAsks    = "asks" // it waits for an answer
	// A team that its lead has deleted, and each of its members.
	stateFinished = "finished"
)

type memberView struct {
	Name    string `json:"name"`
	Type    string `json:"agentType"`
	Model   string `json:"model"`
	Color   string `json:"color,omitempty"`
	Backend string `json:"backend,omitempty"`
	Lead    bool   `json:"lead"`
	Active  *bool  `json:"isActive,omitempty"`
	State   string `json:"state"` // asks; open, closed or unknown for the lead; working, idle, gone or unknown for others
	Unread  int    `json:"unread"`
	Error   string `json:"error,omitempty"`
}

type taskCounts struct {
	Pending    int `json:"pending"`
	InProgress int `json:"inProgress"`
	Completed  int `json:"completed"`
}

func (c taskCounts) String() string {
	return fmt.Sprintf("%d/%d done", c.Completed, c.Pending+c.InProgress+c.Completed)
}

func countTasks(tasks []task.Task) taskCounts {
	var c taskCounts
	for _, t := range tasks {
		switch {
		case t.Internal():
		case t.Status == task.Completed:
			c.Completed++
		case t.Status == task.InProgress:
			c.InProgress++
		default:
			c.Pending++
		}
	}
	return c
}

// teams views every team of a place. One that cannot be read is among them,
// with the reason.
func (p place) teams(ctx context.Context) ([]teamView, error) {
	names, err := folders(p.root.TeamsDir())
	if err != nil {
		return nil, err
	}
	views := []teamView{}
	for _, name := range names {
		config, err := p.Rosters().Load(ctx, name)
		switch {
		case errors.Is(err, roster.ErrNotFound): // a folder with mail only
		case err != nil:
			views = append(views, teamView{Name: name, Root: p.root, Members: []memberView{}, Error: err.Error()})
		default:
			views = append(views, p.viewTeam(ctx, config))
		}
	}
	return views, nil
}

func (p place) viewTeam(ctx context.Context, c roster.Roster) teamView {
	v := teamView{
		Name: c.Name, Description: c.Description, Root: p.ofSessions().root, LeadSession: c.LeadSessionID,
		Members: []memberView{},
	}
	if c.CreatedAt > 0 {
		v.Created = time.UnixMilli(c.CreatedAt)
	}
	var errs []error
	tasks, err := p.Tasks().List(ctx, c.Name)
	errs = append(errs, err)
	v.Tasks = countTasks(tasks)
	if p.sessions != nil {
		v.Finished = true
		for _, m := range c.Members {
			member := p.viewMember(ctx, c, m)
			member.State = stateFinished
			v.Members = append(v.Members, member)
		}
		return v
	}
	v.Open, err = p.leadIsOpen(ctx, c)
	errs = append(errs, err)
	teams := p.Teams()
	does, err := teams.States(ctx, c.Name)
	errs = append(errs, err)
	for _, m := range c.Members {
		member := p.viewMember(ctx, c, m)
		member.State, err = p.memberState(ctx, teams, c, m, v.Open)
		errs = append(errs, err)
		if member.State == "" {
			member.State = cmp.Or(string(does[m.Name]), stateUnknown)
		}
		v.Members = append(v.Members, member)
	}
	if err := errors.Join(errs...); err != nil {
		v.Error = err.Error()
	}
	return v
}

func (p place) viewMember(ctx context.Context, c roster.Roster, m roster.Member) memberView {
	v := memberView{
		Name: m.Name, Type: m.AgentType, Model: m.Model, Color: m.Color, Backend: m.BackendType,
		Lead: m.AgentID == c.LeadAgentID, Active: m.IsActive,
	}
	unread, err := p.Mail().Unread(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
	if err != nil {
		v.Error = err.Error()
	}
	v.Unread = len(unread)
	return v
}

// leadIsOpen reports whether a process leads the team.
func (p place) leadIsOpen(ctx context.Context, c roster.Roster) (bool, error) {
	if _, here, err := p.Presence().Find(ctx, mailbox.Address{Team: c.Name, Agent: mailbox.LeadName}); here || err != nil {
		return here, err
	}
	return p.isOpen(ctx, c.LeadSessionID)
}

// memberState says whether a member runs; "" is a teammate that does, of which
// [team.Teams.States] knows more.
func (p place) memberState(ctx context.Context, teams *team.Teams, c roster.Roster, m roster.Member, open bool) (string, error) {
	switch {
	case p.foreign && (m.AgentID == c.LeadAgentID || m.IsActive == nil):
		return stateUnknown, nil
	case m.AgentID == c.LeadAgentID:
		return map[bool]string{true: stateOpen, false: stateClosed}[open], nil
	case m.BackendType == roster.InProcess:
		return map[bool]string{true: "", false: stateGone}[open], nil
	}
	present, known, err := teams.Present(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
	switch {
	case err != nil:
		return stateUnknown, err
	case known && !present:
		return stateGone, nil
	case !known && !open && !p.foreign:
		return stateUnknown, nil // it does not register, and no lead watches its pane
	}
	return "", nil
}

// isOpen reports whether a process has a session open.
func (p place) isOpen(ctx context.Context, session string) (bool, error) {
	h, err := p.openIn(ctx, session)
	return h != nil, err
}

// openIn is the process that has a session open; nil when none has, or when that cannot
// be known.
func (p place) openIn(ctx context.Context, session string) (*lease.Holder, error) {
	if session == "" || p.foreign {
		return nil, nil
	}
	info, err := p.findSession(ctx, session)
	if err != nil {
		return nil, nil //nolint:nilerr // a team may outlive its lead's session
	}
	return p.holder(ctx, info.Ref)
}
