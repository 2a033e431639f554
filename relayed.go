package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
)

// relayed is a teammate's question as it is shown here. One of our programs shows its
// questions on the desk itself. Plans are the lead's to ask about, and another
// program's agent knows no desk: those get the deadline here that all questions have.
func (r *Runtime) relayed(ctx context.Context, shownAs event.Agent, from roster.Member, a ask.Ask) session.Relayed {
	if a.Kind == ask.Permission || a.Kind == ask.Choice {
		ours, err := r.teams.Signs(ctx, mailbox.Address{Team: a.Team, Agent: from.Name})
		if ours || err != nil {
			return session.Relayed{Agent: shownAs, Ask: a}
		}
	}
	return session.Relayed{Agent: shownAs, Ask: a, OnDesk: true}
}

// nobodyAtTheLead is what an agent is told whose question nobody can be asked.
const nobodyAtTheLead = "Nobody can be asked in the run of this team's lead, so the answer is no. Do not ask the same again: " +
	"find a way that needs no permission, or end your turn and say what you would need."
