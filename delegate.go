package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/permission"
)

const (
	delegating = "<system-reminder>\nYou are in delegate mode: you have only the tools for agents, teams, tasks and messages. " +
		"Do not do the work yourself. Break it into tasks, start agents for them, answer what they ask, and judge what they report. " +
		"The agents that you start have all tools.\n</system-reminder>"
	delegated = "<system-reminder>\nDelegate mode is over: you have all tools again and may work yourself.\n</system-reminder>"
)

// workMode is the mode of an agent whose lead is in this one: delegate mode is the
// lead's alone.
func workMode(lead permission.Mode) permission.Mode {
	if lead == permission.Delegate {
		return permission.Default
	}
	return lead
}

// delegatePreface tells a lead that begins in delegate mode, before what else it is
// told.
func delegatePreface(then func(context.Context) string) func(context.Context) string {
	return func(ctx context.Context) string {
		if then == nil {
			return delegating
		}
		return delegating + "\n\n" + then(ctx)
	}
}

// modeNote tells a model that delegate mode has begun or is over
// ([session.Config.ModeNote]). Of plan mode its tools and the answers to its plans
// tell it.
func modeNote(was, now permission.Mode) string {
	switch permission.Delegate {
	case now:
		return delegating
	case was:
		return delegated
	}
	return ""
}
