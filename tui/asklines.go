package tui

import (
	"fmt"

	"github.com/cadre-dev/cadre/ask"
)

// AskLines is a question as plain lines, with everything that a person needs to
// know to answer it: what is asked, the call or the choices, why, and what "always" would
// change. Nothing in them can harm a terminal.
func AskLines(a ask.Ask) []string {
	var out []string
	if questions := ask.Questions(a.Input); a.Kind == ask.Choice && len(questions) > 0 {
		for _, q := range questions {
			out = append(out, Visible(q.Question))
			for i, o := range q.Options {
				line := fmt.Sprintf("  %d  %s", i+1, oneLine(o.Label))
				if o.Description != "" {
					line += "  " + oneLine(o.Description)
				}
				out = append(out, line)
			}
		}
		return out
	}
	out = append(out, Visible(a.Question))
	for _, line := range details(a.Tool, a.Input) {
		out = append(out, "  "+line)
	}
	if a.Reason != "" {
		out = append(out, Visible(a.Reason))
	}
	if always := Suggested(a.Suggestions); always != "" {
		out = append(out, "always: "+always)
	}
	return out
}
