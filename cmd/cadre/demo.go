package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/cmd/cadre/internal/demo"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// demoOptions are the flags of cadre demo.
type demoOptions struct {
	model string
	keep  bool
	json  bool
	speed float64
}

const demoLong = `demo writes a small project whose checks fail into a new folder and has a team repair it: a lead, three
teammates, a task list with dependencies, tasks that can be completed only when their tests pass, messages,
and a review at the end. Only the model is a script, so no key is needed; everything else is real.
With --model, a real model gets the same goal.`

func newDemoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a team repair a small project, without a key", Long: demoLong, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.model, "model", "", "`NAME` of a real model, or scripted:FILE")
	fs.BoolVar(&o.keep, "keep", false, "keep the project and the state on disk")
	fs.BoolVar(&o.json, "json", false, "print the report as JSON, and nothing else")
	fs.Float64Var(&o.speed, "speed", 1, "`FACTOR` of the script's speed: 2 is twice as fast, 0 does not pause at all")
	_ = cmd.RegisterFlagCompletionFunc("model", completeModel) // it was defined above
	return cmd
}

// demoRun is one demo.
type demoRun struct {
	*demoOptions
	folder   string // holds the project and the state
	project  demo.Project
	before   demo.Checks
	view     *demo.View
	terminal demo.Terminal
}

func (o *demoOptions) run(ctx context.Context) error {
	if o.speed < 0 {
		return usagef("--speed %v: want 0 or more", o.speed)
	}
	folder, err := os.MkdirTemp("", "cadre-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	if !o.keep {
		defer os.RemoveAll(folder)
	}
	signals, caught, stop := watchSignals()
	<-caught
	defer stop()
	d := &demoRun{demoOptions: o, folder: folder, terminal: demo.TerminalOf(os.Stdout, os.Getenv)}
	if d.project, err = demo.Prepare(ctx, filepath.Join(folder, "project")); err != nil {
		return err
	}
	if d.before, err = demo.Check(ctx, d.project.Dir); err != nil {
		return err
	}
	return d.play(ctx, signals)
}

// play has the team work, checks what came of it, and reports.
func (d *demoRun) play(ctx context.Context, signals <-chan *stopped) error {
	config, err := d.config()
	if err != nil {
		return err
	}
	rt, err := cadre.Open(ctx, config)
	if err != nil {
		return err
	}
	course := newCourse(rt, signals, func(text string) {
		if !d.json {
			fmt.Fprintln(os.Stderr, text)
		}
	})
	var screen io.Writer
	if !d.json {
		screen = os.Stdout
		if err := demo.Introduce(screen, d.terminal, d.project, rt.Info().Model, d.before); err != nil {
			return errors.Join(noReader(err), rt.Shutdown(ctx))
		}
	}
	d.view = demo.NewView(screen, d.terminal, d.project.Dir)
	events, shown := rt.Session().Events(ctx, 0), make(chan struct{})
	go func() {
		defer close(shown)
		d.view.Consume(events)
	}()
	end := course.work(ctx, demo.Goal)
	closing := course.close(ctx)
	<-shown
	if course.ending.cause != nil {
		return exitWith(course.ending.cause.code)
	}
	var open error
	if end.OpenWork != nil {
		open = end.OpenWork
	}
	return d.report(ctx, rt.Info(), errors.Join(end.Err, open, closing))
}

// config is a runtime in the demo's own folders. A script needs nothing of the
// user's settings, and must not be disturbed by them.
func (d *demoRun) config() (cadre.Config, error) {
	c := cadre.Config{
		Root: layout.Root(filepath.Join(d.folder, "state")), Cwd: d.project.Dir, Version: version(),
		Model: d.model, Mode: string(permission.AcceptEdits), AllowedTools: demo.AllowedTools,
	}
	file, isScript := strings.CutPrefix(d.model, scripted.Prefix)
	if d.model != "" && !isScript {
		var err error
		c.Settings, err = userSettings()
		return c, err
	}
	model, err := d.script(file)
	if err != nil {
		return c, usagef("--model %s: %w", d.model, err)
	}
	none := ""
	c.Provider, c.SettingSources = model, &none
	if c.Model == "" {
		c.Model = "scripted"
	}
	return c, nil
}

// script is the embedded script, or one of the user's.
func (d *demoRun) script(file string) (provider.Model, error) {
	text := demo.ScriptText()
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the script: %w", err)
		}
	}
	script, err := demo.ReadScript(text, d.project.Dir)
	if err != nil {
		return nil, err
	}
	model, err := script.Model()
	if err != nil {
		return nil, fmt.Errorf("use the script of the demo: %w", err)
	}
	return model.Paced(scripted.Speed(d.speed)), nil
}

// userSettings is the settings file of the user's own root, which may hold the
// key of a real model; "" when there is none.
func userSettings() (string, error) {
	root, err := stateRoot()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(root.Settings()); err != nil {
		return "", nil //nolint:nilerr // without settings, the environment may hold the key
	}
	return root.Settings(), nil
}

// report runs the checks again, shows what came of it all, and decides by them.
func (d *demoRun) report(ctx context.Context, info cadre.Info, failure error) error {
	run := demo.Run{
		Project: d.project, Model: info.Model, Before: d.before, Record: d.view.Record(), Err: failure, Kept: d.keep,
	}
	if d.keep {
		run.State = string(info.Root)
	}
	var err error
	if run.After, err = demo.Check(ctx, d.project.Dir); err != nil {
		run.Err = errors.Join(run.Err, err)
	}
	if run.Diff, err = d.project.Diff(ctx); err != nil {
		run.Err = errors.Join(run.Err, err)
	}
	report := demo.NewReport(run)
	if d.json {
		err = report.WriteJSON(os.Stdout)
	} else {
		err = report.Print(os.Stdout, d.terminal)
	}
	switch {
	case err != nil:
		return noReader(err)
	case !report.Passed():
		return exitWith(exitFailed)
	}
	return nil
}
