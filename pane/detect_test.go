//go:build unix

package pane_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/pane"
)

// none finds no program.
func none(string) (string, error) { return "", exec.ErrNotFound }

func without(name string) func(string) (string, error) {
	return func(file string) (string, error) {
		if file == name {
			return "", exec.ErrNotFound
		}
		return exec.LookPath(file)
	}
}

func TestChoose(t *testing.T) {
	s := startServer(t)
	standIn := filepath.Join(t.TempDir(), "it2")
	if err := os.WriteFile(standIn, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	withIt2 := func(file string) (string, error) {
		if file == "it2" {
			return standIn, nil
		}
		return exec.LookPath(file)
	}
	plain := append(os.Environ(), "TMUX=", "TERM_PROGRAM=", "ITERM_SESSION_ID=", "CADRE_PREFER_ITERM2=")
	in := func(vars ...string) []string { return append(plain[:len(plain):len(plain)], vars...) }
	inTmux := append(plain[:len(plain):len(plain)], s.vars[len(s.vars)-2:]...)
	stale := in("TMUX="+s.socket+"-gone,1,0", "TMUX_PANE=%0")
	stalePane := in("TMUX="+s.socket+",1,0", "TMUX_PANE=%999")
	iterm := "TERM_PROGRAM=iTerm.app"
	for _, c := range []struct {
		name   string
		mode   string
		vars   []string
		look   func(string) (string, error)
		kind   string
		remedy string // in the error, or in the hint of auto
	}{
		{"auto in nothing", pane.Auto, plain, withIt2, "", ""},
		{"auto in tmux", pane.Auto, inTmux, nil, pane.Tmux, ""},
		{"auto in tmux in iTerm2", pane.Auto, append(inTmux[:len(inTmux):len(inTmux)], iterm), withIt2, pane.Tmux, ""},
		{"auto in tmux, iTerm2 preferred", pane.Auto, append(inTmux[:len(inTmux):len(inTmux)], iterm, "CADRE_PREFER_ITERM2=1"), withIt2, pane.ITerm2, ""},
		{"auto in tmux, iTerm2 preferred but not there", pane.Auto, append(inTmux[:len(inTmux):len(inTmux)], "CADRE_PREFER_ITERM2=1"), nil, pane.Tmux, ""},
		{"auto in iTerm2", pane.Auto, in(iterm), withIt2, pane.ITerm2, ""},
		{"auto in iTerm2 by its session", pane.Auto, in("ITERM_SESSION_ID=w0t0p0:x"), withIt2, pane.ITerm2, ""},
		{"auto in iTerm2 without it2", pane.Auto, in(iterm), without("it2"), "", "pip install it2"},
		{"auto, stale", pane.Auto, stale, nil, "", "unset TMUX"},
		{"auto, no tmux", pane.Auto, inTmux, none, "", "install tmux"},
		{"in-process in tmux", pane.InProcess, inTmux, nil, "", ""},
		{"tmux in tmux", pane.Tmux, inTmux, nil, pane.Tmux, ""},
		{"tmux in nothing", pane.Tmux, plain, nil, pane.Tmux, ""},
		{"tmux without tmux", pane.Tmux, plain, none, "", "install tmux"},
		{"tmux, server gone", pane.Tmux, stale, nil, "", "unset TMUX"},
		{"tmux, pane gone", pane.Tmux, stalePane, nil, "", "unset TMUX"},
		{"tmux, no pane named", pane.Tmux, append(inTmux[:len(inTmux):len(inTmux)], "TMUX_PANE="), nil, "", "unset TMUX"},
		{"iterm2 elsewhere", pane.ITerm2, plain, withIt2, "", "inside iTerm2"},
		{"iterm2 without it2", pane.ITerm2, in(iterm), without("it2"), "", "pip install it2"},
		{"iterm2", pane.ITerm2, in(iterm), withIt2, pane.ITerm2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			choice, err := pane.NewDetector(pane.Environment{Vars: c.vars, Server: "x", LookPath: c.look}).Choose(t.Context(), c.mode)
			kind := ""
			if choice.Terminal != nil {
				kind = choice.Terminal.Kind()
			}
			if kind != c.kind {
				t.Errorf("kind %q, want %q (%v)", kind, c.kind, err)
			}
			var unavailable *pane.UnavailableError
			switch {
			case c.mode == pane.Auto:
				if err != nil || c.remedy == "" && choice.Hint != "" || !strings.Contains(choice.Hint, c.remedy) {
					t.Errorf("hint %q, error %v", choice.Hint, err)
				}
			case c.remedy == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &unavailable) || !strings.Contains(err.Error(), c.remedy):
				t.Errorf("error %v, want one that says %q", err, c.remedy)
			}
		})
	}
	if _, err := pane.NewDetector(pane.Environment{}).Choose(t.Context(), "screen"); err == nil {
		t.Error("an unknown mode is none")
	}
}

