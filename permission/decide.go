// Package permission decides whether a tool call may run: allowed, denied, or
// to be asked. It is pure: it reads no file and keeps no state, so the same
// policy and call always give the same decision, and the one who asks a person
// is somebody else.
package permission

import (
	"encoding/json"
	"fmt"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/shellword"
	"github.com/cadre-dev/cadre/tool"
)

// Call is what a decision is about.
type Call struct {
	Spec   tool.Spec // of the tool; only its names and what it is count
	Input  json.RawMessage
	Access tool.Access
}

// Behavior is the outcome of a decision, in the words of the wire.
type Behavior string

// The behaviors.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
	Ask   Behavior = "ask"
)

// Decision is what came out and why.
type Decision struct {
	Behavior    Behavior
	Reason      string // one sentence, for the model and for people
	Rule        string // the rule that decided; "" when none did
	Remedy      string // the flag or setting that would allow it; "" when nothing would
	Suggestions []ask.Suggestion
}

// Decide says whether the call may run. In this order, the first that applies
// decides: deny rules; the state of teams, which agents may not write; the limits
// of the modes plan and delegate; protected paths; ask rules; a call that is itself
// a question; allow rules; the mode.
//
// A call that does what another tool does (Access.As) is allowed by the rules for
// that tool only, and denied or asked about by the rules for either.
func Decide(p Policy, c Call) Decision {
	d := (&review{Policy: p, Call: c.judged(), made: c}).decide()
	if p.Mode == DontAsk && d.Behavior == Ask {
		d.Behavior = Deny
		d.Reason += " In the mode dontAsk, what would be asked is denied."
	}
	return d
}

// judged is the call in the name of the tool by whose rules it is judged. What
// that tool is besides is not known here, so nothing is assumed in its favor.
func (c Call) judged() Call {
	if c.Access.As != "" {
		c.Spec = tool.Spec{Name: c.Access.As}
	}
	return c
}

// review is one decision in the making.
type review struct {
	Policy
	Call         // in the name of the tool by whose rules it is judged
	made Call    // as the model made it; differs from Call when Access.As is set
	seen *script // of Access.Command; see [review.script]
}

func (r *review) decide() Decision {
	steps := []func() *Decision{
		r.byDenyRules, r.byTeamState, r.byCeiling, r.byProtectedPath, r.byAskRules, r.byQuestion, r.byAllowRules,
	}
	for _, step := range steps {
		if d := step(); d != nil {
			return *d
		}
	}
	if r.Mode == Bypass {
		return Decision{Behavior: Allow, Reason: "The mode bypassPermissions allows it."}
	}
	return r.byDefault()
}

func (r *review) byDenyRules() *Decision {
	for _, rule := range r.Deny {
		if r.restricts(rule) == matches {
			return &Decision{
				Behavior: Deny, Rule: rule.String(),
				Reason: fmt.Sprintf("The rule %s denies this call of %s.", rule.from(), r.made.Spec.Name),
				Remedy: fmt.Sprintf("remove the deny rule %s", rule.from()),
			}
		}
	}
	for _, rule := range r.Deny {
		if r.restricts(rule) == mayMatch {
			d := r.unsure(rule)
			return &d
		}
	}
	return nil
}

// unsure asks, in every mode, when a deny or ask rule cannot be compared with the call.
func (r *review) unsure(rule SourcedRule) Decision {
	return Decision{
		Behavior: Ask, Rule: rule.String(),
		Reason: fmt.Sprintf("It is not clear whether the rule %s applies to this call of %s.", rule.from(), r.made.Spec.Name),
		Remedy: "use a simpler call, in which everything is written out",
	}
}

func (r *review) byAskRules() *Decision {
	for _, rule := range r.Policy.Ask {
		switch r.restricts(rule) {
		case matches:
			return &Decision{
				Behavior: Ask, Rule: rule.String(),
				Reason: fmt.Sprintf("The rule %s requires a person to approve this call of %s.", rule.from(), r.made.Spec.Name),
				Remedy: fmt.Sprintf("remove the ask rule %s", rule.from()),
			}
		case mayMatch:
			d := r.unsure(rule)
			return &d
		}
	}
	return nil
}

// byCeiling applies the modes that only restrict: no allow rule overrides them.
func (r *review) byCeiling() *Decision {
	if r.Access.Ask || r.isPlanFile() {
		return nil
	}
	switch {
	case r.Mode == Plan && len(r.Access.Write) > 0:
		return &Decision{Behavior: Deny, Reason: "In plan mode files cannot be changed" + r.exceptPlanFile() + ".",
			Remedy: "leave plan mode"}
	case r.Mode == Plan && r.Access.Command != "":
		return &Decision{Behavior: Deny, Remedy: "leave plan mode",
			Reason: "In plan mode commands are not run; read and search with the file tools."}
	case r.Mode == Plan && r.Spec.Outward && !r.Spec.ReadOnly:
		return &Decision{Behavior: Deny, Remedy: "leave plan mode",
			Reason: fmt.Sprintf("In plan mode only tools that change nothing may run, and %s may change something.", r.Spec.Name)}
	case !r.Offers(r.Spec) || !r.Offers(r.made.Spec):
		return &Decision{Behavior: Deny, Remedy: "leave delegate mode",
			Reason: fmt.Sprintf("In delegate mode the lead works through its team, so %s is not available.", r.Spec.Name)}
	}
	return nil
}

func (r *review) exceptPlanFile() string {
	if r.PlanFile == "" {
		return ""
	}
	return ", but for the plan file " + r.PlanFile
}

func (r *review) byQuestion() *Decision {
	if !r.Access.Ask {
		return nil
	}
	return &Decision{Behavior: Ask, Reason: fmt.Sprintf("%s is a question to the person.", r.Spec.Name)}
}

func (r *review) byAllowRules() *Decision {
	if r.Access.Command != "" {
		return r.commandAllowed()
	}
	for _, rule := range r.Policy.Allow {
		if rule.names(r.Call) && (rule.Content == "" || r.contentMatches(rule) == matches) {
			return allowedBy(rule)
		}
	}
	return r.pathsAllowed()
}

func allowedBy(rule SourcedRule) *Decision {
	return &Decision{Behavior: Allow, Rule: rule.String(), Reason: "The rule " + rule.from() + " allows it."}
}

// byDefault decides a call that no rule is about.
func (r *review) byDefault() Decision {
	switch {
	case r.Access.Command != "":
		return r.askCommand()
	case len(r.Access.Read)+len(r.Access.Write) > 0:
		return r.byFolders()
	case r.Spec.Outward:
		return Decision{
			Behavior: Ask, Reason: fmt.Sprintf("%s reaches outside this program, and no rule allows it.", r.Spec.Name),
			Remedy: "--allowedTools " + shellword.Quote(r.Spec.Name), Suggestions: suggestRule("allow", Rule{Tool: r.Spec.Name}, ask.LocalSettings),
		}
	}
	return Decision{Behavior: Allow, Reason: fmt.Sprintf("%s touches no files and runs no commands.", r.Spec.Name)}
}
