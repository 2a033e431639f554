package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
)

// condition reports whether something holds, and adds to v what its regexps
// captured. After false, v may hold anything.
type condition func(c *Conversation, v variables) bool

// all holds when every condition does.
func all(conditions []condition) condition {
	return func(c *Conversation, v variables) bool {
		for _, holds := range conditions {
			if !holds(c, v) {
				return false
			}
		}
		return true
	}
}

// compile turns w into a condition, and adds to known the names that it gives a
// value.
func (w When) compile(known names) (condition, error) {
	var b builder
	b.known = known
	if w.Agent != "" {
		b.agent(w.Agent)
	}
	if w.Role != "" {
		b.role(w.Role)
	}
	if w.Task != "" {
		b.text("task", w.Task, func(c *Conversation) []string {
			if t, ok := c.Task(); ok {
				return []string{t.Text}
			}
			return nil
		})
	}
	if w.Input != "" {
		b.text("input", w.Input, func(c *Conversation) []string { return []string{c.Input()} })
	}
	for _, heard := range w.Heard {
		b.text("heard", heard, func(c *Conversation) []string {
			texts := make([]string, 0, len(c.Inputs))
			for _, in := range slices.Backward(c.Inputs) {
				texts = append(texts, in.Text)
			}
			return texts
		})
	}
	for _, did := range w.Done {
		b.did(did)
	}
	b.any(w.Any)
	b.not(w.Not)
	if w.Rounds > 0 {
		b.add(func(c *Conversation, _ variables) bool { return c.Rounds() <= w.Rounds })
	}
	return all(b.conditions), b.err
}

// builder collects conditions until the first error.
type builder struct {
	conditions []condition
	known      names
	err        error
}

func (b *builder) add(c condition) { b.conditions = append(b.conditions, c) }

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) agent(glob string) {
	if err := b.known.check(glob); err != nil {
		b.fail(fmt.Errorf("agent: %w", err))
	}
	if _, err := path.Match(glob, ""); err != nil {
		b.fail(fmt.Errorf("agent %q: %w", glob, err))
	}
	b.add(func(c *Conversation, v variables) bool {
		pattern, err := v.expand(glob, literally)
		if err != nil {
			return false
		}
		ok, err := path.Match(pattern, c.Agent.Name)
		return ok && err == nil
	})
}

func (b *builder) role(role Role) {
	if !slices.Contains([]Role{Lead, Teammate, SubAgent}, role) {
		b.fail(fmt.Errorf("role %q is not one of %s, %s, %s", role, Lead, Teammate, SubAgent))
	}
	b.add(func(c *Conversation, _ variables) bool { return c.Role() == role })
}

// text adds a condition on the first of several texts that matches.
func (b *builder) text(what, expr string, texts func(*Conversation) []string) {
	p, err := newPattern(expr, false, b.known)
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", what, err))
		return
	}
	b.add(func(c *Conversation, v variables) bool {
		return slices.ContainsFunc(texts(c), func(text string) bool { return p.match(text, v) })
	})
}

func (b *builder) did(did Did) {
	matches, err := did.compile(b.known)
	if err != nil {
		b.fail(fmt.Errorf("done %s: %w", did.Tool, err))
		return
	}
	b.add(func(c *Conversation, v variables) bool { return matches(c, v) >= 0 })
}

func (b *builder) any(options []When) {
	if len(options) == 0 {
		return
	}
	var holds []condition
	for _, w := range options {
		h, err := w.compile(b.known)
		if err != nil {
			b.fail(err)
		}
		holds = append(holds, h)
	}
	b.add(func(c *Conversation, v variables) bool {
		for _, h := range holds {
			trial := maps.Clone(v)
			if h(c, trial) {
				maps.Copy(v, trial)
				return true
			}
		}
		return false
	})
}

func (b *builder) not(options []When) {
	for _, w := range options {
		holds, err := w.compile(maps.Clone(b.known)) // what does not hold captures nothing
		if err != nil {
			b.fail(fmt.Errorf("not: %w", err))
		}
		b.add(func(c *Conversation, v variables) bool { return !holds(c, maps.Clone(v)) })
	}
}

