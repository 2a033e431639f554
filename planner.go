package cadre

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// planner knows which sessions plan, and why ([builtin.Planner]). Plan mode itself
// is a permission mode: the rules keep a session that plans from changing anything.
type planner struct {
	tree  *session.Tree
	teams *team.Teams
	root  layout.Root

	mu     sync.Mutex
	before map[string]permission.Mode // the mode before, of callers that entered plan mode by themselves
}

func newPlanner(tree *session.Tree, root layout.Root) *planner {
	return &planner{tree: tree, root: root, before: make(map[string]permission.Mode)}
}

// Mode implements [builtin.Planner].
func (p *planner) Mode(caller tool.Caller) string {
	sess, ok := p.tree.Sessions.Find(caller.AgentID)
	if !ok {
		return ""
	}
	return string(sess.State().Mode)
}

// PlanFile implements [builtin.Planner]: one file per agent, the same after a
// restart.
func (p *planner) PlanFile(caller tool.Caller) string {
	name := ids.WordsOf(caller.SessionID)
	switch {
	case caller.Team != "" && caller.Depth == 0:
		name = ids.WordsOf(caller.Team+"\x00"+caller.AgentName+"\x00"+caller.SessionID) + "-agent"
	case caller.AgentID != "":
		name += "-agent-" + caller.AgentID
	}
	return p.root.Plan(name)
}

// PlanApprover implements [builtin.Planner].
func (p *planner) PlanApprover(caller tool.Caller) builtin.Approver {
	switch {
	case p.entered(caller), caller.Depth > 0:
		return builtin.ApprovedByNobody
	case caller.Team != "":
		return builtin.ApprovedByLead
	}
	return builtin.ApprovedByPerson
}

func (p *planner) entered(caller tool.Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.before[caller.Key()]
	return ok
}

// EnterPlan implements [builtin.Planner].
func (p *planner) EnterPlan(ctx context.Context, caller tool.Caller) error {
	sess, ok := p.tree.Sessions.Find(caller.AgentID)
	if !ok {
		return session.ErrClosed
	}
	before := sess.State().Mode
	if before == permission.Plan {
		return nil
	}
	p.mu.Lock()
	p.before[caller.Key()] = before
	p.mu.Unlock()
	return sess.SetMode(ctx, permission.Plan)
}

// SubmitPlan implements [builtin.Planner].
func (p *planner) SubmitPlan(ctx context.Context, caller tool.Caller, plan string) (builtin.PlanSubmitted, error) {
	seat, ok := p.teams.Seat(caller)
	if !ok {
		return builtin.PlanSubmitted{}, fmt.Errorf("submit the plan of %s: %w", caller.AgentName, session.ErrClosed)
	}
	id, err := seat.Plans.Request(ctx, p.PlanFile(caller), plan)
	return builtin.PlanSubmitted{RequestID: id}, err
}

// errCeiling: a sub-agent plans because the agent that started it does.
var errCeiling = errors.New("the agent that started you is in plan mode, which holds for you too; put your plan into your answer")

// LeavePlan implements [builtin.Planner].
func (p *planner) LeavePlan(ctx context.Context, caller tool.Caller) error {
	sess, ok := p.tree.Sessions.Find(caller.AgentID)
	if !ok {
		return session.ErrClosed
	}
	p.mu.Lock()
	mode, entered := p.before[caller.Key()]
	delete(p.before, caller.Key())
	p.mu.Unlock()
	if !entered {
		if caller.Depth > 0 {
			return errCeiling
		}
		mode = permission.Default
	}
	return sess.SetMode(ctx, mode)
}

// preface says to an agent that begins in plan mode what that means for it, before the
// rest of its preface.
func (p *planner) preface(caller tool.Caller, then func(context.Context) string) func(context.Context) string {
	text := "You are in plan mode: read and search as you need, and change nothing. "
	if caller.Depth > 0 {
		text += "Put your plan into your answer."
	} else {
		text += fmt.Sprintf("Write your plan to %s, the only file that you can write, and then call ExitPlanMode.", p.PlanFile(caller))
	}
	return prefaced(prompt.Reminder(text), then)
}
