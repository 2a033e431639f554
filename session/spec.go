package session

import (
	"context"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Spec is what one session of a process has of its own. Everything else, like stores,
// models, tools and the policy, all sessions of a process share: who starts an agent
// gives a Spec to whoever opens sessions there, and gets the running session.
type Spec struct {
	Ref       transcript.Ref       // where its conversation is stored
	Caller    tool.Caller          // under which identity its tools run
	Agent     event.Agent          // who its events are about
	Offers    func(tool.Spec) bool // which tools it may use; nil: all
	MaxRounds int                  // per turn; 0: no limit
	Mode      permission.Mode      // "": that of the main session at its start

	// Preface is what the runtime says before the session's first input; nil: nothing.
	Preface func(context.Context) string
	// BeforeMailIsRead is called when mail stands in the transcript, before it is
	// marked read in the inbox. nil: nothing.
	BeforeMailIsRead func(context.Context)
	// Life is what is done when a turn begins and when the session is idle; nil: nothing.
	Life Life
}
