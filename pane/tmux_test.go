//go:build unix

package pane_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/pane"
)

// The lead keeps the left and the focus; teammates stand one under another to
// its right, in equal parts.
func TestTmuxLayout(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	var places []pane.Place
	for i := range 3 {
		places = append(places, open(t, terminal, pane.Spec{Title: fmt.Sprint("w", i)}))
	}
	layout := s.tmux(t, "list-panes", "-t", s.lead, "-F", "#{pane_id} #{pane_left} #{pane_width} #{pane_active}")
	want := []string{
		s.lead + " 0 59 1", places[0].Pane + " 60 140 0", places[1].Pane + " 60 140 0", places[2].Pane + " 60 140 0",
	}
	if diff := cmp.Diff(want, strings.Split(layout, "\n")); diff != "" {
		t.Errorf("panes (-want +got):\n%s", diff)
	}
	var heights []int
	for _, h := range strings.Fields(s.tmux(t, "list-panes", "-t", s.lead, "-F", "#{?#{@cadre_pane},#{pane_height},}")) {
		var n int
		fmt.Sscan(h, &n)
		heights = append(heights, n)
	}
	if len(heights) != 3 || heights[0] < 14 || heights[1] < 14 || heights[2] < 14 {
		t.Errorf("heights %v of 49 lines", heights)
	}
	if got := terminal.Attach(); got != "" {
		t.Errorf("attach with %q although it is in front of the person", got)
	}

	if err := terminal.Close(t.Context(), places[1]); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(t.Context(), places[2]); err != nil {
		t.Fatal(err)
	}
	if width := s.tmux(t, "display-message", "-p", "-t", s.lead, "#{pane_width}"); width != "59" {
		t.Errorf("the lead is %s wide after two were closed", width)
	}
}

// What the person has split stays as it is.
func TestTmuxLeavesOtherPanes(t *testing.T) {
	s := startServer(t)
	theirs := s.tmux(t, "split-window", "-d", "-v", "-l", "10", "-t", s.lead, "-P", "-F", "#{pane_id}", "cat")
	terminal := s.terminal(t)
	for range 3 {
		open(t, terminal, pane.Spec{Title: "w"})
	}
	size := s.tmux(t, "display-message", "-p", "-t", theirs, "#{pane_width}x#{pane_height}")
	if size != "200x10" {
		t.Errorf("their pane is %s", size)
	}
}

func TestTmuxWindow(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	p := open(t, terminal, pane.Spec{Title: "-t;", Window: true})
	if !p.Window {
		t.Error("the place does not say that it is a window")
	}
	windows := s.tmux(t, "list-windows", "-t", "user", "-F", "#{window_name} #{window_panes} #{window_active}")
	if !strings.Contains(windows, "-t; 1 0") || strings.Count(windows, "\n") != 1 {
		t.Errorf("windows:\n%s", windows)
	}
	split := open(t, terminal, pane.Spec{Title: "beside"})
	if window := s.tmux(t, "display-message", "-p", "-t", split.Pane, "#{window_id}"); window != s.tmux(t, "display-message", "-p", "-t", s.lead, "#{window_id}") {
		t.Errorf("a split after a window went to %s", window)
	}
}

// Where nothing fits any more, a pane becomes a window.
func TestTmuxFullWindow(t *testing.T) {
	s := startServer(t)
	s.tmux(t, "resize-window", "-t", "user", "-x", "40", "-y", "6")
	terminal := s.terminal(t)
	windows := 0
	for range 6 {
		if open(t, terminal, pane.Spec{Title: "w"}).Window {
			windows++
		}
	}
	if windows == 0 || windows == 6 {
		t.Errorf("%d of 6 are windows in a window of 6 lines", windows)
	}
}

