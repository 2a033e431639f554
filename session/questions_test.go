package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

var mate = event.Agent{Session: "s", ID: "t1", Name: "mate"}

// events are all events of a tree so far.
func events(tree *Tree) (bodies []event.Event) {
	end := event.Idle{Reason: "end of what there is"}
	tree.Stream.Publish(event.Agent{}, end)
	for ev := range tree.Stream.Subscribe(context.Background(), 0) {
		if ev.Body == event.Body(end) {
			break
		}
		bodies = append(bodies, ev)
	}
	return bodies
}

func TestARelayedQuestionIsAnsweredOnce(t *testing.T) {
	tree := NewTree(TreeConfig{})
	var given []ask.Answer
	fails := true
	relay := func() {
		tree.Questions.Relay(Relayed{Agent: mate, Ask: ask.Ask{ID: "q1"}}, func(_ context.Context, a ask.Answer) error {
			if fails {
				return errDisk
			}
			given = append(given, a)
			return nil
		})
	}
	relay()
	relay() // comes again, and is asked once
	if pending := tree.Questions.Pending(); len(pending) != 1 || pending[0].ID != "q1" {
		t.Fatalf("pending = %+v", pending)
	}
	if err := tree.Questions.Answer(t.Context(), "q1", ask.Answer{Allow: true}); !errors.Is(err, errDisk) {
		t.Errorf("an answer that does not get there: %v", err)
	}
	fails = false
	if err := tree.Questions.Answer(t.Context(), "q1", ask.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if err := tree.Questions.Answer(t.Context(), "q1", ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("a second answer: %v", err)
	}
	if tree.Questions.Resolve("q1", ask.Answer{}) {
		t.Error("settled twice")
	}
	if len(given) != 1 || !given[0].Allow || len(tree.Questions.Pending()) != 0 {
		t.Errorf("given %+v, pending %+v", given, tree.Questions.Pending())
	}
	evs := events(tree)
	if len(evs) != 2 || evs[0].Agent != mate || evs[1].Agent != mate {
		t.Fatalf("events = %+v", evs)
	}
	if a, ok := evs[1].Body.(event.Answered); !ok || a.ID != "q1" || !a.Answer.Allow {
		t.Errorf("event = %+v", evs[1])
	}
}

func TestOfManyAnswersToARelayedQuestionOneGetsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := NewTree(TreeConfig{})
		given, goOn := 0, make(chan struct{})
		tree.Questions.Relay(Relayed{Agent: mate, Ask: ask.Ask{ID: "q1"}}, func(context.Context, ask.Answer) error {
			given++
			<-goOn
			return nil
		})
		results := make(chan error, 10)
		for range 10 {
			go func() { results <- tree.Questions.Answer(t.Context(), "q1", ask.Answer{Allow: true}) }()
		}
		synctest.Wait() // now each of them wants to answer
		close(goOn)
		won := 0
		for range 10 {
			if err := <-results; err == nil {
				won++
			} else if !errors.Is(err, ask.ErrUnknown) {
				t.Error(err)
			}
		}
		if won != 1 || given != 1 {
			t.Errorf("%d answers won, %d got there", won, given)
		}
	})
}

func TestAQuestionAnsweredElsewhereIsTold(t *testing.T) {
	tree := NewTree(TreeConfig{})
	tree.Questions.Relay(Relayed{Agent: mate, Ask: ask.Ask{ID: "q1"}}, func(context.Context, ask.Answer) error { return errors.New("too late") })
	if !tree.Questions.Resolve("q1", ask.Answer{By: "person"}) {
		t.Error("it was not waiting")
	}
	if err := tree.Questions.Answer(t.Context(), "q1", ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("an answer after that: %v", err)
	}
	if n := len(events(tree)); n != 2 {
		t.Errorf("%d events", n)
	}
}

func TestAQuestionGoesElsewhereWhenNobodyIsInFront(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	tree := NewTree(TreeConfig{})
	leave := tree.Questions.Elsewhere(func(ctx context.Context, a ask.Ask) error {
		if a.Team != "crew" || a.AgentName != "mate" || a.Tool != "Write" {
			t.Errorf("ask = %+v", a)
		}
		return tree.Questions.Answer(ctx, a.ID, ask.Answer{Allow: true, By: "lead"})
	})
	s := open(t, &memLog{}, callOnce("Write"), func(c *Config) {
		folders(c)
		c.Tree, c.Agent, c.Caller.Team = tree, mate, "crew"
	}, write)
	_ = s.Prompt(t.Context(), "go")
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != "wrote" {
		t.Errorf("outcome = %+v", end.Outcome)
	}
	leave()
	if tree.Questions.Attended() {
		t.Error("it still counts after it has left")
	}
}

