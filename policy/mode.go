package policy

import (
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/prompt"
)

// Delegating tells a lead what delegate mode means for it.
var Delegating = prompt.Reminder("You are in delegate mode: you have only the tools for agents, teams, tasks and messages. " +
	"Do not do the work yourself. Break it into tasks, start agents for them, answer what they ask, and judge what they report. " +
	"The agents that you start have all tools.")

var noLongerDelegating = prompt.Reminder("Delegate mode is over: you have all tools again and may work yourself.")

// WorkMode is the mode of an agent whose lead is in this one: delegate mode is the
// lead's alone.
func WorkMode(lead permission.Mode) permission.Mode {
	if lead == permission.Delegate {
		return permission.Default
	}
	return lead
}

// ModeNote tells a model that delegate mode has begun or is over; "" for other changes.
// Of plan mode a model learns from its tools and from the answers to its plans.
func ModeNote(was, now permission.Mode) string {
	switch permission.Delegate {
	case now:
		return Delegating
	case was:
		return noLongerDelegating
	}
	return ""
}