// Titles say what they were given, and cannot move the cursor, name a variable
// of tmux, or change the colour of the border.
func TestTmuxTitles(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	for title, want := range map[string]string{
		"w1":                           "w1",
		"日本 😀":                         "日本 😀",
		"#{pane_id} #(touch x) #S":     "#{pane_id} #(touch x) #S",
		"a#[fg=red]b":                  "a#[fg=red]b",
		"-T":                           "-T",
		"end;":                         "end;",
		"two\nlines\x1b[31m\x07\u202e": "two lines[31m",
		strings.Repeat("x", 200):       strings.Repeat("x", 79) + "…",
	} {
		p := open(t, terminal, pane.Spec{Title: title, Color: "orange", Window: true})
		if got := s.tmux(t, "display-message", "-p", "-t", p.Pane, "#{pane_title}"); got != want {
			t.Errorf("the title %q is %q, want %q", title, got, want)
		}
		for _, style := range []string{"pane-border-style", "pane-active-border-style"} {
			if got := s.tmux(t, "display-message", "-p", "-t", p.Pane, "#{E:"+style+"}"); got != "fg=colour208" {
				t.Errorf("an orange border is %q", got)
			}
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a title was run as a command")
	}
}

// What a person sees on the border, drawn by another tmux that looks on.
func TestTmuxBorder(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	open(t, terminal, pane.Spec{Title: "a#[fg=red]b #{pane_id}", Color: "blue"})
	seen := tmux(t, "-L", s.name+"-eye", "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "51", "-P", "-F", "#{socket_path}",
		"tmux -S "+s.socket+" attach -t user")
	eye := &server{name: s.name + "-eye", socket: seen}
	t.Cleanup(func() { eye.tmux(t, "kill-server") })
	for {
		screen := eye.tmux(t, "capture-pane", "-p")
		if strings.Contains(screen, "a#[fg=red]b #{pane_id}") {
			return
		}
		if t.Context().Err() != nil || strings.Count(screen, "─") > 100 && !strings.Contains(screen, "a#") {
			t.Fatalf("the border says something else:\n%s", screen)
		}
	}
}

// Nothing that is not on our panes and their windows has changed.
func TestTmuxOptions(t *testing.T) {
	s := startServer(t)
	s.tmux(t, "set-option", "-g", "pane-border-style", "#{?pane_in_mode,fg=white,fg=green,bold}")
	other := s.tmux(t, "new-window", "-d", "-P", "-F", "#{window_id}", "cat")
	global := func() string {
		return s.tmux(t, "show-options", "-g") + s.tmux(t, "show-options", "-gw") + s.tmux(t, "show-options", "-s") +
			s.tmux(t, "show-options", "-t", "user") + s.tmux(t, "show-options", "-w", "-t", other) + s.tmux(t, "show-options", "-p", "-t", s.lead)
	}
	before := global()
	terminal := s.terminal(t)
	p := open(t, terminal, pane.Spec{Title: "w", Color: "red"})
	if got := s.tmux(t, "show-options", "-w", "-v", "-t", s.lead, "pane-border-status"); got != "top" {
		t.Errorf("the titles are %q on the lead's window", got)
	}
	for target, want := range map[string]string{s.lead: "fg=green,bold", p.Pane: "fg=red"} {
		if got := s.tmux(t, "display-message", "-p", "-t", target, "#{E:pane-border-style}"); got != want {
			t.Errorf("the border of %s is drawn %q, want %q", target, got, want)
		}
	}
	if diff := cmp.Diff(before, global()); diff != "" {
		t.Errorf("options (-before +after):\n%s", diff)
	}
	if err := terminal.Close(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := s.tmux(t, "show-options", "-w", "-t", s.lead); got != "" {
		t.Errorf("options left on the window: %s", got)
	}
}

// A window that has its borders as its person likes them keeps them.
func TestTmuxBordersOfThePerson(t *testing.T) {
	s := startServer(t)
	s.tmux(t, "set-option", "-w", "-t", s.lead, "pane-border-status", "bottom")
	terminal := s.terminal(t)
	p := open(t, terminal, pane.Spec{Title: "w"})
	if err := terminal.Close(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := s.tmux(t, "show-options", "-w", "-v", "-t", s.lead, "pane-border-status"); got != "bottom" {
		t.Errorf("the borders are %q", got)
	}
}

// The script gets its pane, and the pane goes with it.
func TestTmuxRunsTheScript(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	out := filepath.Join(t.TempDir(), "out")
	p := open(t, terminal, pane.Spec{Title: "w", Script: script(t,
		"printf %%s \"$TMUX_PANE\" >'%s'; tmux wait-for -S started; tmux wait-for finish", out)})
	s.wait(t, "started")
	if got, _ := os.ReadFile(out); string(got) != p.Pane {
		t.Errorf("the script ran in pane %q, opened was %q", got, p.Pane)
	}
	if !alive(t, terminal, p)[0] {
		t.Error("a pane whose script runs is not alive")
	}
	s.tmux(t, "set-hook", "-g", "pane-exited", "wait-for -S exited")
	s.tmux(t, "wait-for", "-S", "finish")
	s.wait(t, "exited")
	if alive(t, terminal, p)[0] {
		t.Error("a pane whose script has ended is alive")
	}
	if err := terminal.Close(t.Context(), p); err != nil {
		t.Errorf("close what is closed: %v", err)
	}
}

func TestTmuxTail(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	p := open(t, terminal, pane.Spec{Title: "w", Script: script(t,
		"echo one; echo two; echo 'three ü'; tmux wait-for -S written; exec cat")})
	s.wait(t, "written")
	got, err := terminal.Tail(t.Context(), p, 2)
	if err != nil || got != "two\nthree ü" {
		t.Errorf("tail %q, %v", got, err)
	}
	if err := terminal.Close(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := terminal.Tail(t.Context(), p, 2); !errors.Is(err, pane.ErrGone) {
		t.Errorf("tail of a closed pane: %v", err)
	}
}

// Only what we opened is closed: not the person's pane, and not what has the id
// of one of ours on a new server.
func TestTmuxClosesOnlyItsOwn(t *testing.T) {
	s := startServer(t)
	terminal := s.terminal(t)
	ours := open(t, terminal, pane.Spec{Title: "w"})
	stranger := ours
	stranger.Pane = s.lead
	if err := terminal.Close(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	unmarked := ours
	unmarked.Mark = ""
	if err := terminal.Close(t.Context(), unmarked); err == nil {
		t.Error("a place without a mark was closed")
	}
	if got := alive(t, terminal, ours, stranger); !got[0] || got[1] {
		t.Errorf("alive %v", got)
	}
	if panes := s.tmux(t, "list-panes", "-a", "-F", "#{pane_id}"); !strings.Contains(panes, s.lead) {
		t.Fatal("the lead's pane was closed")
	}

	s.tmux(t, "kill-server")
	if got := alive(t, terminal, ours); got[0] {
		t.Error("a pane is alive on a server that is gone")
	}
	if err := terminal.Close(t.Context(), ours); err != nil {
		t.Errorf("close on a server that is gone: %v", err)
	}
	s.restart(t)
	again := s.tmux(t, "split-window", "-d", "-t", s.lead, "-P", "-F", "#{pane_id}", "cat")
	if again != ours.Pane {
		t.Fatalf("the new server gave %s, not %s again", again, ours.Pane)
	}
	if err := terminal.Close(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	if panes := s.tmux(t, "list-panes", "-a", "-F", "#{pane_id}"); !strings.Contains(panes, again) {
		t.Error("a pane of the new server was closed for one of the old")
	}
}

// Another process, with another terminal value, closes what was recorded.
func TestTmuxKnown(t *testing.T) {
	s := startServer(t)
	p := open(t, s.terminal(t), pane.Spec{Title: "w"})
	known, err := pane.NewDetector(pane.Environment{Vars: os.Environ()}).Known(p.Terminal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known.Open(t.Context(), pane.Spec{Title: "x", Script: "/dev/null"}); err == nil {
		t.Error("a pane was opened by a terminal that does not know where")
	}
	if !alive(t, known, p)[0] {
		t.Error("not alive")
	}
	if err := known.Close(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if alive(t, known, p)[0] {
		t.Error("alive after it was closed")
	}
}
