package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/provider"
)

// Script is a list of rules and the values of the names they may use.
type Script struct {
	Vars  map[string]string // ${name} everywhere in the rules; in a file, a text or a list of its lines
	Rules []Rule
}

// Load reads a script file.
func Load(path string) (Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	s, err := Parse(data)
	if err != nil {
		return Script{}, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script: JSON, with comments and trailing commas allowed. It
// refuses unknown fields.
func Parse(data []byte) (Script, error) {
	plain, err := hujson.Standardize(data)
	if err != nil {
		return Script{}, err
	}
	var file struct {
		Vars  map[string]List[string] `json:"vars"`
		Rules []json.RawMessage       `json:"rules"`
	}
	if err := strictly(plain, &file); err != nil {
		return Script{}, err
	}
	s := Script{Vars: make(map[string]string), Rules: make([]Rule, len(file.Rules))}
	for name, lines := range file.Vars {
		s.Vars[name] = strings.Join(lines, "\n")
	}
	for i, raw := range file.Rules {
		if err := json.Unmarshal(raw, &s.Rules[i]); err != nil {
			return Script{}, fmt.Errorf("%s: %w", label(i, s.Rules[i]), err)
		}
	}
	_, err = s.Model() // so that every error shows here
	return s, err
}

// Model makes a model that answers by the rules. It fails when a regexp does
// not compile or a placeholder has nothing that gives it a value.
func (s Script) Model() (*Model, error) {
	vars := maps.Clone(s.Vars)
	rules := make([]compiled, len(s.Rules))
	for i, r := range s.Rules {
		known := make(names)
		for name := range vars {
			known[name] = true
		}
		for _, name := range builtin {
			known[name] = true
		}
		holds, err := r.When.compile(known)
		if err == nil {
			err = known.checkReply(r.Reply)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label(i, r), err)
		}
		rules[i] = compiled{r, holds, label(i, r)}
	}
	return &Model{answer: func(req provider.Request) (Reply, error) {
		return answer(rules, vars, Read(req))
	}}, nil
}

type compiled struct {
	Rule
	holds condition
	label string
}

func label(i int, r Rule) string {
	if r.Name == "" {
		return fmt.Sprintf("rule %d", i+1)
	}
	return fmt.Sprintf("rule %d (%s)", i+1, r.Name)
}

// answer is the reply of the first rule that matches.
func answer(rules []compiled, vars map[string]string, c *Conversation) (Reply, error) {
	initial := start(vars, c)
	for _, r := range rules {
		v := maps.Clone(initial)
		if !r.holds(c, v) {
			continue
		}
		if r.Answer != nil {
			return r.Answer(c), nil
		}
		reply, err := v.reply(r.Reply)
		if err != nil {
			return Reply{}, &provider.Error{Class: provider.Invalid, Type: "bad_rule", Message: r.label + ": " + err.Error()}
		}
		return reply, nil
	}
	return Reply{}, noRule(c)
}
