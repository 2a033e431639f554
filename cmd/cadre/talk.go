package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/tui"
)

// runRoot is cadre without a verb.
func runRoot(ctx context.Context, o *options, args []string) error {
	if o.version {
		fmt.Println(versionLine())
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.choose {
		id, err := chooseSession(ctx)
		if err != nil {
			return err
		}
		o.resume = id
	}
	if o.printing() {
		return runPrint(ctx, o, args)
	}
	if verb := mistyped(args); verb != "" {
		e := &exit{code: exitUsage, err: fmt.Errorf("unknown command %q", args[0])}
		e.hint = fmt.Sprintf("(Did you mean cadre %s? To say it to an agent: cadre -p %q)", verb, strings.Join(args, " "))
		return e
	}
	return runTalk(ctx, o, strings.Join(args, " "))
}

// runTalk holds a conversation on the terminal.
func runTalk(ctx context.Context, o *options, prompt string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cwd, err := workingFolder()
	if err != nil {
		return err
	}
	rt, err := cadre.Open(ctx, o.config(cwd))
	if err != nil {
		return err
	}
	debug, err := o.openDebugLog(rt.Info())
	if err != nil {
		o.warn(err.Error())
	}
	defer debug.Close()
	defer debug.follow(rt.Session().Events(context.WithoutCancel(ctx), 0))()
	for _, w := range rt.Info().Warnings {
		o.warn(w)
	}
	o.showEnd(ctx, rt.Info(), term.IsTerminal(int(os.Stdout.Fd())))
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	signals, caught, stop := watchSignals()
	<-caught
	defer stop()
	interrupts := make(chan struct{}, 8)
	forwarding.Go(func() { forward(signals, interrupts, end, rt) })

	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	in, err := newKeyboard(os.Stdin, terminal)
	if err != nil {
		return errors.Join(fmt.Errorf("read the keyboard: %w", err), rt.Shutdown(ctx))
	}
	err = tui.Run(ctx, tui.Config{
		Session: rt.Session(), In: in, Out: os.Stdout, Terminal: terminal, Style: styleOf(os.Stdout, cwd),
		Prompt: prompt, Welcome: o.welcome(rt.Info()), Interrupt: interrupts,
		Cost:    func() string { return costTable(rt.Usage(context.WithoutCancel(ctx))) },
		Settled: rt.Settled, Close: closing(ctx, rt), Kill: rt.Kill,
	})
	used := rt.Usage(context.WithoutCancel(ctx))
	usage := costLine(used)
	o.note(usage)
	if usage != "" && !o.noPersistence {
		o.note(o.goOn(rt.Info().SessionID, answered(used)))
	}
	if err == nil && !terminal { // nobody saw how the turn ended
		return turnError(lastTurn(used))
	}
	return talkEnd(err)
}

// closing ends a conversation in order, or, when a signal is why, without asking
// anybody.
func closing(talk context.Context, rt *cadre.Runtime) func(context.Context) error {
	return func(ctx context.Context) error {
		var s *stopped
		if errors.As(context.Cause(talk), &s) {
			return rt.Stop()
		}
		return rt.Shutdown(ctx)
	}
}

func talkEnd(err error) error {
	var s *stopped
	switch {
	case errors.As(err, &s):
		return exitWith(s.code)
	case errors.Is(err, tui.ErrKilled):
		return exitWith(exitInterrupted)
	}
	return err
}

// forward brings signals to a conversation until they end. Ctrl+C is the
// conversation's matter; another signal ends it, also when it waits for its team to
// end, and a second one at once.
func forward(signals <-chan *stopped, interrupts chan<- struct{}, end context.CancelCauseFunc, rt *cadre.Runtime) {
	ending := false
	for s := range signals {
		switch {
		case s == byInterrupt:
			select {
			case interrupts <- struct{}{}:
			default: // eight are waiting already
			}
		case ending:
			rt.Kill()
		default:
			ending = true
			end(s)
			rt.AbandonShutdown()
		}
	}
}

// welcome is what the very first run says about itself; nil for every other.
func (o *options) welcome(info cadre.Info) *tui.Welcome {
	if !info.FirstRun || o.quiet {
		return nil
	}
	return &tui.Welcome{
		Model: info.Model, Sent: sentTo(info.Model, info.APIKeySource), Root: string(info.Root), Folders: info.Cwd,
	}
}

// sentTo names the place that requests go to, without what may be secret in its
// address.
func sentTo(model, keySource string) string {
	name, address := "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
	switch {
	case strings.HasPrefix(model, scripted.Prefix):
		return ""
	case strings.HasPrefix(keySource, "OPENAI"):
		name, address = "OPENAI_BASE_URL", "https://api.openai.com"
	}
	if set := os.Getenv(name); set != "" {
		address = set
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the address in " + name
	}
	return u.Host
}
