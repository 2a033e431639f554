package demo

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/internal/race"
	"github.com/cadre-dev/cadre/task"
)

// TestAnyOrder: whoever is handed whichever task in whatever order, the project
// ends up repaired, the work is shared, and everybody has left.
func TestAnyOrder(t *testing.T) {
	seeds := 12
	if os.Getenv("CADRE_TEST_ALL") != "" && !race.Enabled {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, checks := play(t, ScriptText(), uint64(seed))
			if !checks.Passed {
				t.Errorf("checks fail:\n%s", checks.Output)
			}
			for _, one := range s.tasks {
				if one.Status != task.Completed {
					t.Errorf("task #%s is %s", one.ID, one.Status)
				}
			}
			for _, mate := range s.agents[1:] {
				if !mate.gone {
					t.Errorf("%s has not left", mate.Name)
				}
			}
			for _, one := range s.tasks {
				if e, ok := one.Checked(); !ok || !e.Passed {
					t.Errorf("task #%s is not proved: %+v", one.ID, e)
				}
			}
			if s.early != 1 || s.late != 0 {
				t.Errorf("%d tasks were closed too early, want 1; %d waits were in vain, want 0", s.early, s.late)
			}
			if len(s.agents) != 4 {
				t.Errorf("%d agents, want a lead and three teammates", len(s.agents))
			}
			if !strings.HasPrefix(s.lead().last(), "tally works again: all 24 checks pass.") {
				t.Errorf("the lead ends with %q", s.lead().last())
			}
			if !slices.ContainsFunc(s.mail, fromPeer.MatchString) || !slices.ContainsFunc(s.mail, func(m string) bool { return strings.HasSuffix(m, ">team-lead") }) {
				t.Errorf("mail only between %v", s.mail)
			}
			if author, asker := s.tasks[1].Owner, s.tasks[3].Owner; author != asker {
				if !slices.Contains(s.mail, asker+">"+author) || !slices.Contains(s.mail, author+">"+asker) {
					t.Errorf("%s did not ask %s about money, or got no answer: %v", asker, author, s.mail)
				}
			}
			if blocked := s.tasks[3].BlockedBy; !slices.Equal(blocked, []string{"1", "2"}) {
				t.Errorf("the report is blocked by %v", blocked)
			}
		})
	}
}

// wrongEdits are changes of the script, each of which breaks one of its edits.
var wrongEdits = map[string][2]string{
	"octal":          {`1$cents - 100`, `$cents`},
	"one decimal":    {`cents=${amount#*.}0 ;;`, `cents=${amount#*.} ;;`},
	"three decimals": {`*.*) return 1 ;;`, `*.*) cents=00 ;;`},
	"no padding":     {`%s%s.%02d`, `%s%s.%d`},
	"sign":           {`cents=${cents#-}`, `cents=$cents`},
	"help":           {`--only CATEGORY  report this`, `-o CATEGORY  report this`},
	"readme":         {"| `--only CATEGORY` | report", "| `-o CATEGORY` | report"},
	"no total":       {`row total \"$(money \"$total\")\"`, `:`},
	"only ignored":   {`[ -z \"$2\" ] || `, `true || `},
	"status lost":    {`\"$category\") || return 1`, `\"$category\")`},
	"not found":      {`"report() {",`, `"report () {",`}, // the edit itself fails
}

// TestWrongEdit: with any one edit broken the checks fail, the lead says so, and
// the team still ends in order.
func TestWrongEdit(t *testing.T) {
	for name, change := range wrongEdits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := bytes.Replace(ScriptText(), []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(script, ScriptText()) {
				t.Fatalf("%q is not in the script", change[0])
			}
			s, checks := play(t, script, 7)
			if checks.Passed || len(checks.Failed()) == 0 {
				t.Errorf("the checks pass:\n%s", checks.Output)
			}
			if !strings.HasPrefix(s.lead().last(), "tally is not repaired: ") {
				t.Errorf("the lead ends with %q", s.lead().last())
			}
			for _, mate := range s.agents[1:] {
				if !mate.gone {
					t.Errorf("%s has not left", mate.Name)
				}
			}
		})
	}
}

