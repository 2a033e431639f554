package pane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/ids"
)

// Options that we set on our panes: what is closed has the mark that the Place
// keeps, and what stands in a lead's column names its pane.
const (
	markOption   = "@cadre_pane"
	columnOption = "@cadre_lead"
)

// tmux opens panes in the window of the lead's own pane, or on a private server
// when the lead is not inside tmux. Nothing global of the user's server is
// changed.
type tmux struct {
	program
	socket string // path of the user's server; "" for a private one
	lead   string // the lead's pane there
	name   string // of the private server
	opening
}

// Kind implements [Terminal].
func (t *tmux) Kind() string { return Tmux }

// Attach implements [Terminal].
func (t *tmux) Attach() string {
	if t.name == "" {
		return ""
	}
	return "tmux -L " + t.name + " attach"
}

// ask runs a command on the server of this terminal.
func (t *tmux) ask(ctx context.Context, args ...string) (string, error) {
	if t.socket != "" {
		return t.askServer(ctx, t.socket, args...)
	}
	out, err := t.run(ctx, append([]string{"-L", t.name}, args...)...)
	return out, classify(err)
}

// askServer runs a command on the server behind a socket.
func (t *tmux) askServer(ctx context.Context, socket string, args ...string) (string, error) {
	out, err := t.run(ctx, append([]string{"-S", socket}, args...)...)
	return out, classify(err)
}

var (
	errNoServer = errors.New("no tmux server runs there")
	errNoSpace  = errors.New("the window has no room for another pane")
	errHas      = errors.New("the tmux server already has such a session")
)

// classify recognizes errors that tmux reports only in words.
func classify(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	kinds := []struct {
		kind  error
		words []string
	}{
		{errNoServer, []string{"no server running", "error connecting to", "server exited", "lost server"}},
		{ErrGone, []string{"can't find pane", "can't find window", "can't find session", "no such pane", "no current target"}},
		{errHas, []string{"duplicate session"}},
		{errNoSpace, []string{"no space for new pane", "size or position", "pane too small"}},
	}
	for _, k := range kinds {
		for _, words := range k.words {
			if strings.Contains(f.stderr, words) {
				return fmt.Errorf("%w (%w)", k.kind, err)
			}
		}
	}
	return err
}

// Open implements [Terminal]. A split that does not fit becomes a window.
func (t *tmux) Open(ctx context.Context, s Spec) (Place, error) {
	release, err := t.acquire(ctx)
	if err != nil {
		return Place{}, err
	}
	defer release()
	pane, window, err := t.open(ctx, s)
	if err != nil {
		return Place{}, fmt.Errorf("open a tmux pane for %s: %w", cleanTitle(s.Title), err)
	}
	p := Place{Terminal: Tmux, Pane: pane, Mark: ids.Hex(24), Window: window}
	if err := t.mark(ctx, &p); err != nil {
		late := context.WithoutCancel(ctx)
		_, closing := t.ask(late, "kill-pane", "-t", pane) // by its id alone: it was given a moment ago
		if errors.Is(closing, ErrGone) || errors.Is(closing, errNoServer) {
			closing = nil
		}
		return Place{}, errors.Join(fmt.Errorf("mark tmux pane %s: %w", pane, err), closing)
	}
	t.decorate(ctx, p, s)
	return p, nil
}

// mark marks a pane, so that it can be told from others, and finds its server's
// socket.
func (t *tmux) mark(ctx context.Context, p *Place) error {
	column := t.lead
	if p.Window || column == "" {
		column = p.Pane
	}
	socket, err := t.ask(ctx, "set-option", "-p", "-t", p.Pane, markOption, p.Mark,
		";", "set-option", "-p", "-t", p.Pane, columnOption, column,
		";", "display-message", "-p", "-t", p.Pane, "#{socket_path}")
	p.Socket = socket
	return err
}

// Alive implements [Terminal].
func (t *tmux) Alive(ctx context.Context, places []Place) (map[Place]bool, error) {
	alive := make(map[Place]bool, len(places))
	servers := make(map[string]map[string]bool)
	for _, p := range places {
		panes, ok := servers[p.Socket]
		if !ok {
			var err error
			if panes, err = t.marked(ctx, p.Socket); err != nil {
				return nil, fmt.Errorf("list the panes of tmux server %s: %w", p.Socket, err)
			}
			servers[p.Socket] = panes
		}
		alive[p] = panes[p.Pane+" "+p.Mark]
	}
	return alive, nil
}

// marked lists "pane mark" for all panes of a server.
func (t *tmux) marked(ctx context.Context, socket string) (map[string]bool, error) {
	out, err := t.askServer(ctx, socket, "list-panes", "-a", "-F", "#{pane_id} #{"+markOption+"}")
	if errors.Is(err, errNoServer) {
		return nil, nil
	}
	panes := make(map[string]bool)
	for line := range strings.SplitSeq(out, "\n") {
		panes[line] = true
	}
	return panes, err
}

// Close implements [Terminal]. The server itself compares the mark, so that no other
// pane can get the id in between.
func (t *tmux) Close(ctx context.Context, p Place) error {
	if p.Mark == "" {
		return fmt.Errorf("close tmux pane %s: it has no mark that says it is ours", p.Pane)
	}
	window, err := t.askServer(ctx, p.Socket, "display-message", "-p", "-t", p.Pane, "#{window_id}")
	if err == nil {
		_, err = t.askServer(ctx, p.Socket, "if-shell", "-F", "-t", p.Pane,
			"#{==:#{"+markOption+"},"+p.Mark+"}", "kill-pane -t "+p.Pane)
	}
	if errors.Is(err, errNoServer) || errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close tmux pane %s: %w", p.Pane, err)
	}
	t.tidy(ctx, p.Socket, window)
	return nil
}

// Tail implements [Terminal].
func (t *tmux) Tail(ctx context.Context, p Place, lines int) (string, error) {
	alive, err := t.Alive(ctx, []Place{p})
	if err == nil && !alive[p] {
		err = ErrGone
	}
	if err != nil {
		return "", fmt.Errorf("read tmux pane %s: %w", p.Pane, err)
	}
	screen, err := t.askServer(ctx, p.Socket, "capture-pane", "-p", "-J", "-t", p.Pane)
	if err != nil {
		return "", fmt.Errorf("read tmux pane %s: %w", p.Pane, err)
	}
	return lastLines(screen, lines), nil
}
