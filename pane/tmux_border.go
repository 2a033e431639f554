package pane

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/internal/lazy"
)

// Options of ours for what is drawn: of panes, their title and style; of windows,
// the options that we have set there, and the style of the borders of all other
// panes.
const (
	titleOption  = "@cadre_title"
	styleOption  = "@cadre_style"
	setOption    = "@cadre_set"
	othersOption = "@cadre_others"
)

// decorate gives a pane its title and colour, and its window borders that show
// them. A pane works without, so nothing here returns an error.
func (t *tmux) decorate(ctx context.Context, p Place, s Spec) {
	title := cleanTitle(s.Title)
	style := "default"
	if color, ok := styles[s.Color]; ok {
		style = "fg=" + color
	}
	set := func(option, value string) []string {
		return []string{"set-option", "-p", "-t", p.Pane, "--", option, lastSafe(value)}
	}
	for _, args := range [][]string{
		set(titleOption, drawn(title)),
		set(styleOption, style),
		set("pane-border-format", "#["+style+"] #{"+titleOption+"} #[default]"),
		{"select-pane", "-t", p.Pane, "-T", lastSafe(literal(title))}, // selects nothing with a title
	} {
		_, _ = t.askServer(ctx, p.Socket, args...)
	}
	t.border(ctx, p)
}

// border makes a pane's window show titles and styles, except where it has a
// setting of its own. The style is evaluated for each pane, so that the borders of
// others stay as they were.
func (t *tmux) border(ctx context.Context, p Place) {
	if set, err := t.windowOption(ctx, p.Socket, p.Pane, "-v", setOption); err != nil || set != "" {
		return
	}
	var ours []string
	for _, option := range []string{"pane-border-status", "pane-border-style", "pane-active-border-style"} {
		if own, err := t.windowOption(ctx, p.Socket, p.Pane, "-v", option); err != nil || own != "" {
			continue
		}
		value := "top"
		if others, ok := strings.CutSuffix(option, "-style"); ok {
			was, err := t.windowOption(ctx, p.Socket, p.Pane, "-Av", option)
			if err != nil {
				continue
			}
			others = othersOption + strings.ReplaceAll(strings.TrimPrefix(others, "pane"), "-", "_")
			_, _ = t.askServer(ctx, p.Socket, "set-option", "-w", "-t", p.Pane, "--", others, lastSafe(was))
			ours = append(ours, others)
			value = "#{?" + styleOption + ",#{" + styleOption + "},#{E:" + others + "}}"
		}
		_, _ = t.askServer(ctx, p.Socket, "set-option", "-w", "-t", p.Pane, option, value)
		ours = append(ours, option)
	}
	_, _ = t.askServer(ctx, p.Socket, "set-option", "-w", "-t", p.Pane, setOption, strings.Join(append(ours, setOption), " "))
}

// windowOption is the value of an option of the window that target is in. flags
// says whether a value from outside the window counts.
func (t *tmux) windowOption(ctx context.Context, socket, target, flags, option string) (string, error) {
	return t.askServer(ctx, socket, "show-options", "-q", "-w", flags, "-t", target, option)
}

// tidy evens out the rest of a column after one of its panes was closed, and removes
// the borders with the last of ours. Nothing here returns an error: the window may be
// gone too.
func (t *tmux) tidy(ctx context.Context, socket, window string) {
	out, err := t.askServer(ctx, socket, "list-panes", "-t", window, "-F", "#{"+columnOption+"} #{pane_id}")
	if err != nil {
		return
	}
	columns := make(map[string][]string)
	for line := range strings.SplitSeq(out, "\n") {
		if lead, pane, _ := strings.Cut(line, " "); lead != "" {
			columns[lead] = append(columns[lead], pane)
		}
	}
	for _, column := range columns {
		t.even(ctx, socket, column)
	}
	if len(columns) > 0 {
		return
	}
	set, err := t.windowOption(ctx, socket, window, "-v", setOption)
	if err != nil {
		return
	}
	for option := range strings.FieldsSeq(set) {
		_, _ = t.askServer(ctx, socket, "set-option", "-w", "-u", "-t", window, option)
	}
}

// hashes are the number signs of a text, with the bracket behind them.
var hashes = lazy.Regexp(`#+\[?`)

// literal escapes text for an argument that tmux expands as a format. Number signs
// before a bracket are left alone: they matter only where a format is drawn.
func literal(text string) string {
	return hashes().ReplaceAllStringFunc(text, func(run string) string {
		if strings.HasSuffix(run, "[") {
			return run
		}
		return run + run
	})
}

// drawn escapes text for a format that is drawn, in which "#[" begins a style.
func drawn(text string) string {
	return hashes().ReplaceAllStringFunc(text, func(run string) string {
		if signs, ok := strings.CutSuffix(run, "["); ok {
			return signs + signs + "["
		}
		return run
	})
}