// TestMissingEdit: each edit of the script is needed.
func TestMissingEdit(t *testing.T) {
	for _, name := range []string{"parse", "money", "help", "readme", "report"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := bytes.Replace(ScriptText(), []byte("${"+name+"_after}"), []byte("${"+name+"_before}"), 1)
			if bytes.Equal(script, ScriptText()) {
				t.Fatalf("the script has no %s_after", name)
			}
			s, checks := play(t, script, 3)
			if checks.Passed {
				t.Error("the checks pass")
			}
			if !strings.HasPrefix(s.lead().last(), "tally is not repaired: ") {
				t.Errorf("the lead ends with %q", s.lead().last())
			}
		})
	}
}

// TestCheckFailsFromOutside: what nobody of the team broke is noticed too.
func TestCheckFailsFromOutside(t *testing.T) {
	s, checks := play(t, ScriptText(), 5, func(s *sim) {
		path := s.dir + "/tests/weather.sh"
		if err := os.WriteFile(path, []byte("echo FAIL it rains\nexit 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if checks.Passed {
		t.Error("the checks pass")
	}
	if want := "tally is not repaired: 1 of 25 checks fail. The first is: weather it rains."; !strings.HasPrefix(s.lead().last(), want) {
		t.Errorf("the lead ends with %q", s.lead().last())
	}
}

// TestNobodyComesBack: a lead that waits in vain, since whoever is stuck can't
// tell it, looks for itself.
func TestNobodyComesBack(t *testing.T) {
	wrong := wrongEdits["octal"]
	script := bytes.Replace(ScriptText(), []byte(wrong[0]), []byte(wrong[1]), 1)
	s, _ := play(t, script, 6, func(s *sim) {
		s.denied = func(tool string, in map[string]any) string {
			if text, _ := in["content"].(string); tool == "SendMessage" && strings.HasPrefix(text, "I cannot finish") {
				return "Permission to use SendMessage has been denied."
			}
			return ""
		}
	})
	if s.late == 0 || !strings.HasPrefix(s.lead().last(), "tally is not repaired: ") {
		t.Errorf("%d waits in vain; the lead ends with %q", s.late, s.lead().last())
	}
}

// TestFailedTeammate: a lead that hears of a turn that failed does not wait on.
func TestFailedTeammate(t *testing.T) {
	broken := bytes.Replace(ScriptText(), []byte(`"name": "show amounts",
      "when": {
        "role": "teammate"`), []byte(`"name": "show amounts",
      "when": {
        "role": "sub-agent"`), 1)
	broken = bytes.Replace(broken, []byte(`"name": "see it pass",`), []byte(`"name": "see it pass", "fault": {"class": "server_error", "status": 500, "message": "gone"},`), 1)
	s, _ := play(t, broken, 8, func(s *sim) { s.mayFail = true })
	if s.late != 0 || !slices.ContainsFunc(s.lead().said, func(text string) bool { return strings.Contains(text, "could not continue") }) {
		t.Errorf("%d waits in vain; the lead said %q", s.late, s.lead().said)
	}
}

// TestDenied: a team that may not run its checks reports that it does not know.
func TestDenied(t *testing.T) {
	s, checks := play(t, ScriptText(), 2, func(s *sim) {
		s.denied = func(tool string, _ map[string]any) string {
			if tool == "Bash" {
				return "Permission to use Bash has been denied."
			}
			return ""
		}
	})
	if !strings.Contains(s.lead().last(), "I could not run the checks") {
		t.Errorf("the lead ends with %q", s.lead().last())
	}
	if checks.Passed {
		t.Error("nobody could close a task, and the checks pass")
	}
}
