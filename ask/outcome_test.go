package ask_test

import (
	"testing"

	"github.com/cadre-dev/cadre/ask"
)

// An answer that was given in another process is neither a yes nor a no here.
func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		answer ask.Answer
		want   string
	}{
		{ask.Answer{Allow: true, By: ask.ByPerson}, "was answered: yes"},
		{ask.Answer{By: ask.ByPerson}, "was answered: no"},
		{ask.Answer{By: ask.ByPerson, Message: "later"}, "was answered: no (later)"},
		{ask.Answer{By: ask.ByElsewhere}, "was answered elsewhere"},
		{ask.Answer{By: ask.ByDeadline, Message: "late"}, "was denied: nobody answered in time"},
	} {
		if got := tt.answer.Outcome(); got != tt.want {
			t.Errorf("%+v %s, want %s", tt.answer, got, tt.want)
		}
	}
}
