package pane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/shellword"
)

// What to do without iTerm2 or its tool.
const (
	installIt2    = "install it (pip install it2) and enable the Python API in iTerm2 under Settings, General, Magic"
	insideITerm2  = "start the lead inside iTerm2, or set teammateMode to tmux or in-process"
	createdPane   = "Created new pane: "
	itermVariable = "ITERM_SESSION_ID"
)

// iterm2 opens panes and tabs of iTerm2 through its it2 tool. This was tested
// with a stand-in that records its calls, not with iTerm2 itself. Titles are set,
// colours are not: the tool has no command for them. The ids of sessions are
// UUIDs, so a pane needs no mark.
type iterm2 struct {
	program
	opening
	lead string // session id of the lead's pane

	column []string // panes opened beside the lead, the newest last; held with opening
}

// inITerm2 reports whether the environment says that the process runs in iTerm2.
func (d *Detector) inITerm2() bool {
	return d.getenv("TERM_PROGRAM") == "iTerm.app" || d.getenv(itermVariable) != ""
}

// iterm2 prepares for opening panes beside the lead's own.
func (d *Detector) iterm2() (*iterm2, error) {
	if !d.inITerm2() {
		return nil, &UnavailableError{ITerm2, "this is not a session of iTerm2", insideITerm2}
	}
	path, err := d.env.LookPath("it2")
	if err != nil {
		return nil, &UnavailableError{ITerm2, "the it2 tool is not on the PATH", installIt2}
	}
	lead := d.getenv(itermVariable)
	if at := strings.LastIndexByte(lead, ':'); at >= 0 {
		lead = lead[at+1:] // "w0t1p2:UUID"
	}
	return &iterm2{program: program{path: path, env: d.env.Vars}, lead: lead, opening: newOpening()}, nil
}

// Kind implements [Terminal].
func (t *iterm2) Kind() string { return ITerm2 }

// Attach implements [Terminal].
func (t *iterm2) Attach() string { return "" }

// Open implements [Terminal].
func (t *iterm2) Open(ctx context.Context, s Spec) (Place, error) {
	release, err := t.acquire(ctx)
	if err != nil {
		return Place{}, err
	}
	defer release()
	title := cleanTitle(s.Title)
	id, err := t.open(ctx, s.Window)
	if err != nil {
		return Place{}, fmt.Errorf("open an iTerm2 pane for %s: %w", title, err)
	}
	p := Place{Terminal: ITerm2, Pane: id, Window: s.Window}
	// The shell there is interactive; a space keeps the line out of most
	// histories, and exec closes the pane with the script.
	if _, err := t.run(ctx, "session", "run", " exec /bin/sh "+shellword.Quote(s.Script), "--session", id); err != nil {
		closing := t.Close(context.WithoutCancel(ctx), p)
		return Place{}, errors.Join(fmt.Errorf("start a program in iTerm2 pane %s: %w", id, err), closing)
	}
	if !s.Window {
		t.column = append(t.column, id)
	}
	_, _ = t.run(ctx, "session", "set-name", "--session", id, "--", title) // a pane without a name works too
	if t.lead != "" {
		_, _ = t.run(ctx, "session", "focus", t.lead) // a new pane gets the focus
	}
	return p, nil
}

// open opens a tab, the first pane to the right of the lead, or one more under
// the last.
func (t *iterm2) open(ctx context.Context, window bool) (string, error) {
	before, err := t.sessions(ctx)
	if err != nil {
		return "", err
	}
	if window {
		if _, err := t.run(ctx, "tab", "new"); err != nil {
			return "", err
		}
		return t.newest(ctx, before)
	}
	for len(t.column) > 0 && !before[t.column[len(t.column)-1]] {
		t.column = t.column[:len(t.column)-1]
	}
	var out string
	switch {
	case len(t.column) > 0:
		out, err = t.run(ctx, "session", "split", "--session", t.column[len(t.column)-1])
	case t.lead != "":
		out, err = t.run(ctx, "session", "split", "--vertical", "--session", t.lead)
	default:
		out, err = t.run(ctx, "session", "split", "--vertical")
	}
	if err != nil {
		return "", err
	}
	_, id, ok := strings.Cut(out, createdPane)
	if !ok {
		return "", fmt.Errorf("it2 session split: no pane in its answer %q", out)
	}
	return strings.TrimSpace(id), nil
}

// newest is the one session that was not there before.
func (t *iterm2) newest(ctx context.Context, before map[string]bool) (string, error) {
	after, err := t.sessions(ctx)
	if err != nil {
		return "", err
	}
	var fresh []string
	for id := range after {
		if !before[id] {
			fresh = append(fresh, id)
		}
	}
	if len(fresh) != 1 {
		return "", fmt.Errorf("it2 tab new: %d new sessions, one was expected", len(fresh))
	}
	return fresh[0], nil
}

// sessions are the ids of all sessions.
func (t *iterm2) sessions(ctx context.Context) (map[string]bool, error) {
	out, err := t.run(ctx, "session", "list", "--json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read the list of iTerm2 sessions: %w", err)
	}
	ids := make(map[string]bool, len(list))
	for _, s := range list {
		ids[s.ID] = true
	}
	return ids, nil
}

// Alive implements [Terminal].
func (t *iterm2) Alive(ctx context.Context, places []Place) (map[Place]bool, error) {
	sessions, err := t.sessions(ctx)
	if err != nil {
		return nil, err
	}
	alive := make(map[Place]bool, len(places))
	for _, p := range places {
		alive[p] = sessions[p.Pane]
	}
	return alive, nil
}

// Close implements [Terminal].
func (t *iterm2) Close(ctx context.Context, p Place) error {
	alive, err := t.Alive(ctx, []Place{p})
	if err == nil && alive[p] {
		_, err = t.run(ctx, "session", "close", "--force", "--session", p.Pane)
	}
	if err != nil {
		return fmt.Errorf("close iTerm2 pane %s: %w", p.Pane, err)
	}
	return nil
}

// Tail implements [Terminal].
func (t *iterm2) Tail(ctx context.Context, p Place, lines int) (string, error) {
	alive, err := t.Alive(ctx, []Place{p})
	if err == nil && !alive[p] {
		err = ErrGone
	}
	var screen string
	if err == nil {
		screen, err = t.run(ctx, "session", "read", "--session", p.Pane)
	}
	if err != nil {
		return "", fmt.Errorf("read iTerm2 pane %s: %w", p.Pane, err)
	}
	return lastLines(screen, lines), nil
}
