package permission

import (
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/tool"
)

// Mode is how a session treats calls that no rule is about. The names are
// those of settings files, flags and the wire (facts: sdk-contract §4).
type Mode string

// The modes.
const (
	// Default asks before files change and before commands run.
	Default Mode = "default"
	// AcceptEdits also lets file tools change files in the working folders.
	AcceptEdits Mode = "acceptEdits"
	// Plan lets the agent read, and write its plan file, and nothing else.
	Plan Mode = "plan"
	// Bypass asks only where a rule says so.
	Bypass Mode = "bypassPermissions"
	// DontAsk denies whatever would be asked.
	DontAsk Mode = "dontAsk"
	// Delegate leaves only the tools that set others to work.
	Delegate Mode = "delegate"
)

// Modes are all modes, in the order in which people are shown them.
var Modes = []Mode{Default, AcceptEdits, Plan, DontAsk, Delegate, Bypass}

// Offers reports whether an agent has this tool at all in the policy's mode. A call
// of another tool is denied ([Decide]), so there is no need to offer it to the model.
func (p Policy) Offers(spec tool.Spec) bool { return p.Mode != Delegate || spec.Delegates }

// ParseMode reads a mode. "" and "manual" mean [Default].
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); {
	case name == "" || name == "manual":
		return Default, nil
	case slices.Contains(Modes, m):
		return m, nil
	}
	return "", fmt.Errorf("%q is not a permission mode: want default, acceptEdits, plan, dontAsk, delegate or bypassPermissions", name)
}