// finder returns the place of a call in the conversation, or -1.
type finder func(c *Conversation, v variables) int

// compile turns d into a function that finds the newest call that fits.
func (d Did) compile(known names) (finder, error) {
	tool, err := newPattern(d.Tool, true, known)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]pattern, len(d.Input))
	for _, name := range slices.Sorted(maps.Keys(d.Input)) {
		if fields[name], err = newPattern(d.Input[name], true, known); err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
	}
	result, err := newPattern(d.Result, false, known)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	since, err := d.After.compile(known)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]Outcome{"", OK, Failed, Either}, d.Outcome) {
		return nil, fmt.Errorf("outcome %q is not one of %s, %s, %s", d.Outcome, OK, Failed, Either)
	}
	return func(c *Conversation, v variables) int {
		from, ok := since(c, v)
		if !ok {
			return -1
		}
		for _, made := range slices.Backward(c.Made) {
			if made.at <= from {
				return -1
			}
			trial := maps.Clone(v)
			if d.Outcome.fits(made.Failed) && tool.match(made.Tool, trial) &&
				matchFields(fields, made.Input, trial) && result.match(made.Result, trial) {
				maps.Copy(v, trial)
				return made.at
			}
		}
		return -1
	}, nil
}

func (o Outcome) fits(failed bool) bool {
	return o == Either || failed == (o == Failed)
}

func matchFields(fields map[string]pattern, input json.RawMessage, v variables) bool {
	if len(fields) == 0 {
		return true
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(input, &values) != nil {
		return false
	}
	for name, p := range fields {
		raw, ok := values[name]
		if !ok {
			return false
		}
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // what is not a string is matched as JSON
		if !p.match(text, v) {
			return false
		}
	}
	return true
}

// compile turns a into a function that returns the block after which calls
// count; ok is false when there is no such point.
func (a *After) compile(known names) (func(*Conversation, variables) (int, bool), error) {
	switch {
	case a == nil:
		return func(*Conversation, variables) (int, bool) { return 0, true }, nil
	case a.Call != nil:
		find, err := a.Call.compile(known)
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", a.Call.Tool, err)
		}
		return func(c *Conversation, v variables) (int, bool) {
			at := find(c, v)
			return at, at >= 0
		}, nil
	case !slices.Contains([]Point{TaskStart, NewestInput, LastRound}, a.Point):
		return nil, fmt.Errorf("after %q is not one of %s, %s, %s", a.Point, TaskStart, NewestInput, LastRound)
	}
	return func(c *Conversation, _ variables) (int, bool) { return c.point(a.Point) }, nil
}

// pattern is a regexp that may have placeholders in it.
type pattern struct {
	text  string
	whole bool
	fixed *regexp.Regexp // nil when the text has placeholders
}

// newPattern checks expr against the names known so far and adds those of its
// groups. An empty expr matches everything.
func newPattern(expr string, whole bool, known names) (pattern, error) {
	if err := known.check(expr); err != nil {
		return pattern{}, err
	}
	re, err := compileExpr(placeholder().ReplaceAllString(expr, "x"), whole)
	if err != nil {
		return pattern{}, err
	}
	for _, name := range re.SubexpNames() {
		if name != "" {
			known[name] = true
		}
	}
	p := pattern{text: expr, whole: whole}
	if !placeholder().MatchString(expr) {
		p.fixed = re
	}
	return p, nil
}

func compileExpr(expr string, whole bool) (*regexp.Regexp, error) {
	if whole && expr != "" {
		expr = `(?s)\A(?:` + expr + `)\z`
	}
	return regexp.Compile(expr)
}

// match reports whether the pattern matches text, and if so adds its named
// groups to v.
func (p pattern) match(text string, v variables) bool {
	re := p.fixed
	if re == nil {
		expr, err := v.expand(p.text, regexp.QuoteMeta)
		if err != nil {
			return false
		}
		if re, err = compileExpr(expr, p.whole); err != nil {
			return false
		}
	}
	m := re.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	for i, name := range re.SubexpNames() {
		if name != "" {
			v[name] = m[i]
		}
	}
	return true
}
