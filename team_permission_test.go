package cadre_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/team/protocol"
)

// question waits until an agent has a question before the person who sits in front
// of the lead, which the front end is told of as an event.
func (w *teamWorld) question(t *testing.T, kind ask.Kind, agent string) (a ask.Ask) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	settled := make(map[string]bool)
	for ev := range w.Session().Events(ctx, 0) {
		switch body := ev.Body.(type) {
		case event.Answered:
			settled[body.ID] = true
		case event.Asked:
			if body.Ask.Kind == kind && body.Ask.AgentName == agent && !slices.Contains(w.asked, body.Ask.ID) && !settled[body.Ask.ID] {
				w.asked = append(w.asked, body.Ask.ID)
				return body.Ask
			}
		}
	}
	t.Fatalf("%s has asked nothing", agent)
	return a
}

// answer answers an agent's next question in front of the lead.
func (w *teamWorld) answer(t *testing.T, kind ask.Kind, agent string, answer ask.Answer) ask.Ask {
	t.Helper()
	a := w.question(t, kind, agent)
	if err := w.Session().Answer(t.Context(), a.ID, answer); err != nil {
		t.Fatal(err)
	}
	return a
}

// asking opens a lead that does not skip permissions, with somebody in front, and
// one teammate.
func (w *teamWorld) asking(t *testing.T, change func(*cadre.Config)) {
	t.Helper()
	w.open(t, func(c *cadre.Config) {
		c.SkipPermissions = false
		if change != nil {
			change(c)
		}
	})
	w.form(t, "ann")
	t.Cleanup(w.Session().Attend())
}

// A question that is open when the lead is killed waits for the person in front of
// the resumed lead, also when it comes before the front end does.
func TestAnOpenQuestionWaitsForTheResumedLead(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.settings(t, `{"orphanGraceMs": 300, "askDeadlineMs": 600000}`) // answers may come from outside
		begin := order{ID: "begin", Calls: forming("ann")}
		lead := w.leadConfig()
		lead.Prompt, lead.Asks = begin.text(), true
		kill := startLead(t, lead)
		w.idles(t, "ann", 1)
		w.give(t, "ann", order{Calls: []scripted.Call{running("echo asked > asked.txt")}})
		eventually(t, "ann asks", func() bool { return len(w.questions(t)) == 1 })
		if w.apart {
			eventually(t, "the lead has its question", func() bool { return len(controls[protocol.PermissionRequest](t, w, mailbox.LeadName)) > 0 })
		}
		kill()
		w.settings(t, `{"orphanGraceMs": 300}`)
		w.resumeInteractive(t)
		again := w.question(t, ask.Permission, "ann")
		t.Cleanup(w.Session().Attend())
		contains(t, string(again.Input), "asked.txt")
		if err := w.Session().Answer(t.Context(), again.ID, ask.Answer{Allow: true, By: "person"}); err != nil {
			t.Fatal(err)
		}
		w.isAnswered(t, again.ID)
	})
}

// What a teammate asks as soon as it is back waits for the front end too.
func TestAReturningTeammateWaitsForTheFrontEnd(t *testing.T) {
	w := newTeamWorld(t, inProcess)
	w.asking(t, nil)
	w.idles(t, "ann", 1)
	w.give(t, "ann", order{On: "You were stopped, and are back.", Calls: []scripted.Call{running("echo back > back.txt")}})
	w.idles(t, "ann", 2)
	w.Kill()
	w.resumeInteractive(t)
	asked := w.question(t, ask.Permission, "ann")
	t.Cleanup(w.Session().Attend())
	if err := w.Session().Answer(t.Context(), asked.ID, ask.Answer{Allow: true, By: "person"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command has run", func() bool { return w.file(t, "back.txt") == "back\n" })
}

// resumeInteractive opens the killed lead of a team again, for a person whose front
// end has yet to attend.
func (w *teamWorld) resumeInteractive(t *testing.T) {
	t.Helper()
	config, err := w.state.Rosters().Load(t.Context(), alpha)
	if err != nil {
		t.Fatal(err)
	}
	w.open(t, func(c *cadre.Config) {
		c.Resume, c.Interactive, c.SkipPermissions = config.LeadSessionID, true, false
	})
}

// isAnswered waits until a question lies open nowhere.
func (w *teamWorld) isAnswered(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the question is closed", func() bool {
		return !slices.ContainsFunc(w.questions(t), func(a ask.Ask) bool { return a.ID == id })
	})
}

func running(command string) scripted.Call { return scripted.Use("Bash", fields{"command": command}) }