func TestACallIsRefusedWhenItsQuestionCannotBeSent(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	elsewhere := func(c *Config) {
		folders(c)
		c.Tree.Questions.Elsewhere(func(context.Context, ask.Ask) error { return errors.New("the lead has no inbox") })
	}
	s := open(t, &memLog{}, callOnce("Write"), elsewhere, write)
	_ = s.Prompt(t.Context(), "go")
	if end := until[event.TurnEnded](t, s, nil); !strings.Contains(end.Outcome.Text, "the lead has no inbox") {
		t.Errorf("the model was told %q", end.Outcome.Text)
	}
	// With somebody in front the question goes on waiting.
	s = open(t, &memLog{}, callOnce("Write"), elsewhere, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	until[event.Noticed](t, s, nil)
	if err := s.Answer(t.Context(), asked.Ask.ID, ask.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != "wrote" {
		t.Errorf("outcome = %+v", end.Outcome)
	}
}

func TestANoteWithAnApprovalReachesTheModel(t *testing.T) {
	for _, input := range []json.RawMessage{nil, json.RawMessage(`{"n":1}`)} {
		write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
		log := &memLog{}
		s := open(t, log, callOnce("Write"), folders, write)
		leave := s.Attend()
		_ = s.Prompt(t.Context(), "go")
		asked := until[event.Asked](t, s, nil)
		_ = s.Answer(t.Context(), asked.Ask.ID, ask.Answer{Allow: true, UpdatedInput: input, Message: "but only this once"})
		until[event.TurnEnded](t, s, nil)
		messages := kept(t, log)
		last := messages[len(messages)-2].Content
		if len(last) != 2 || last[0].Text != "wrote" || !strings.Contains(last[1].Text, "but only this once") {
			t.Errorf("with the input %s the model was told %+v", input, last)
		}
		leave()
	}
}

func TestAPersonAnswersWhatIsShownInPlaceOfTheInput(t *testing.T) {
	ran := make(chan string, 1)
	checks := funcTool{name: "TaskUpdate", access: tool.Access{
		Command: "make test", As: "Bash", Detail: json.RawMessage(`{"command":"make test"}`),
	}, run: func(_ context.Context, c tool.Call) tool.Result { ran <- string(c.Input); return tool.Text("ran") }}
	s := open(t, &memLog{}, callOnce("TaskUpdate"), folders, checks)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	a := until[event.Asked](t, s, nil).Ask
	if a.Tool != "Bash" || string(a.Input) != `{"command":"make test"}` || a.Digest != ask.DigestOf(a.Tool, a.Input) {
		t.Errorf("ask = %+v", a)
	}
	_ = s.Answer(t.Context(), a.ID, ask.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"command":"rm -r ."}`)})
	if input := <-ran; input != `{}` {
		t.Errorf("it ran with %s", input)
	}
}

func TestACallIsJudgedByTheRulesOfTheToolWhoseWorkItDoes(t *testing.T) {
	checks := funcTool{name: "TaskUpdate", access: tool.Access{Command: "make test", As: "Bash"},
		run: func(context.Context, tool.Call) tool.Result { return tool.Text("ran") }}
	for rule, want := range map[string]string{"Bash": "ran", "TaskUpdate": ""} {
		s := open(t, &memLog{}, callOnce("TaskUpdate"), func(c *Config) {
			folders(c)
			c.Policy.Allow = []permission.SourcedRule{{Rule: permission.Rule{Tool: rule}}}
		}, checks)
		_ = s.Prompt(t.Context(), "go")
		end := until[event.TurnEnded](t, s, nil)
		if (end.Outcome.Text == "ran") != (want == "ran") {
			t.Errorf("with %s allowed: %+v", rule, end.Outcome)
		}
		if told := end.Outcome.Text; want == "" && !strings.Contains(told, `the command "make test", which the rules for Bash judge`) {
			t.Errorf("the model is not told what was judged: %q", told)
		}
	}
}

func TestAPlanIsAQuestionOfItsOwnKind(t *testing.T) {
	exit := funcTool{name: "ExitPlanMode", access: tool.Access{Ask: true, Plan: true, Detail: json.RawMessage(`{"plan":"all of it"}`)},
		run: func(context.Context, tool.Call) tool.Result { return tool.Text("approved") }}
	s := open(t, &memLog{}, callOnce("ExitPlanMode"), folders, exit)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	a := until[event.Asked](t, s, nil).Ask
	if a.Kind != ask.Plan || a.Question != "Is this plan good?" || string(a.Input) != `{"plan":"all of it"}` || a.Tool != "ExitPlanMode" {
		t.Errorf("ask = %+v", a)
	}
	_ = s.Answer(t.Context(), a.ID, ask.Answer{})
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != planRefused {
		t.Errorf("the model was told %q", end.Outcome.Text)
	}
}

func TestAQuestionLiesOnTheDeskUntilItIsSettled(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	desk := &memDesk{}
	s := open(t, &memLog{}, callOnce("Write"), func(c *Config) { folders(c); c.Tree = NewTree(TreeConfig{Desk: desk}) }, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	a := until[event.Asked](t, s, nil).Ask
	deskIsDone(t, s.tree)
	lies, _ := desk.Open(t.Context())
	if len(lies) != 1 || lies[0].ID != a.ID || s.tree.Questions.Pending()[0].ID != a.ID {
		t.Errorf("on the desk: %+v", lies)
	}
	_ = s.Answer(t.Context(), a.ID, ask.Answer{Allow: true})
	deskIsDone(t, s.tree)
	if lies, _ = desk.Open(t.Context()); len(lies) != 0 || len(s.tree.Questions.Pending()) != 0 {
		t.Errorf("on the desk afterwards: %+v", lies)
	}
	until[event.TurnEnded](t, s, nil)
}

// lastTold is the text of the newest user message.
func lastTold(messages []transcript.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == transcript.User {
			return transcript.JoinText(messages[i].Content)
		}
	}
	return ""
}

// What an approval changes is written before the answer is kept, and counts as it
// was accepted.
func TestUpdatesAreAcceptedBeforeTheAnswerIsKept(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	asks := &memAsks{}
	var accepted []ask.Answer
	s := open(t, &memLog{}, callEachRound("Write", "Write"), func(c *Config) {
		folders(c)
		c.Asks = asks
		c.Gate = gate(func(_ context.Context, answer ask.Answer) ([]ask.Suggestion, error) {
			if len(asks.answers) > 0 {
				t.Error("the answer was kept first")
			}
			accepted = append(accepted, answer)
			return []ask.Suggestion{
				{Type: ask.AddDirectories, Directories: []string{"/elsewhere"}}, {Type: ask.SetMode, Mode: "acceptEdits"},
			}, errors.New("the file is broken")
		})
	}, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	given := ask.Answer{Allow: true, By: "person", Updates: []ask.Suggestion{{Type: ask.AddDirectories, Directories: []string{"/link"}}}}
	if err := s.Answer(t.Context(), asked.Ask.ID, given); err != nil {
		t.Fatal(err)
	}
	warned := until(t, s, func(n event.Noticed) bool { return n.Level == "warning" })
	if warned.Text != "the file is broken" {
		t.Errorf("told %q", warned.Text)
	}
	end := until[event.TurnEnded](t, s, nil)
	if diff := cmp.Diff([]ask.Answer{given}, accepted); diff != "" || end.Outcome.Text != "wrote" || len(end.Outcome.Denied) > 0 {
		t.Errorf("outcome %+v, accepted (-want +got):\n%s", end.Outcome, diff)
	}
}

func TestNothingIsAcceptedWithADenial(t *testing.T) {
	s := open(t, &memLog{}, callOnce("Write"), func(c *Config) {
		folders(c)
		c.Gate = gate(func(context.Context, ask.Answer) ([]ask.Suggestion, error) { panic("accepted") })
	}, asking(nil))
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	_ = s.Answer(t.Context(), asked.Ask.ID, ask.Answer{Updates: []ask.Suggestion{{Type: ask.SetMode, Mode: "plan"}}})
	until[event.TurnEnded](t, s, nil)
	if mode := s.State().Mode; mode == permission.Plan {
		t.Error("a denial changed the mode")
	}
}

// The owner waits for no lock on a settings file: it goes on while what came with an
// approval is written.
func TestTheOwnerGoesOnWhileUpdatesAreAccepted(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
			unlocked := make(chan struct{})
			s := open(t, &memLog{}, callEachRound("Write"), func(c *Config) {
				folders(c)
				c.Gate = gate(func(_ context.Context, answer ask.Answer) ([]ask.Suggestion, error) {
					<-unlocked
					return answer.Updates, nil
				})
			}, write)
			defer s.Attend()()
			_ = s.Prompt(t.Context(), "go")
			asked := until[event.Asked](t, s, nil).Ask
			answered := make(chan error, 1)
			go func() {
				answered <- s.Answer(t.Context(), asked.ID, ask.Answer{Allow: true, Updates: []ask.Suggestion{
					{Type: ask.AddDirectories, Directories: []string{"/elsewhere"}},
				}})
			}()
			synctest.Wait()
			if err := s.SetMode(t.Context(), permission.AcceptEdits); err != nil || s.State().Mode != permission.AcceptEdits {
				t.Errorf("the mode is %q, %v", s.State().Mode, err)
			}
			if err := s.Answer(t.Context(), asked.ID, ask.Answer{}); !errors.Is(err, ask.ErrAnswered) {
				t.Errorf("a second answer: %v", err)
			}
			if interrupted {
				_ = s.Interrupt(t.Context(), ErrInterrupt)
				until[event.TurnEnded](t, s, nil)
				if !s.State().Busy {
					t.Error("it is idle while what a person accepted is being written")
				}
			}
			close(unlocked)
			end := until[event.TurnEnded](t, s, nil)
			if err := <-answered; interrupted != errors.Is(err, ask.ErrUnknown) || (end.Outcome.Text == "wrote") == interrupted {
				t.Errorf("interrupted %v: answered %v, outcome %+v", interrupted, err, end.Outcome)
			}
			if granted := s.tree.Granted(); len(granted) != 1 {
				t.Errorf("granted %+v", granted)
			}
		})
	}
}
