package teammate

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
)

// Relay carries questions between the processes of a team. In the lead's process it
// puts the questions of teammates elsewhere before those who may answer; in a teammate's
// it delivers the lead's answers.
type Relay struct {
	Host *Host
	// Decide is what the rules of the lead's session say of a teammate's call: the zero
	// Decision when they neither allow nor deny it, or cannot judge it.
	Decide    func(ctx context.Context, from roster.Member, a ask.Ask) permission.Decision
	Approvals *policy.Approvals
}

// Ask puts a question before the rules of this process, then the person ([team.Relay]).
// Where nobody can be asked the answer is no, as for every agent.
func (r *Relay) Ask(ctx context.Context, from roster.Member, a ask.Ask, answer func(context.Context, ask.Answer) error) error {
	tree := r.Host.Tree
	agent := r.Host.Main
	agent.Name, agent.Color = from.Name, from.Color
	d := r.Decide(ctx, from, a)
	switch {
	case d.Behavior == permission.Allow:
		return answer(ctx, ask.Answer{Allow: true, By: "rule"})
	case d.Behavior == permission.Deny && d.Rule != "":
		return answer(ctx, ask.Answer{Message: d.Reason, By: "rule"})
	case !tree.Questions.Attended():
		tree.Stream.Publish(agent, event.ToolDenied{Call: a.ToolUseID, Tool: a.Tool, Input: a.Input, Reason: d.Reason, Remedy: d.Remedy})
		return answer(ctx, ask.Answer{By: "rule", Message: strings.TrimSpace(d.Reason + " " + nobodyToAsk)})
	}
	tree.Questions.Relay(r.shown(ctx, agent, from, a), func(ctx context.Context, given ask.Answer) error {
		if err := answer(ctx, given); err != nil {
			return err
		}
		updates, err := r.Approvals.AcceptForTeam(ctx, given)
		if err != nil {
			r.Host.warn(err)
		}
		tree.Grant(updates)
		return nil
	})
	return nil
}

// shown is a teammate's question as it is shown here. One of our programs puts its
// questions on the desk itself. Plans are the lead's to ask about, and another program's
// agent knows no desk: those go on the desk from here.
func (r *Relay) shown(ctx context.Context, agent event.Agent, from roster.Member, a ask.Ask) session.Relayed {
	if a.Kind == ask.Permission || a.Kind == ask.Choice {
		ours, err := r.Host.Teams.Signs(ctx, mailbox.Address{Team: a.Team, Agent: from.Name})
		if ours || err != nil {
			return session.Relayed{Agent: agent, Ask: a}
		}
	}
	return session.Relayed{Agent: agent, Ask: a, OnDesk: true}
}

// nobodyToAsk is the answer to a teammate where nobody can be asked.
const nobodyToAsk = "Nobody can be asked in the run of this team's lead, so the answer is no. Do not ask the same again: " +
	"find a way that needs no permission, or end your turn and say what you would need."

// Withdrawn removes a relayed question that was answered where it was asked, or before
// this process started ([team.Options].Withdrawn).
func (r *Relay) Withdrawn(_ context.Context, id string) {
	r.Host.Tree.Questions.Resolve(id, ask.Answer{By: ask.ByElsewhere})
}

// Answered delivers the lead's answer to the session of this process that asked
// ([team.Options].Answered).
func (r *Relay) Answered(ctx context.Context, _ mailbox.Address, askID string, answer ask.Answer) error {
	return r.Host.Tree.Questions.Answer(ctx, askID, answer)
}
