package ask_test

import (
	"encoding/json"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/jsonx"
)

func TestReadingAChoice(t *testing.T) {
	one := ask.Question{Options: []ask.Option{{Label: "red"}, {Label: "dark blue"}}}
	many := one
	many.MultiSelect = true
	for _, tt := range []struct {
		of         ask.Question
		text, want string
		ok         bool
	}{
		{one, "2", "dark blue", true},
		{one, "3", "", false},
		{one, "0", "", false},
		{one, "1 2", "1 2", true}, // only one may be chosen, so these are words
		{many, "1, 2", "red, dark blue", true},
		{many, "1 9", "", false},
		{one, "neither", "neither", true},
	} {
		if got, ok := tt.of.Read(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %q, %v; want %q, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestAnswersGoIntoTheInput(t *testing.T) {
	var answers jsonx.Object
	answers.Set("Which?", "red")
	got, err := ask.WithAnswers(json.RawMessage(`{"questions":[],"more":1}`), answers)
	if want := `{"questions":[],"more":1,"answers":{"Which?":"red"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
