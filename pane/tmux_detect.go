package pane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// What to do without a tmux that is new enough (borders that differ from pane to pane
// came with 3.2), or outside the one that is named.
const (
	installTmux = "install tmux 3.2 or newer, or set teammateMode to in-process"
	outsideTmux = "start the lead again inside tmux, or unset TMUX to get a tmux server of its own"
)

// tmux finds the server that the process runs in, or prepares a private one.
func (d *Detector) tmux(ctx context.Context) (*tmux, error) {
	path, err := d.env.LookPath("tmux")
	if err != nil {
		return nil, &UnavailableError{Tmux, "the program is not on the PATH", installTmux}
	}
	t := &tmux{program: program{path: path, env: d.env.Vars}, opening: newOpening()}
	version, err := t.run(ctx, "-V")
	if err != nil {
		return nil, &UnavailableError{Tmux, err.Error(), installTmux}
	}
	if !newEnough(version) {
		return nil, &UnavailableError{Tmux, version + " is too old", installTmux}
	}
	if d.getenv("TMUX") == "" {
		t.name = cmp.Or(d.env.Server, "cadre")
		t.env = serverEnv(d.env.Vars)
		return t, nil
	}
	if err := t.join(ctx, d.getenv("TMUX"), d.getenv("TMUX_PANE")); err != nil {
		return nil, err
	}
	return t, nil
}

// join finds the lead's own pane: TMUX holds "socket,pid,session".
func (t *tmux) join(ctx context.Context, where, pane string) error {
	if pane == "" {
		return &UnavailableError{Tmux, "TMUX is set, but TMUX_PANE, which names the pane of the lead, is not", outsideTmux}
	}
	t.socket, t.lead = where, pane
	for range 2 { // the path itself may have commas
		if at := strings.LastIndexByte(t.socket, ','); at >= 0 {
			t.socket = t.socket[:at]
		}
	}
	found, err := t.ask(ctx, "display-message", "-p", "-t", pane, "#{pane_id}")
	if err == nil && found == pane {
		return nil
	}
	if err != nil && !errors.Is(err, errNoServer) && !errors.Is(err, ErrGone) {
		return err
	}
	return &UnavailableError{Tmux, "the tmux server that TMUX and TMUX_PANE name does not run any more", outsideTmux}
}

// newEnough reads "tmux 3.3a" and "tmux next-3.4". A version without a number is
// built from the newest sources.
func newEnough(version string) bool {
	at := strings.IndexAny(version, "0123456789")
	if at < 0 {
		return true
	}
	var major, minor int
	_, _ = fmt.Sscanf(version[at:], "%d.%d", &major, &minor) // what is not there is 0
	return major > 3 || major == 3 && minor >= 2
}

// serverEnv is the environment of a tmux server that we start. Everybody who may use
// the server can read it, so it holds no keys: an agent gets what it needs with its
// script.
func serverEnv(vars []string) []string {
	var env []string
	for _, entry := range vars {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "TMUX_TMPDIR":
			env = append(env, entry)
		default:
			if strings.HasPrefix(name, "LC_") {
				env = append(env, entry)
			}
		}
	}
	return env
}
