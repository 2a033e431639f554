package session

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// inMode is input that brings a permission mode.
func inMode(mode permission.Mode) Input {
	in := Text(LeadMail, "go on in another mode")
	in.Mode = mode
	return in
}

func TestInputBringsItsModeWhenItStartsATurn(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	s := open(t, &memLog{}, callOnce("Write"), func(c *Config) { c.Policy = permission.Policy{Mode: permission.Plan} }, write)
	_ = s.Send(t.Context(), inMode(permission.Bypass))
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != "wrote" {
		t.Errorf("outcome = %+v", end.Outcome)
	}
	if mode := s.State().Mode; mode != permission.Bypass {
		t.Errorf("mode = %s", mode)
	}
}

func TestInputThatCannotBeKeptBringsNoMode(t *testing.T) {
	log := &memLog{fail: func() error { return errDisk }}
	s := open(t, log, echoModel(), func(c *Config) { c.Policy = permission.Policy{Mode: permission.Plan} })
	in := inMode(permission.Bypass)
	told := make(chan error, 1)
	in.Kept = func(_ context.Context, err error) { told <- err }
	_ = s.Send(t.Context(), in)
	if err := <-told; !errors.Is(err, errDisk) {
		t.Fatalf("told %v", err)
	}
	if mode := s.State().Mode; mode != permission.Plan {
		t.Errorf("mode = %s", mode)
	}
}

// callEachRound calls a tool in each of the first rounds and then says what it
// was told last.
func callEachRound(names ...string) scriptModel {
	return func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		if round := len(req.Messages) / 2; round < len(names) {
			yield(reply(use(names[round], `{}`)), nil)
			return
		}
		yield(reply(transcript.TextBlock(req.Messages[len(req.Messages)-1].Content[0].ResultText())), nil)
	}
}

// stop is a tool that lets the test do something in the middle of a turn, also in
// delegate mode.
func stop(do func()) funcTool {
	return funcTool{name: "Stop", delegates: true, run: func(context.Context, tool.Call) tool.Result { do(); return tool.Text("stopped") }}
}

func TestInputTakenInBetweenRoundsBringsItsMode(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	var s *Session
	pause := stop(func() { _ = s.Send(t.Context(), inMode(permission.Bypass)) })
	s = open(t, &memLog{}, callEachRound("Write", "Stop", "Write"), func(c *Config) { c.Policy = permission.Policy{Mode: permission.Plan} }, write, pause)
	_ = s.Prompt(t.Context(), "go")
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Text != "wrote" || len(end.Outcome.Denied) != 1 {
		t.Errorf("outcome = %+v", end.Outcome)
	}
}

func TestLeavingDelegateModeGivesAllToolsBackInTheMiddleOfATurn(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	var s *Session
	pause := stop(func() { _ = s.SetMode(t.Context(), permission.Bypass) })
	delegate := func(c *Config) {
		c.Policy = permission.Policy{Mode: permission.Delegate}
	}
	s = open(t, &memLog{}, callEachRound("Write", "Stop", "Write"), delegate, write, pause)
	_ = s.Prompt(t.Context(), "go")
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Text != "wrote" || len(end.Outcome.Denied) != 1 || end.Outcome.Denied[0].Tool != "Write" {
		t.Errorf("outcome = %+v", end.Outcome)
	}
}

func TestAToolThatWaitsReturnsWhenInputArrives(t *testing.T) {
	waiting := make(chan struct{}, 2)
	waits := funcTool{name: "Wait", run: func(ctx context.Context, _ tool.Call) tool.Result {
		waiting <- struct{}{}
		select {
		case <-tool.Arrived(ctx):
			return tool.Text("something arrived")
		case <-ctx.Done():
			return tool.Error("interrupted")
		}
	}}
	// The model waits again each time, so a second wait must not end with the
	// mail that was taken in after the first.
	var model scriptModel = func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1].Content
		if text := last[len(last)-1].Text; text == "the second mail" {
			yield(reply(transcript.TextBlock("saw "+text)), nil)
			return
		}
		yield(reply(use("Wait", `{}`)), nil)
	}
	s := open(t, &memLog{}, model, nil, waits)
	_ = s.Prompt(t.Context(), "go")
	for _, text := range []string{"the first mail", "the second mail"} {
		<-waiting
		if err := s.Send(t.Context(), Text(PeerMail, text)); err != nil {
			t.Fatal(err)
		}
	}
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Text != "saw the second mail" || end.Outcome.Rounds != 3 {
		t.Errorf("outcome = %+v", end.Outcome)
	}
}

