package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
)

type askUser struct{}

// AskUserQuestion is the tool that lets a model ask the person. The questions
// are asked where permissions are: the answers come back in the call's input.
func AskUserQuestion() tool.Tool { return askUser{} }

const askUserDescription = `Asks the person one to four questions with options to choose from, and waits for the answers. Use it when you need a decision that is theirs to make: between approaches that differ in what matters to them, about what they meant, or about something that cannot be undone.

- Do not ask what you can find out by reading the code, or what has a sensible default that you can mention in your reply. Do not ask whether you may continue, or whether a plan is fine.
- Ask related questions in one call. Give two to four options each; they should be mutually exclusive unless multiSelect is true. The person can always answer something else in their own words, so there is no need for an option "other".
- If you recommend an option, put it first and add "(recommended)" to its label.
- question: a whole sentence with all that is needed to decide. header: one or two words for a tab, like "Database". label: one to five words. description: what choosing it means, and what it costs.
- When there is no person to ask (in a script, for example) there is no answer: then decide yourself, and say in your reply what you decided.`

const askUserSchema = `{"type":"object","properties":{` +
	`"questions":{"minItems":1,"maxItems":4,"type":"array","description":"The questions","items":{"type":"object","properties":{` +
	`"question":{"type":"string","description":"The question, as a whole sentence"},` +
	`"header":{"type":"string","description":"The subject in one or two words, at most 12 characters"},` +
	`"options":{"minItems":2,"maxItems":4,"type":"array","description":"The answers to choose from","items":{"type":"object","properties":{` +
	`"label":{"type":"string","description":"The answer in one to five words"},` +
	`"description":{"type":"string","description":"What it means to choose it"}` +
	`},"required":["label","description"],"additionalProperties":false}},` +
	`"multiSelect":{"default":false,"type":"boolean","description":"Whether several options can be chosen"}` +
	`},"required":["question","header","options","multiSelect"],"additionalProperties":false}},` +
	`"answers":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"string"},"description":"Filled in for the person; leave it out"},` +
	`"metadata":{"type":"object","properties":{"source":{"type":"string","description":"Where the questions come from"}},"additionalProperties":false,"description":"Not shown; leave it out"}` +
	`},"required":["questions"],"additionalProperties":false}`

var askUserSpec = tool.Spec{
	Name: "AskUserQuestion", Description: askUserDescription, Schema: tool.NewSchema(askUserSchema),
	ReadOnly: true, Delegates: true,
}

func (askUser) Spec() tool.Spec { return askUserSpec }

func (askUser) Access(context.Context, tool.Call) tool.Access { return tool.Access{Ask: true} }

type askUserInput struct {
	Questions []struct {
		Question string `json:"question"`
	} `json:"questions"`
	Answers map[string]string `json:"answers"`
}

// Run turns the answers in the input into a result. Whoever asked the person has
// added them there, by question (facts: sdk-contract §3.2).
func (askUser) Run(_ context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[askUserInput](call)
	if failed != nil {
		return *failed
	}
	if len(in.Answers) == 0 {
		return tool.Error("Nobody answered: there is no person to ask here, or they gave no answer. Decide yourself what is most likely wanted, continue, and say in your reply what you decided and why.")
	}
	var b strings.Builder
	b.WriteString("The person answered:")
	rest := maps.Clone(in.Answers)
	for _, q := range in.Questions {
		answer, ok := in.Answers[q.Question]
		if !ok {
			answer = "(no answer: decide yourself)"
		}
		delete(rest, q.Question)
		fmt.Fprintf(&b, "\n- %s -> %s", q.Question, answer)
	}
	for _, question := range slices.Sorted(maps.Keys(rest)) { // answers to what was not asked in these words
		fmt.Fprintf(&b, "\n- %s -> %s", question, rest[question])
	}
	var raw struct {
		Questions json.RawMessage   `json:"questions"`
		Answers   map[string]string `json:"answers"`
	}
	_ = json.Unmarshal(call.Input, &raw) // it was read before
	result := tool.Text(b.String())
	result.Structured = jsonx.MustMarshal(raw)
	return result
}
