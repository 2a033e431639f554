package pane

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// mateShare is how much of the lead's width the first pane beside it gets (facts:
// claude-code §4.3).
const mateShare = "70%"

// privateSize is the size of a window of a private server until a client is attached.
var privateSize = []string{"-x", "220", "-y", "50"}

// open opens a pane with the script in it, where it belongs, and returns its id
// and whether it has a window of its own.
func (t *tmux) open(ctx context.Context, s Spec) (pane string, window bool, err error) {
	run := []string{"-P", "-F", "#{pane_id}", "--", "/bin/sh", lastSafe(s.Script)}
	if t.name != "" {
		return t.openPrivate(ctx, s, run)
	}
	if !s.Window {
		pane, err = t.split(ctx, run)
		if !errors.Is(err, errNoSpace) {
			return pane, false, err
		}
	}
	pane, err = t.newWindow(ctx, t.lead, s, run)
	return pane, true, err
}

// split puts a pane under the last one of the lead's column, or begins the
// column to the right of the lead. Other panes of the window stay as they are.
func (t *tmux) split(ctx context.Context, run []string) (string, error) {
	column, err := t.column(ctx)
	if err != nil {
		return "", err
	}
	if len(column) == 0 {
		return t.ask(ctx, append([]string{"split-window", "-d", "-h", "-l", mateShare, "-t", t.lead}, run...)...)
	}
	last := column[len(column)-1]
	pane, err := t.ask(ctx, append([]string{"split-window", "-d", "-v", "-t", last}, run...)...)
	if err == nil {
		t.even(ctx, t.socket, append(column, pane))
	}
	return pane, err
}

// even gives the panes of a column, from the top, the same height. It leaves the
// widths alone, which the layouts of tmux do not. Uneven heights are not an error.
func (t *tmux) even(ctx context.Context, socket string, column []string) {
	if len(column) < 2 {
		return
	}
	out, err := t.askServer(ctx, socket, "list-panes", "-t", column[0], "-F", "#{pane_id} #{pane_height}")
	if err != nil {
		return
	}
	total := 0
	for line := range strings.SplitSeq(out, "\n") {
		pane, height, _ := strings.Cut(line, " ")
		if slices.Contains(column, pane) {
			n, _ := strconv.Atoi(height)
			total += n
		}
	}
	each := strconv.Itoa(max(1, total/len(column)))
	var resize []string
	for _, pane := range column[:len(column)-1] {
		resize = append(resize, "resize-pane", "-t", pane, "-y", each, ";")
	}
	_, _ = t.askServer(ctx, socket, resize[:len(resize)-1]...)
}

// column lists our panes in the column of the lead's window.
func (t *tmux) column(ctx context.Context) ([]string, error) {
	out, err := t.ask(ctx, "list-panes", "-t", t.lead, "-F", "#{"+columnOption+"} #{pane_id}")
	var panes []string
	for line := range strings.SplitSeq(out, "\n") {
		if lead, pane, ok := strings.Cut(line, " "); ok && lead == t.lead {
			panes = append(panes, pane)
		}
	}
	return panes, err
}

// newWindow opens a window behind the last one of the session that target is in.
func (t *tmux) newWindow(ctx context.Context, target string, s Spec, run []string) (string, error) {
	session, err := t.ask(ctx, "display-message", "-p", "-t", target, "#{session_id}")
	if err != nil {
		return "", err
	}
	// The name is a format; the colon makes the target a session.
	name := lastSafe(literal(cleanTitle(s.Title)))
	return t.ask(ctx, append([]string{"new-window", "-d", "-t", session + ":", "-n", name}, run...)...)
}

// openPrivate opens a pane on the private server, which begins with its first
// pane and ends with its last. That may happen at this very moment: the last pane was
// closed just before, or a lead that was killed has left the beginning to a process
// that goes on with it. Then the next try finds the server as it is now.
func (t *tmux) openPrivate(ctx context.Context, s Spec, run []string) (pane string, window bool, err error) {
	for range 3 {
		pane, window, err = t.tryPrivate(ctx, s, run)
		if !errors.Is(err, errHas) && !errors.Is(err, errNoServer) && !errors.Is(err, ErrGone) {
			break
		}
	}
	return pane, window, err
}

func (t *tmux) tryPrivate(ctx context.Context, s Spec, run []string) (string, bool, error) {
	const session = "cadre"
	if _, err := t.ask(ctx, "has-session", "-t", "="+session); err != nil {
		if !errors.Is(err, errNoServer) && !errors.Is(err, ErrGone) {
			return "", false, err
		}
		args := append([]string{"-L", t.name, "-f", "/dev/null", "new-session", "-d", "-s", session}, privateSize...)
		pane, err := t.unmarked().run(ctx, append(args, run...)...)
		return pane, false, classify(err)
	}
	if !s.Window {
		pane, err := t.ask(ctx, append([]string{"split-window", "-d", "-t", "=" + session + ":"}, run...)...)
		if err == nil {
			_, _ = t.ask(ctx, "select-layout", "-t", pane, "tiled")
		}
		if !errors.Is(err, errNoSpace) {
			return pane, false, err
		}
	}
	pane, err := t.newWindow(ctx, "="+session+":", s, run)
	return pane, true, err
}

// unmarked runs tmux without the mark by which processes of a run are terminated: a
// server that it starts outlives the run.
func (t *tmux) unmarked() program {
	return program{t.path, t.env, []string{"/usr/bin/env", "-u", "CADRE_RUN"}}
}

// lastSafe escapes a semicolon at the end of an argument, which tmux would read as
// the end of the command.
func lastSafe(arg string) string {
	if rest, ok := strings.CutSuffix(arg, ";"); ok {
		return rest + `\;`
	}
	return arg
}
