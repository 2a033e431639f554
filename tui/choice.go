package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/jsonx"
)

// choice is one of the questions that an agent asks with AskUserQuestion
// (facts: claude-code §1).
type choice struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
	MultiSelect bool `json:"multiSelect"`
}

// choicesOf reads the questions; none when the input has another shape, and
// then the call is approved or not like any other.
func choicesOf(input json.RawMessage) []choice {
	var in struct {
		Questions []choice `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	return in.Questions
}

func (c *conversation) showChoice(who string, q choice) {
	c.screen.line(c.paint(amber, "? ") + who + c.paint(bold, Clean(q.Question)))
	for i, o := range q.Options {
		line := fmt.Sprintf("    %d  %s", i+1, oneLine(o.Label))
		if o.Description != "" {
			line += c.paint(dim, "  "+oneLine(o.Description))
		}
		c.screen.line(line)
	}
}

// choose takes the answer to the open question, and goes on to the next one.
func (c *conversation) choose(ctx context.Context, q *question, text string) {
	if text == "/skip" {
		c.settle(ctx, q, ask.Answer{By: "person", Message: "The person did not want to answer. Decide for yourself, or go on without it."})
		return
	}
	answer, ok := q.choices[0].read(text)
	if !ok {
		c.screen.line(fmt.Sprintf("The choices are 1 to %d.", len(q.choices[0].Options)))
		return
	}
	q.answers.Set(q.choices[0].Question, answer)
	q.choices = q.choices[1:]
	if len(q.choices) > 0 {
		c.showQuestion()
		return
	}
	input, err := withAnswers(q.ask.Input, q.answers)
	if err != nil {
		c.settle(ctx, q, ask.Answer{By: "person", Message: "The question had a form that could not be answered: " + err.Error()})
		return
	}
	c.settle(ctx, q, ask.Answer{By: "person", Allow: true, UpdatedInput: input})
}

// read turns numbers into labels; other words are an answer themselves. ok is
// false for a number that is none of the choices.
func (q choice) read(text string) (answer string, ok bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	var labels []string
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || len(words) > 1 && !q.MultiSelect {
			return text, true
		}
		if n < 1 || n > len(q.Options) {
			return "", false
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	return strings.Join(labels, ", "), len(labels) > 0
}

// withAnswers is the call's input with the answers in it (facts: claude-code
// §1, AskUserQuestion).
func withAnswers(input json.RawMessage, answers jsonx.Object) (json.RawMessage, error) {
	var object jsonx.Object
	if err := json.Unmarshal(input, &object); err != nil {
		return nil, err
	}
	object.Set("answers", answers)
	return jsonx.Marshal(object)
}
