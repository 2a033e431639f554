package tui

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/ask"
)

func (c *conversation) showChoice(who string, q ask.Question) {
	c.screen.line(c.paint(amber, "? ") + who + c.paint(bold, Clean(q.Question)))
	for i, o := range q.Options {
		line := fmt.Sprintf("    %d  %s", i+1, oneLine(o.Label))
		if o.Description != "" {
			line += c.paint(dim, "  "+oneLine(o.Description))
		}
		c.screen.line(line)
	}
}

// choose records the answer to the open question, and shows the next one.
func (c *conversation) choose(ctx context.Context, q *question, text string) {
	if text == "/skip" {
		c.submit(ctx, q, ask.Answer{By: "person", Message: "The person did not want to answer. Decide for yourself, or go on without it."})
		return
	}
	answer, ok := q.choices[0].Read(text)
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
	input, err := ask.WithAnswers(q.ask.Input, q.answers)
	if err != nil {
		c.submit(ctx, q, ask.Answer{By: "person", Message: "The question had a form that could not be answered: " + err.Error()})
		return
	}
	c.submit(ctx, q, ask.Answer{By: "person", Allow: true, UpdatedInput: input})
}
