package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/control"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

// printed is one run of -p: a prompt, the turns that follow from it, a result.
type printed struct {
	course
	o       *options
	started time.Time
	usage   []event.AgentTally // at the end
	stream  *control.Writer    // nil unless the format is stream-json
	lines   *tui.Lines         // progress; nil when none is shown
	debug   *debugLog          // nil without --debug
	tasks   taskWatch
}

// runPrint answers one prompt.
func runPrint(ctx context.Context, o *options, args []string) error {
	started := time.Now()
	prompt, err := readPrompt(args, os.Stdin, o.warn)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" {
		return usagef("no prompt: give it as an argument (cadre -p \"…\") or on stdin")
	}
	signals, caught, stop := watchSignals()
	defer stop()
	cwd, err := workingFolder()
	if err != nil {
		return err
	}
	rt, err := cadre.Open(ctx, o.config(cwd))
	<-caught
	if err != nil {
		return o.refused(err, started)
	}
	debug, err := o.openDebugLog(rt.Info())
	if err != nil {
		o.warn(err.Error())
	}
	defer debug.Close()
	p := &printed{
		course: newCourse(rt, signals, o.note), o: o, started: started,
		lines: o.progress(cwd), debug: debug, tasks: make(taskWatch),
	}
	if o.outputFormat == formatStream {
		p.stream = control.NewWriter(os.Stdout, identity(rt.Info()))
	}
	for _, w := range rt.Info().Warnings {
		o.warn(w)
	}
	if o.outputFormat != formatStream {
		o.showEnd(ctx, rt.Info(), false)
	}
	return p.run(ctx, prompt)
}

func identity(info cadre.Info) control.Identity {
	return control.Identity{
		SessionID: info.SessionID, Cwd: info.Cwd, Model: info.Model, PermissionMode: info.Mode,
		APIKeySource: info.APIKeySource, Version: compatible, Tools: info.Tools, Agents: info.Agents,
	}
}

// refused reports that the session did not open, to programs in the format that they
// asked for (facts: sdk-contract §2.3).
func (o *options) refused(err error, started time.Time) error {
	if o.outputFormat != formatJSON && o.outputFormat != formatStream {
		return err
	}
	shown := err
	if errors.Is(err, transcript.ErrNotFound) && o.resume != "" {
		shown = fmt.Errorf("No conversation found with session ID: %s", o.resume) //nolint:staticcheck // the text that SDKs know
	}
	result := control.NewResult(nil, control.End{SessionID: o.sessionID, Took: time.Since(started), Err: shown})
	if err := writeResult(result); err != nil {
		return err
	}
	return err
}

func writeResult(r control.Result) error {
	line, err := jsonx.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return writeOut(append(line, '\n'))
}

// run works until the team is at rest or somebody ends it, closes everything,
// and prints the result.
func (p *printed) run(ctx context.Context, prompt string) error {
	shown := make(chan struct{})
	events := p.rt.Session().Events(ctx, 0)
	go func() {
		defer close(shown)
		for ev := range events {
			p.show(ev)
		}
	}()
	end := p.work(ctx, prompt)
	list, open, err := p.rt.OpenTasks(ctx)
	if err != nil {
		p.o.warn(fmt.Sprintf("list the open tasks: %v", err))
	}
	if err := p.close(ctx); err != nil && end.Err == nil {
		p.o.warn(err.Error())
	}
	<-shown
	end.OpenTasks = p.tasks.open(list, open)
	end.SessionID, end.Took = p.rt.Info().SessionID, time.Since(p.started)
	p.usage = p.rt.Usage(context.WithoutCancel(ctx))
	return p.conclude(end)
}

// show passes an event to everything that shows or logs the run.
func (p *printed) show(ev event.Event) {
	p.debug.event(ev)
	p.tasks.note(ev)
	if p.lines != nil && p.isProgress(ev) {
		p.lines.Event(ev)
	}
	if p.stream == nil {
		return
	}
	if err := p.stream.Event(ev); err != nil {
		p.stream = nil
		p.broken <- err
	}
}

// isProgress reports whether an event belongs on stderr. The end of the lead's turn does
// not: the end of the run reports it. In stream-json the stream itself shows what
// happens, so that stderr stays silent when all goes well.
func (p *printed) isProgress(ev event.Event) bool {
	switch body := ev.Body.(type) {
	case event.TurnEnded:
		return ev.Agent.ID != ""
	case event.ToolDenied, event.Asked, event.Answered:
		return true
	case event.Noticed:
		return p.o.outputFormat != formatStream || body.Level != "info"
	}
	return p.o.outputFormat != formatStream
}

// conclude prints the result and what it cost, and finds the exit code.
func (p *printed) conclude(end control.End) error {
	usage := p.usage // the main session first
	result, main := control.NewResult(usage, end), event.AgentTally{}
	if len(usage) > 0 && usage[0].Agent.ID == "" {
		main = usage[0]
	}
	if err := p.print(result, main.LastText); err != nil {
		return err
	}
	if p.o.outputFormat != formatStream {
		p.o.note(openTasksLine(end.OpenTasks))
		p.o.note(costLine(usage))
	}
	return p.outcome(result, main.Last, end)
}

// print writes the result in the chosen format; text is what the main session
// said last.
func (p *printed) print(result control.Result, text string) error {
	switch p.o.outputFormat {
	case formatJSON, formatStream:
		return writeResult(result)
	}
	if text == "" || result.Subtype == control.Success && result.IsError {
		return nil
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		text = tui.Clean(text)
	}
	return writeOut([]byte(strings.TrimRight(text, "\n") + "\n"))
}

// outcome is the exit code of a run, with what there is to say about it. last is
// how the main session's newest turn ended; nil when none has.
func (p *printed) outcome(result control.Result, last *event.Outcome, end control.End) error {
	switch {
	case p.ending.cause != nil:
		return &exit{code: p.ending.cause.code, hint: p.goOn(end)}
	case p.stopped:
		return &exit{code: exitFailed, err: end.Err, hint: "What was acknowledged is stored. When the state root can be written to again, go on with: cadre --resume " + result.SessionID}
	case end.Err != nil:
		return noReader(end.Err)
	case last == nil || last.Reason == event.Interrupted:
		return &exit{code: exitInterrupted, hint: p.goOn(end)}
	case last.Reason == event.MaxRounds:
		return &exit{code: exitLimit, err: errors.New(strings.Join(result.Errors, "; ")), hint: p.goOn(end)}
	case last.Reason == event.Failed:
		return &exit{code: codeOfClass(last.Class), err: errors.New(failure(*last))}
	case end.OpenWork != nil:
		return &exit{code: exitLimit, err: end.OpenWork, hint: p.goOn(end)}
	}
	return nil
}

// goOn says how a run that was cut short can be resumed; "" when nothing of it is kept,
// or nobody is to read it.
func (p *printed) goOn(end control.End) string {
	if p.o.noPersistence || p.o.quiet {
		return ""
	}
	return p.o.goOn(end.SessionID, answered(p.usage))
}

func failure(out event.Outcome) string {
	if out.Status == 0 {
		return out.Err
	}
	return fmt.Sprintf("%d %s", out.Status, out.Err)
}

// writeOut writes to stdout.
func writeOut(data []byte) error {
	if _, err := os.Stdout.Write(data); err != nil {
		return noReader(fmt.Errorf("write the answer: %w", err))
	}
	return nil
}

// noReader ends quietly when whoever read our output has left.
func noReader(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return exitWith(exitNoReader)
	}
	return err
}
