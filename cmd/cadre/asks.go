package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/tui"
)

func newAsksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "asks", Short: "List the questions that agents are waiting for", Args: noArgs,
		Long: "Lists the questions of all agents, in whatever process they run: may this call run, is this plan good,\nwhich of these choices. cadre answer answers them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPlaces(func(places []place) error { return listAsks(cmd.Context(), places[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// askView is a question as the verbs show it.
type askView struct {
	ask.Ask
	Open bool `json:"open"` // its process is there
}

func (p place) asks(ctx context.Context) ([]askView, error) {
	all, err := p.Desk().Open(ctx)
	if err != nil {
		return nil, err
	}
	views := []askView{}
	for _, a := range all {
		open, err := p.isOpen(ctx, a.SessionID)
		if err != nil {
			return nil, err
		}
		views = append(views, askView{a, open})
	}
	return views, nil
}

func listAsks(ctx context.Context, p place, asJSON bool) error {
	views, err := p.asks(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(views)
	case len(views) == 0:
		return writeOut([]byte("There are no open questions.\n"))
	}
	for i, v := range views {
		if i > 0 {
			if err := writeOut([]byte("\n")); err != nil {
				return err
			}
		}
		if err := writeOut([]byte(strings.Join(v.lines(time.Now()), "\n") + "\n")); err != nil {
			return err
		}
	}
	return nil
}

// who is the agent that asks, for people.
func (v askView) who() string {
	who := "the lead"
	if v.AgentName != "" {
		who = v.AgentName
	}
	if v.Team != "" {
		who += " of " + v.Team
	}
	return who
}

// lines shows everything that a person needs to know to answer.
func (v askView) lines(now time.Time) []string {
	head := fmt.Sprintf("%s  %s asks, %s ago", v.ID, v.who(), now.Sub(v.Asked).Round(time.Second))
	if !v.Deadline.IsZero() {
		head += fmt.Sprintf(", until %s", v.Deadline.Local().Format(time.DateTime))
	}
	if !v.Ask.Deadline.IsZero() && v.Deadline.Before(now) {
		head += " (over)"
	}
	if !v.Open {
		head += "; its process is gone, and an answer will be read when the session is resumed"
	}
	lines := []string{tui.Visible(head)}
	for _, line := range tui.AskLines(v.Ask) {
		lines = append(lines, "  "+line)
	}
	return lines
}

func newAnswerCommand() *cobra.Command {
	var reply reply
	cmd := &cobra.Command{
		Use: "answer ID allow|deny", Short: "Answer a question that cadre asks lists",
		Args:              exactly(2, "the id of a question (or the beginning of it), and allow or deny"),
		ValidArgsFunction: complete(askCandidates, verdictCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error {
				return answerAsk(cmd.Context(), places[0], args[0], args[1], reply)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&reply.message, "message", "m", "", "tell the agent why, or what to take care of")
	flags.BoolVar(&reply.always, "always", false, "with allow: also accept the suggested rules, so that it need not ask again")
	flags.StringArrayVar(&reply.choices, "choose", nil, "with allow: a number or your own words, once for each question of a choice")
	flags.StringVar(&reply.input, "input", "", "with allow: run the call with this `JSON` as its input")
	flags.BoolVar(&reply.stop, "interrupt", false, "with deny: also end the agent's turn")
	return cmd
}

// reply is what the flags of answer say.
type reply struct {
	message, input string
	choices        []string
	always, stop   bool
}

func answerAsk(ctx context.Context, p place, id, verdict string, r reply) error {
	a, err := p.findAsk(ctx, id)
	if err != nil {
		return err
	}
	answer, err := r.answer(a.Ask, verdict)
	if err != nil {
		return err
	}
	switch err := p.Desk().Leave(ctx, a.ID, answer); {
	case errors.Is(err, ask.ErrAnswered):
		return &exit{code: exitFailed, err: fmt.Errorf("%s has been answered already", a.ID)}
	case errors.Is(err, ask.ErrUnknown):
		return &exit{code: exitFailed, err: fmt.Errorf("%s is no longer open", a.ID)}
	case err != nil:
		return err
	}
	if !a.Open {
		return writeOut([]byte("The answer is kept, and will be read when the session is resumed: cadre --resume " + a.SessionID + "\n"))
	}
	return writeOut([]byte("Answered." + r.kept(a.Ask) + "\n"))
}

// kept says what an answer changes beside the call that it is about; "" for nothing.
func (r reply) kept(a ask.Ask) string {
	if !r.always {
		return ""
	}
	return " From now on: " + tui.Suggested(a.Suggestions) + "."
}

func (p place) findAsk(ctx context.Context, id string) (askView, error) {
	all, err := p.asks(ctx)
	if err != nil {
		return askView{}, err
	}
	var found []askView
	for _, a := range all {
		if a.ID == id {
			return a, nil
		}
		if id != "" && strings.HasPrefix(a.ID, id) { // an unset variable names nothing
			found = append(found, a)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := usagef("no question %q is open", id)
	if len(found) > 1 {
		matches := make([]string, len(found))
		for i, a := range found {
			matches[i] = a.ID
		}
		e = usagef("%q is the beginning of %d questions: %s", id, len(found), strings.Join(matches, ", "))
	}
	var ids []string
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	e.hint = cmp.Or(didYouMean(near.Names(id, ids)), "cadre asks lists them.")
	return askView{}, e
}

// answer is what the flags mean for this question.
func (r reply) answer(a ask.Ask, verdict string) (ask.Answer, error) {
	answer := ask.Answer{Message: r.message, By: "person"}
	switch verdict {
	case "allow":
		answer.Allow = true
	case "deny":
		if r.always || r.input != "" || len(r.choices) > 0 {
			return answer, usagef("--always, --input and --choose go with allow")
		}
		answer.Interrupt = r.stop
		return answer, nil
	default:
		return answer, usagef("%q: want allow or deny", verdict)
	}
	if r.stop {
		return answer, usagef("--interrupt goes with deny")
	}
	if r.always {
		if len(a.Suggestions) == 0 {
			return answer, usagef("%s suggests no rule that --always could accept", a.ID)
		}
		answer.Updates = a.Suggestions
	}
	input, err := r.changed(a)
	answer.UpdatedInput = input
	return answer, err
}

// changed is the input that the call gets; nil: as it is.
func (r reply) changed(a ask.Ask) (json.RawMessage, error) {
	questions := ask.Questions(a.Input)
	isChoice := a.Kind == ask.Choice && len(questions) > 0
	switch {
	case r.input != "" && len(r.choices) > 0:
		return nil, usagef("--input and --choose exclude each other")
	case r.input != "":
		if !json.Valid([]byte(r.input)) {
			return nil, usagef("--input is not JSON")
		}
		return json.RawMessage(r.input), nil
	case !isChoice && len(r.choices) > 0:
		return nil, usagef("%s is no choice: leave --choose out", a.ID)
	case !isChoice:
		return nil, nil
	case len(r.choices) != len(questions):
		return nil, usagef("%s has %s: give --choose for each", a.ID, count(len(questions), "question"))
	}
	var answers jsonx.Object
	for i, q := range questions {
		chosen, ok := q.Read(r.choices[i])
		if !ok {
			return nil, usagef("--choose %q: the choices are 1 to %d", r.choices[i], len(q.Options))
		}
		answers.Set(q.Question, chosen)
	}
	return ask.WithAnswers(a.Input, answers)
}
