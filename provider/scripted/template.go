package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/lazy"
)

// variables are the values of ${name} while a rule is tried.
type variables map[string]string

// placeholder is ${name}; written $${name} it stands for itself, which shell code
// in a reply needs.
var placeholder = lazy.Regexp(`\$?\$\{(\w+)\}`)

// nameIn returns the name in a match of placeholder, "" when it was escaped.
func nameIn(match string) string {
	if strings.HasPrefix(match, "$$") {
		return ""
	}
	return match[2 : len(match)-1]
}

// builtin are the names that a request sets; the last two only while the agent
// works on a task.
var builtin = []string{"me", "team", "task", "subject"}

// start returns the variables that hold before any condition is tried.
func start(vars map[string]string, c *Conversation) variables {
	v := make(variables, len(vars)+len(builtin))
	maps.Copy(v, vars)
	v["me"], v["team"] = c.Agent.Name, c.Agent.Team
	if task, ok := c.Task(); ok {
		v["task"] = task.ID
		first, _, _ := strings.Cut(task.Text, "\n")
		_, v["subject"], _ = strings.Cut(first, ": ")
	}
	return v
}

// expand replaces the placeholders of text by their values as quote spells
// them. A name without a value is an error.
func (v variables) expand(text string, quote func(string) string) (string, error) {
	var missing []string
	out := placeholder().ReplaceAllStringFunc(text, func(m string) string {
		name := nameIn(m)
		if name == "" {
			return m[1:]
		}
		value, ok := v[name]
		if !ok {
			missing = append(missing, m)
		}
		return quote(value)
	})
	if missing != nil {
		return "", fmt.Errorf("%s has no value", strings.Join(missing, ", "))
	}
	return out, nil
}

func literally(s string) string { return s }

// inJSON spells a value as the inside of a JSON string.
func inJSON(s string) string {
	quoted := jsonx.MustMarshal(s)
	return string(quoted[1 : len(quoted)-1])
}

// reply fills in the placeholders of r.
func (v variables) reply(r Reply) (Reply, error) {
	var err error
	if r.Say, err = v.expand(r.Say, literally); err != nil {
		return Reply{}, err
	}
	if r.Think, err = v.expand(r.Think, literally); err != nil {
		return Reply{}, err
	}
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		input, err := v.expand(string(r.Calls[i].Input), inJSON)
		if err != nil {
			return Reply{}, fmt.Errorf("input of %s: %w", r.Calls[i].Tool, err)
		}
		// A script's line ends and indents are not part of what is asked for.
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(input)); err != nil && input != "" {
			return Reply{}, fmt.Errorf("input of %s: %w", r.Calls[i].Tool, err)
		}
		r.Calls[i].Input = compact.Bytes()
	}
	return r, nil
}

// names is what may have a value at some place of a rule: for finding typing
// errors before a script runs.
type names map[string]bool

// check reports the first placeholder of text that nothing can give a value.
func (n names) check(text string) error {
	for _, m := range placeholder().FindAllString(text, -1) {
		if name := nameIn(m); name != "" && !n[name] {
			return fmt.Errorf("%s is set by nothing before it", m)
		}
	}
	return nil
}

// checkReply does so for all of a reply, and checks that inputs are objects.
func (n names) checkReply(r Reply) error {
	for _, text := range []string{r.Say, r.Think} {
		if err := n.check(text); err != nil {
			return err
		}
	}
	for _, call := range r.Calls {
		if call.Tool == "" {
			return fmt.Errorf("a call names no tool")
		}
		var object map[string]json.RawMessage
		if len(call.Input) > 0 && json.Unmarshal(call.Input, &object) != nil {
			return fmt.Errorf("input of %s is not a JSON object", call.Tool)
		}
		if err := n.check(string(call.Input)); err != nil {
			return fmt.Errorf("input of %s: %w", call.Tool, err)
		}
	}
	return nil
}
