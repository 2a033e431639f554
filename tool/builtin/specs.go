package builtin

import "github.com/cadre-dev/cadre/tool"

// Specs describes every tool of this package, for whoever has to know their names
// without a session. The description of Agent is missing: it depends on the agents
// that there are.
func Specs() []tool.Spec {
	return []tool.Spec{
		agentSpec, bashSpec, globSpec, grepSpec, readSpec, editSpec, writeSpec, askUserSpec, enterPlanModeSpec, exitPlanModeSpec,
		taskCreateSpec, taskGetSpec, taskUpdateSpec, taskListSpec, teamCreateSpec, teamDeleteSpec, sendMessageSpec, waitSpec,
	}
}
