package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/tool"
)

// decideFor is what the rules of the main session say of the call of a teammate in
// another process ([teammate.Relay]). What they neither allow nor deny is for a person,
// and so is what they cannot judge: the zero Decision.
func (r *Runtime) decideFor(ctx context.Context, from roster.Member, a ask.Ask) permission.Decision {
	if a.Kind != ask.Permission {
		return permission.Decision{}
	}
	caller := tool.Caller{SessionID: r.info.SessionID, AgentName: from.Name, Cwd: from.Cwd}
	spec := session.Spec{Caller: caller, Ref: r.main.Ref()}
	t, ok := r.toolSet(spec).Lookup(a.Tool)
	if !ok {
		return permission.Decision{}
	}
	what := t.Spec()
	input, err := what.Schema.Normalize(what.Name, a.Input)
	if err != nil {
		return permission.Decision{}
	}
	call := tool.Call{ID: a.ToolUseID, Name: what.Name, Input: input}
	return permission.Decide(r.policyFor(spec).With(r.tree.Granted()), permission.Call{
		Spec: what, Input: input, Access: t.Access(tool.WithCaller(ctx, caller), call),
	})
}
