package pane

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
)

// Modes are how a person may ask for teammates to run.
const (
	Auto      = "auto"
	InProcess = "in-process"
)

// Environment is what detection depends on.
type Environment struct {
	// Vars is the environment of the process, in the form of [os.Environ].
	Vars []string
	// Server names the private tmux server that is started when the process is
	// not inside tmux; it must be another for each main session.
	Server string
	// LookPath finds a program; nil is [exec.LookPath].
	LookPath func(string) (string, error)
}

// Choice is what detection has found.
type Choice struct {
	Terminal Terminal // nil: no terminal, teammates run in the process
	Hint     string   // what a person may want to know about the choice; "" for nothing
}

// Detector finds the terminal for teammates. It searches once for each mode and
// remembers the result. Its methods may be called from any goroutine.
type Detector struct {
	env Environment

	mu    sync.Mutex
	found map[string]detected
}

type detected struct {
	choice Choice
	err    error
}

// NewDetector makes a detector for an environment. It does not search yet.
func NewDetector(env Environment) *Detector {
	if env.LookPath == nil {
		env.LookPath = exec.LookPath
	}
	return &Detector{env: env, found: make(map[string]detected)}
}

// Reset forgets what was found, because the terminal may be another one now.
func (d *Detector) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.found)
}

// Choose finds the terminal for a mode ("auto", "in-process", "tmux", "iterm2").
// Auto never fails: it is tmux inside tmux, iTerm2 inside iTerm2 with its it2
// tool, else none; the Hint says what prevented a terminal. A terminal that was asked
// for by name and is not available is an [*UnavailableError].
func (d *Detector) Choose(ctx context.Context, mode string) (Choice, error) {
	d.mu.Lock()
	known, ok := d.found[mode]
	d.mu.Unlock()
	if ok {
		return known.choice, known.err
	}
	known.choice, known.err = d.find(ctx, mode)
	if ctx.Err() != nil {
		return known.choice, known.err // says more about ctx than about the terminal
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, ok := d.found[mode]; ok {
		return first.choice, first.err // another call was faster: all use one terminal
	}
	d.found[mode] = known
	return known.choice, known.err
}

func (d *Detector) find(ctx context.Context, mode string) (Choice, error) {
	switch mode {
	case InProcess:
		return Choice{}, nil
	case Tmux:
		terminal, err := d.tmux(ctx)
		return choice(terminal, err)
	case ITerm2:
		terminal, err := d.iterm2()
		return choice(terminal, err)
	case Auto, "":
		return d.auto(ctx), nil
	}
	return Choice{}, fmt.Errorf("unknown teammate mode %q: want auto, in-process, tmux or iterm2", mode)
}

// choice keeps a nil pointer from becoming a Terminal.
func choice[T Terminal](terminal T, err error) (Choice, error) {
	if err != nil {
		return Choice{}, err
	}
	return Choice{Terminal: terminal}, nil
}

// auto tries the terminal that the process runs in.
func (d *Detector) auto(ctx context.Context) Choice {
	inTmux, inITerm := d.getenv("TMUX") != "", d.inITerm2()
	var found Choice
	var err error
	switch {
	case inTmux && (!inITerm || d.getenv("CADRE_PREFER_ITERM2") != "1"):
		found, err = d.find(ctx, Tmux)
	case inITerm:
		found, err = d.find(ctx, ITerm2)
	}
	if err != nil {
		return Choice{Hint: err.Error() + "; teammates run in this process"}
	}
	return found
}

func (d *Detector) getenv(name string) string { return variable(d.env.Vars, name) }

// Known is a terminal of a kind for checking and closing places that were opened
// earlier, by this process or another. It opens none.
func (d *Detector) Known(kind string) (Terminal, error) {
	switch kind {
	case Tmux:
		path, err := d.env.LookPath("tmux")
		if err != nil {
			return nil, &UnavailableError{Tmux, "the program is not on the PATH", "install tmux"}
		}
		return &tmux{program: program{path: path, env: d.env.Vars}}, nil
	case ITerm2:
		path, err := d.env.LookPath("it2")
		if err != nil {
			return nil, &UnavailableError{ITerm2, "the it2 tool is not on the PATH", installIt2}
		}
		return &iterm2{program: program{path: path, env: d.env.Vars}}, nil
	}
	return nil, fmt.Errorf("terminal %q is neither tmux nor iterm2", kind)
}