// A person in front of the lead answers for a teammate: yes, yes to something else,
// no, and yes from now on.
func TestAPersonAnswersForATeammate(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.asking(t, nil)
		order := w.give(t, "ann", order{Calls: []scripted.Call{
			running("echo one > one.txt"), running("echo two > two.txt"), running("echo three > three.txt"), running("echo four > four.txt"), running("echo five > five.txt"),
		}})
		first := w.answer(t, ask.Permission, "ann", ask.Answer{Allow: true, By: "person"})
		contains(t, string(first.Input), "one.txt")
		w.answer(t, ask.Permission, "ann", ask.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"command":"echo changed > two.txt"}`), By: "person"})
		w.answer(t, ask.Permission, "ann", ask.Answer{Message: "Not that one.", By: "person"})
		w.answer(t, ask.Permission, "ann", ask.Answer{Allow: true, By: "person", Updates: []ask.Suggestion{
			{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []ask.Rule{{ToolName: "Bash"}}},
		}})
		said := w.results(t, "ann", order, 5)
		contains(t, said[2], "Not that one.")
		for name, want := range map[string]string{"one": "one\n", "two": "changed\n", "three": "", "four": "four\n", "five": "five\n"} {
			if got := w.file(t, name+".txt"); got != want {
				t.Errorf("%s.txt is %q", name, got)
			}
		}
		eventually(t, "no question is left", func() bool { return len(w.questions(t)) == 0 })
		if n := w.shown(t, mailbox.LeadName).times("permission_request"); n != 0 {
			t.Error("the lead's model was shown a request")
		}
	})
}

// An answer may come from outside of all processes of the team: `cadre answer`.
func TestAnAnswerFromOutside(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.asking(t, nil)
		former := ""
		for n, answer := range []ask.Answer{{Allow: true, By: "person"}, {Message: "Rather not.", By: "person"}} {
			order := w.give(t, "ann", order{Calls: []scripted.Call{running("echo outside >> " + []string{"yes", "no"}[n] + ".txt")}})
			w.question(t, ask.Permission, "ann")
			var open []ask.Ask
			eventually(t, "the question lies on the desk", func() bool {
				open = slices.DeleteFunc(w.questions(t), func(a ask.Ask) bool { return a.ID == former })
				return len(open) > 0
			})
			if former = open[0].ID; open[0].AgentName != "ann" || open[0].Team != alpha {
				t.Fatalf("open questions: %+v", open)
			}
			if err := w.state.Desk().Leave(t.Context(), open[0].ID, answer); err != nil {
				t.Fatal(err)
			}
			contains(t, w.results(t, "ann", order, 1)[0], answer.Message)
		}
		if w.file(t, "yes.txt") != "outside\n" || w.file(t, "no.txt") != "" {
			t.Errorf("yes: %q, no: %q", w.file(t, "yes.txt"), w.file(t, "no.txt"))
		}
		eventually(t, "no question is left", func() bool { return len(w.questions(t)) == 0 })
	})
}

// questions are those that lie on the desk.
func (w *teamWorld) questions(t *testing.T) []ask.Ask {
	t.Helper()
	open, err := w.state.Desk().Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// A question that nobody answers ends with a no that says so.
func TestAQuestionEndsAtItsDeadline(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.settings(t, `{"orphanGraceMs": 300, "askDeadlineMs": 300}`)
		w.asking(t, nil)
		contains(t, w.does(t, "ann", running("echo late > late.txt"))[0], "Nobody answered within the time for it")
		if exists(w.path("late.txt")) {
			t.Error("the command ran")
		}
		eventually(t, "no question is left", func() bool { return len(w.questions(t)) == 0 })
	})
}

// What the lead's rules say of a call holds for its teammates: nobody is asked.
func TestTheLeadsRulesHoldForTeammates(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.asking(t, func(c *cadre.Config) {
			c.AllowedTools, c.DisallowedTools = []string{"Bash(echo *)", "Write"}, []string{"Write(secret*)"}
		})
		said := w.does(t, "ann", running("echo allowed"),
			scripted.Use("Write", fields{"file_path": "secret.txt", "content": "x"}), scripted.Use("Write", fields{"file_path": "public.txt", "content": "x"}))
		contains(t, said[0], "allowed")
		contains(t, said[1], "Write(secret*)")
		if exists(w.path("secret.txt")) || !exists(w.path("public.txt")) {
			t.Errorf("%q", said)
		}
	})
}

// What the person told the lead at its start, its teammates keep to, wherever they
// run; a deny also where everything else is allowed.
func TestTheLeadsFlagsHoldForTeammates(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		other := t.TempDir()
		w.open(t, func(c *cadre.Config) {
			c.SkipPermissions, c.Mode, c.AddDirs = false, "acceptEdits", []string{other}
			c.AllowedTools, c.DisallowedTools = []string{"Bash"}, []string{"Bash(rm *)"}
			c.Settings, c.AppendSystemPrompt = `{"permissions": {"deny": ["Write(secret*)"]}}`, "Be brief."
		})
		w.form(t, "ann")
		w.write(t, w.path("kept.txt"), "x", 0o600)
		w.does(t, "ann", running("rm kept.txt"), scripted.Use("Write", fields{"file_path": "secret.txt", "content": "x"}),
			scripted.Use("Write", fields{"file_path": filepath.Join(other, "new.txt"), "content": "x"}))
		if !exists(w.path("kept.txt")) || exists(w.path("secret.txt")) {
			t.Error("a teammate did what its lead may not")
		}
		if !exists(filepath.Join(other, "new.txt")) {
			t.Error("a teammate may not do what its lead may")
		}
		if system := w.system(t, "ann"); !strings.Contains(system, "Be brief.") {
			t.Errorf("a teammate was told %s", system)
		}
	})
}

// Where nobody can be asked the answer is no.
func TestNobodyCanBeAsked(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.open(t, func(c *cadre.Config) { c.SkipPermissions = false })
		w.form(t, "ann")
		contains(t, w.does(t, "ann", running("touch asked.txt"))[0], "Nobody can be asked")
		if exists(w.path("asked.txt")) {
			t.Error("the command ran")
		}
	})
}