func TestThePrefaceGoesBeforeTheFirstInput(t *testing.T) {
	log := &memLog{}
	s := open(t, log, echoModel(), func(c *Config) { c.Voice = voice{preface: func(context.Context) string { return "how things stand" }} })
	for _, text := range []string{"first", "second"} {
		if err := s.Prompt(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		until[event.TurnEnded](t, s, nil)
	}
	if err := s.Close(nil); err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, e := range log.entries {
		if e.Kind == transcript.KindUser {
			users = append(users, transcript.JoinText(e.Message.Content))
		}
	}
	if got := users[:2]; got[0] != "how things stand" || got[1] != "first" || len(users) != 3 {
		t.Errorf("the transcript has %q", users)
	}
}

// Quiet input leaves a waiting tool alone, and is there in the next round.
func TestQuietInputDoesNotEndAWait(t *testing.T) {
	began, other := make(chan struct{}), make(chan struct{})
	wait := asking(func(ctx context.Context, _ tool.Call) tool.Result {
		close(began)
		select {
		case <-tool.Arrived(ctx):
			return tool.Text("something arrived")
		case <-other:
			return tool.Text("nothing did")
		}
	})
	log := &memLog{}
	s := open(t, log, callEachRound("Write"), func(c *Config) { c.Policy = permission.Policy{Mode: permission.Bypass} }, wait)
	if err := s.Prompt(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	<-began
	quiet := Text(PeerMail, "by the way")
	quiet.Quiet = true
	if err := s.Send(t.Context(), quiet); err != nil {
		t.Fatal(err)
	}
	close(other)
	until[event.TurnEnded](t, s, nil)
	messages := kept(t, log)
	last := messages[2].Content
	if len(last) != 2 || last[0].ResultText() != "nothing did" || last[1].Text != "by the way" {
		t.Errorf("the next round got %+v", last)
	}
}

// What delegate mode takes away is not offered either, from the next request on,
// and the model is told why.
func TestTheToolsOfARequestAreThoseOfTheMode(t *testing.T) {
	var requests []provider.Request
	var s *Session
	next := callEachRound("Stop", "Stop", "Stop")
	model := scriptModel(func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		requests = append(requests, req)
		next(ctx, req, yield)
	})
	modes := []permission.Mode{permission.Default, permission.Delegate, permission.Delegate}
	change := stop(func() { _ = s.SetMode(t.Context(), modes[len(requests)-1]) })
	s = open(t, &memLog{}, model, func(c *Config) {
		c.Policy = permission.Policy{Mode: permission.Delegate}
		c.Voice = voice{modeNote: func(was, now permission.Mode) string { return string(was) + " to " + string(now) }}
	}, change, asking(nil))
	_ = s.Prompt(t.Context(), "go")
	until[event.TurnEnded](t, s, nil)
	var got []string
	for _, req := range requests {
		line := ""
		for _, tool := range req.Tools {
			line += tool.Name + " "
		}
		if last := req.Messages[len(req.Messages)-1].Content; len(last) > 1 {
			line += "(" + last[len(last)-1].Text + ")"
		}
		got = append(got, line)
	}
	want := []string{"Stop ", "Stop Write (delegate to default)", "Stop (default to delegate)", "Stop "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}

func TestAModeIsToldWithTheNextInput(t *testing.T) {
	log := &memLog{}
	s := open(t, log, echoModel(), func(c *Config) {
		c.Policy.Mode = permission.Default
		c.Voice = voice{modeNote: func(was, now permission.Mode) string { return string(was) + " to " + string(now) }}
	})
	for _, mode := range []permission.Mode{permission.Plan, permission.Delegate} {
		if err := s.SetMode(t.Context(), mode); err != nil || s.State().Mode != mode {
			t.Fatalf("%v, and the mode is %s, want %s", err, s.State().Mode, mode)
		}
	}
	if len(log.entries) > 0 {
		t.Errorf("stored before there was input: %+v", log.entries)
	}
	_ = s.Prompt(t.Context(), "go")
	until[event.TurnEnded](t, s, nil)
	entries, _ := log.Entries(t.Context())
	if got := transcript.JoinText(entries[0].Message.Content); got != "default to delegate" {
		t.Errorf("told %q", got)
	}
	if got := transcript.JoinText(entries[1].Message.Content); got != "go" {
		t.Errorf("then %q", got)
	}
}
