package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
)

// question is a pending ask, and the part of its answer that there is.
type question struct {
	ask     ask.Ask
	choices []ask.Question // of a Choice: what is left to be chosen, the first is open
	answers jsonx.Object
}

// asked queues a question and shows it when it is the first.
func (c *conversation) asked(a ask.Ask) {
	q := &question{ask: a}
	if a.Kind == ask.Choice {
		q.choices = ask.Questions(a.Input)
	}
	c.asks = append(c.asks, q)
	if len(c.asks) == 1 {
		c.showQuestion()
	}
}

// answered removes a question that was answered elsewhere, or by nobody, and says so: one
// that was answered here is removed already.
func (c *conversation) answered(id string, a ask.Answer) {
	for i, q := range c.asks {
		if q.ask.ID != id {
			continue
		}
		c.screen.endStream()
		c.screen.line(c.paint(dim, fmt.Sprintf("  (the question about %s %s)", Visible(q.ask.Tool), oneLine(a.Outcome()))))
		c.drop(i)
		return
	}
}

func (c *conversation) drop(i int) {
	c.asks = append(c.asks[:i:i], c.asks[i+1:]...)
	if i == 0 && len(c.asks) > 0 {
		c.showQuestion()
	}
}

func (c *conversation) showQuestion() {
	q := c.asks[0]
	c.screen.endStream()
	who := ""
	if q.ask.AgentName != "" {
		who = "[" + Visible(q.ask.AgentName) + "] "
	}
	if len(q.choices) > 0 {
		c.showChoice(who, q.choices[0])
		return
	}
	c.screen.line(c.paint(amber, "? ") + who + c.paint(bold, Visible(q.ask.Question)))
	for _, line := range details(q.ask.Tool, q.ask.Input) {
		c.screen.line("    " + line)
	}
	if q.ask.Reason != "" {
		c.screen.line(c.paint(dim, "  "+Visible(q.ask.Reason)))
	}
}

// prompt lists what can be entered.
func (q *question) prompt() string {
	switch {
	case len(q.choices) > 0 && q.choices[0].MultiSelect:
		return "numbers, or your own words, or /skip: "
	case len(q.choices) > 0:
		return "number, or your own words, or /skip: "
	}
	if q.ask.Kind == ask.Plan {
		return "y(es), n(o), or what to change: "
	}
	if always := Suggested(q.ask.Suggestions); always != "" {
		return "y(es), a(lways: " + always + "), n(o), or what to do instead: "
	}
	return "y(es), n(o), or what to do instead: "
}

// answer answers the first question with what was entered.
func (c *conversation) answer(ctx context.Context, text string) {
	q := c.asks[0]
	text = strings.TrimSpace(text)
	switch {
	case text == "": // asked again
	case len(q.choices) > 0:
		c.choose(ctx, q, text)
	default:
		c.submit(ctx, q, q.verdict(text))
	}
}

// verdict reads the answer to a permission question. What is neither yes nor no
// is a no with that message.
func (q *question) verdict(text string) ask.Answer {
	answer := ask.Answer{By: "person"}
	switch strings.ToLower(text) {
	case "y", "yes":
		answer.Allow = true
	case "a", "always":
		answer.Allow, answer.Updates = true, q.ask.Suggestions
	case "n", "no":
	default:
		answer.Message = text
	}
	return answer
}

// submit gives the answer. [event.Answered] says that it counts.
func (c *conversation) submit(ctx context.Context, q *question, answer ask.Answer) {
	err := c.Session.Answer(ctx, q.ask.ID, answer)
	if err != nil && !errors.Is(err, ask.ErrUnknown) && !errors.Is(err, ask.ErrAnswered) {
		c.lines.noticed(event.Agent{}, event.Noticed{Level: "error", Text: err.Error()})
		return
	}
	for i := range c.asks {
		if c.asks[i] == q {
			c.drop(i)
			return
		}
	}
}

// Suggested names what "always" would change.
func Suggested(suggestions []ask.Suggestion) string {
	var parts []string
	for _, s := range suggestions {
		if text := changed(s); text != "" {
			parts = append(parts, text+where[s.Destination])
		}
	}
	return Visible(strings.ReplaceAll(strings.Join(parts, ", "), "\n", " "))
}

// where names the place of a change that outlives the session.
var where = map[string]string{
	ask.LocalSettings:   " (in .claude/settings.local.json)",
	ask.ProjectSettings: " (in .claude/settings.json)",
	ask.UserSettings:    " (in your own settings.json)",
}

// changed describes a change of the rules; "" for an unknown type.
func changed(s ask.Suggestion) string {
	var rules []string
	for _, r := range s.Rules {
		rule := r.ToolName
		if r.RuleContent != "" {
			rule += "(" + r.RuleContent + ")"
		}
		rules = append(rules, rule)
	}
	named, folders := strings.Join(rules, ", "), strings.Join(s.Directories, ", ")
	switch s.Type {
	case ask.AddRules:
		return s.Behavior + " " + named
	case ask.ReplaceRules:
		return s.Behavior + " only " + named
	case ask.RemoveRules:
		return "no longer " + s.Behavior + " " + named
	case ask.SetMode:
		return "mode " + s.Mode
	case ask.AddDirectories:
		return "work in " + folders
	case ask.RemoveDirectories:
		return "no longer work in " + folders
	}
	return ""
}

// maxDetails is how many lines of a call's input a question shows. A command and
// a plan are always shown whole.
const maxDetails = 40

// details shows what a person is to approve, line by line, nothing hidden.
func details(tool string, input json.RawMessage) []string {
	var in struct {
		Command   string `json:"command"`
		FilePath  string `json:"file_path"`
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
		Content   string `json:"content"`
		Plan      string `json:"plan"`
	}
	if json.Unmarshal(input, &in) != nil {
		return limited(lines("", string(input)))
	}
	switch {
	case in.Command != "":
		return lines("", in.Command)
	case in.Plan != "" && tool == "ExitPlanMode":
		return lines("", in.Plan)
	case in.FilePath != "" && (in.OldString != "" || in.NewString != ""):
		change := append(lines("- ", in.OldString), lines("+ ", in.NewString)...)
		return append(lines("", in.FilePath), limited(change)...)
	case in.FilePath != "" && in.Content != "":
		return append(lines("", in.FilePath), limited(lines("+ ", in.Content))...)
	}
	return limited(lines("", tool+" "+string(input)))
}

func lines(mark, text string) []string {
	if text == "" {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, mark+visibleLine(line))
	}
	return out
}

// visibleLine keeps tabs, which are seen.
func visibleLine(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = Visible(parts[i])
	}
	return strings.Join(parts, "\t")
}

func limited(lines []string) []string {
	if len(lines) <= maxDetails {
		return lines
	}
	return append(lines[:maxDetails:maxDetails], fmt.Sprintf("… and %d more lines", len(lines)-maxDetails))
}