// Detection is done once, until it is reset.
func TestChooseRemembers(t *testing.T) {
	s := startServer(t)
	d := pane.NewDetector(pane.Environment{Vars: s.vars})
	first, err := d.Choose(t.Context(), pane.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	s.tmux(t, "kill-server")
	if again, err := d.Choose(t.Context(), pane.Tmux); err != nil || again.Terminal != first.Terminal {
		t.Errorf("looked again: %v, %v", again, err)
	}
	d.Reset()
	if _, err := d.Choose(t.Context(), pane.Tmux); err == nil {
		t.Error("not looked again after the reset")
	}
}

func TestOldTmux(t *testing.T) {
	for version, ok := range map[string]bool{
		"tmux 3.0a": false, "tmux 2.9": false, "tmux 3.1c": false, "tmux 3.2": true, "tmux 3.3a": true, "tmux next-3.4": true,
		"tmux 4": true, "tmux 10.0": true, "tmux master": true, "tmux openbsd-7.2": true,
	} {
		path := filepath.Join(t.TempDir(), "tmux")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		look := func(string) (string, error) { return path, nil }
		_, err := pane.NewDetector(pane.Environment{Vars: []string{"PATH=/bin"}, LookPath: look}).Choose(t.Context(), pane.Tmux)
		if (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// Outside tmux, teammates get a server of their own, which ends with the last.
func TestPrivateServer(t *testing.T) {
	needTmux(t)
	dir := shortDir(t)
	t.Setenv("TMUX_TMPDIR", dir)
	name := "cadre-test-" + ids.Hex(8)
	vars := append(os.Environ(), "TMUX=", "ANTHROPIC_API_KEY=sk-ant-secret", "CADRE_RUN=outer")
	d := pane.NewDetector(pane.Environment{Vars: vars, Server: name})
	choice, err := d.Choose(t.Context(), pane.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	terminal := choice.Terminal
	if want := "tmux -L " + name + " attach"; terminal.Attach() != want {
		t.Errorf("attach with %q, want %q", terminal.Attach(), want)
	}
	var places []pane.Place
	for _, spec := range []pane.Spec{{Title: "w1"}, {Title: "w2", Color: "green"}, {Title: "w3", Window: true}} {
		places = append(places, open(t, terminal, spec))
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", name, "kill-server").Run() })
	windows := tmux(t, "-L", name, "list-windows", "-a", "-F", "#{window_panes} #{pane-border-status}")
	if windows != "2 top\n1 top" {
		t.Errorf("windows:\n%s", windows)
	}
	global := tmux(t, "-L", name, "show-environment", "-g")
	if strings.Contains(global, "sk-ant-secret") || strings.Contains(global, "CADRE_RUN") {
		t.Errorf("the server's environment:\n%s", global)
	}
	if got := alive(t, terminal, places...); !got[0] || !got[1] || !got[2] {
		t.Errorf("alive %v", got)
	}
	for _, p := range places {
		if err := terminal.Close(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for exec.CommandContext(ctx, "tmux", "-L", name, "list-sessions").Run() == nil { // it ends after it has answered
	}
	if ctx.Err() != nil {
		t.Error("the server outlives its last pane")
	}
	open(t, terminal, pane.Spec{Title: "again"})
}

// The private server may begin between the look whether it is there and its start: a
// lead that was killed has left a process that starts it. It may end in the same way.
func TestPrivateServerBeginsAndEndsMeanwhile(t *testing.T) {
	needTmux(t)
	t.Setenv("TMUX_TMPDIR", shortDir(t))
	tmuxPath, err := exec.LookPath("tmux")
	if err != nil {
		t.Fatal(err)
	}
	for meanwhile, answer := range map[string]string{
		"new-session -d -s cadre cat": "echo no server running; exit 1",
		"kill-server":                 "exit 0",
		"new-session -d -s other cat": "echo no current target; exit 1",
	} {
		name, dir := "cadre-test-"+ids.Hex(8), t.TempDir()
		wrapped := filepath.Join(dir, "tmux")
		text := fmt.Sprintf("#!/bin/sh\ncase $* in *has-session*)\n\tif mkdir '%s/first' 2>/dev/null; then\n\t\t%s -L %s -f /dev/null %s; { %s; } >&2\n\tfi ;;\nesac\nexec %s \"$@\"\n",
			dir, tmuxPath, name, meanwhile, answer, tmuxPath)
		if err := os.WriteFile(wrapped, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		choice, err := pane.NewDetector(pane.Environment{
			Vars: append(os.Environ(), "TMUX="), Server: name, LookPath: func(string) (string, error) { return wrapped, nil },
		}).Choose(t.Context(), pane.Tmux)
		if err != nil {
			t.Fatal(err)
		}
		p, err := choice.Terminal.Open(t.Context(), pane.Spec{Title: "w", Script: script(t, "exec cat")})
		t.Cleanup(func() { _ = exec.Command("tmux", "-L", name, "kill-server").Run() })
		if err != nil || !alive(t, choice.Terminal, p)[0] {
			t.Errorf("%s meanwhile: %+v, %v", meanwhile, p, err)
		}
	}
}

// The server that is started is no part of the run that started it.
func TestPrivateServerOutlivesACancelledCall(t *testing.T) {
	needTmux(t)
	t.Setenv("TMUX_TMPDIR", shortDir(t))
	name := "cadre-test-" + ids.Hex(8)
	choice, err := pane.NewDetector(pane.Environment{Vars: append(os.Environ(), "TMUX="), Server: name}).Choose(t.Context(), pane.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, choice.Terminal, pane.Spec{Title: "w"})
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", name, "kill-server").Run() })
	pid := tmux(t, "-S", p.Socket, "display-message", "-p", "#{pid}")
	if environ, err := os.ReadFile("/proc/" + pid + "/environ"); err == nil && strings.Contains(string(environ), "CADRE_RUN") {
		t.Error("the server carries the mark of the run that started it")
	}
}
