package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

// Exit codes (docs/cli.md). 128 and a signal's number is what shells report.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLimit       = 3 // of rounds, or of the time to wait for the team
	exitNoModel     = 4 // none configured, or no access to it
	exitHangup      = 129
	exitInterrupted = 130
	exitQuit        = 131
	exitNoReader    = 141 // nobody reads our output any more
	exitTerminated  = 143
)

// exit is an error that knows its code. Without err there is nothing to say.
type exit struct {
	code int
	err  error
	hint string // what to do about it, "" when that is plain
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// exitWith ends with a code and prints nothing more.
func exitWith(code int) error {
	if code == exitDone {
		return nil
	}
	return &exit{code: code}
}

// usagef is a command line that cannot be run.
func usagef(format string, args ...any) *exit {
	return &exit{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// report prints what went wrong, and returns the exit code.
func report(err error) int {
	if err == nil {
		return exitDone
	}
	var e *exit
	if !errors.As(err, &e) {
		e = explain(err)
	}
	if e.err != nil {
		fmt.Fprintln(os.Stderr, "error: "+tui.Clean(e.err.Error()))
	}
	if e.hint != "" {
		fmt.Fprintln(os.Stderr, e.hint)
	}
	return e.code
}

const noModelHint = `Give cadre a model in one of three ways:
  ANTHROPIC_API_KEY=…                        (or ANTHROPIC_AUTH_TOKEN; ANTHROPIC_BASE_URL for another address)
  OPENAI_API_KEY=… and OPENAI_BASE_URL=…     (any server that speaks Chat Completions; --model names the model)
  --model scripted:FILE                      (a script instead of a model)
To see a team at work without any model: cadre demo`

// goOn is the command that resumes the session of a run. A model that answered is in the
// transcript; one that did not yet has to be named again.
func (o *options) goOn(session string, answered bool) string {
	line := "To continue: cadre --resume " + session
	if o.model != "" && !answered {
		line += " --model " + shellWord(o.model)
	}
	return line
}

// shellWord writes a word as a POSIX shell reads it.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const sessionsHint = "cadre sessions ls lists the sessions of this folder, and with --all those of every folder."

// explain finds the code and the hint for an error of the library.
func explain(err error) *exit {
	e := &exit{code: exitFailed, err: err}
	var held *transcript.HeldError
	var failed *provider.Error
	var open *cadre.OpenWorkError
	var config *cadre.ConfigError
	var relative *layout.RelativeError
	switch {
	case errors.As(err, &relative):
		e.code = exitUsage
		if abs, err := filepath.Abs(relative.Path); err == nil {
			e.hint = "If you mean this folder: " + relative.Variable + "=" + abs
		}
	case errors.As(err, &config):
		e.code, e.hint = exitUsage, didYouMean(config.Near)
		var elsewhere *cadre.ElsewhereError
		switch {
		case errors.As(err, &elsewhere):
			e.hint = "To continue it there: cd " + shellWord(elsewhere.Ref.Project) + " && cadre --resume " + elsewhere.Ref.Session
		case errors.Is(err, transcript.ErrNotFound):
			e.hint = sessionsHint
		}
	case errors.Is(err, provider.ErrNoModel):
		e.code, e.hint = exitNoModel, noModelHint
	case errors.As(err, &held):
		e.hint = fmt.Sprintf("To go on in a copy while it is open: cadre --resume %s --fork-session", held.Ref.Session)
	case errors.Is(err, transcript.ErrNotFound):
		e.hint = sessionsHint
	case errors.As(err, &failed):
		e.code = codeOfClass(string(failed.Class))
	case errors.As(err, &open):
		e.code = exitLimit
	case errors.Is(err, context.Canceled):
		e.code = exitInterrupted
	default:
		e.hint = unusableRoot(err)
	}
	return e
}

// unusableRoot says what to do when the state root cannot be used; "" for other errors.
func unusableRoot(err error) string {
	var failed *fs.PathError
	if !errors.As(err, &failed) {
		return ""
	}
	root, missing := layout.Find(os.Getenv)
	below, outside := filepath.Rel(string(root), failed.Path)
	if missing != nil || outside != nil || !filepath.IsLocal(below) && below != "." {
		return ""
	}
	if _, err := os.ReadDir(string(root)); err == nil && !errors.Is(failed, fs.ErrPermission) {
		return "" // it is this one file
	}
	return fmt.Sprintf("cadre keeps its state in %s. Make that a folder that you can write to, or set CADRE_HOME to another one.", root)
}

// didYouMean is the hint that names what may have been meant; "" for nothing.
func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}

// lastTurn is how the main session's last turn ended; nil when none has.
func lastTurn(usage []event.AgentTally) *event.Outcome {
	for _, u := range usage {
		if u.Agent.ID == "" {
			return u.Last
		}
	}
	return nil
}

// answered reports whether the main session's model has answered at least once.
func answered(usage []event.AgentTally) bool {
	for _, u := range usage {
		if u.Agent.ID == "" {
			return u.Rounds > 0
		}
	}
	return false
}

// turnError is the error of a run whose last turn ended like this: nil when it ended well.
// It has no text: how the turn ended was shown already.
func turnError(last *event.Outcome) error {
	switch {
	case last == nil:
		return nil
	case last.Reason == event.Interrupted:
		return exitWith(exitInterrupted)
	case last.Reason == event.MaxRounds:
		return exitWith(exitLimit)
	case last.Reason == event.Failed:
		return exitWith(codeOfClass(last.Class))
	}
	return nil
}

// codeOfClass is the exit code for an error of the model's API.
func codeOfClass(class string) int {
	switch provider.Class(class) {
	case provider.Auth, provider.Billing, provider.ModelNotFound:
		return exitNoModel
	}
	return exitFailed
}
