package ask

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Question is one of those that an ask of the kind [Choice] holds (facts:
// claude-code §1, AskUserQuestion).
type Question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header"`
	Options     []Option `json:"options"`
	MultiSelect bool     `json:"multiSelect"`
}

// Option is one of its choices.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Questions reads the questions in a call's input; none when it has another
// shape, and then the call is approved or not like any other.
func Questions(input json.RawMessage) []Question {
	var in struct {
		Questions []Question `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	return in.Questions
}

// Read turns the numbers that a person entered into labels; other words are an
// answer themselves. ok is false for a number that is none of the choices.
func (q Question) Read(text string) (answer string, ok bool) {
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

// WithAnswers is a call's input with the answers in it, by question.
func WithAnswers(input json.RawMessage, answers jsonx.Object) (json.RawMessage, error) {
	var object jsonx.Object
	if err := json.Unmarshal(input, &object); err != nil {
		return nil, err
	}
	object.Set("answers", answers)
	return jsonx.Marshal(object)
}
