package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/tui"
)

// Print writes the report for people: what changed, the checks, who did what,
// the lead's answer and the outcome, and where the files are.
func (r Report) Print(w io.Writer, terminal Terminal) error {
	p := printer{terminal: terminal}
	p.diff(r.Diff)
	p.checks(r)
	p.agents(r)
	p.answer(r)
	p.outcome(r)
	_, err := w.Write(p.out.Bytes())
	return err
}

// Introduce says what is about to happen.
func Introduce(w io.Writer, terminal Terminal, project Project, model string, before Checks) error {
	p := printer{terminal: terminal}
	p.line(span{bold, "cadre demo"}, span{plain, ": a lead and three teammates repair tally, a small tool in shell."})
	p.line(span{plain, fmt.Sprintf("%d of its %d checks fail. ", len(before.Failed()), len(before.Results))},
		span{plain, "What you see below is done for real: files, mail, tasks, commands."})
	if isScript(model) {
		p.line(span{plain, "Only the model is a script, so this needs no key, and nothing leaves this machine."})
	} else {
		p.line(span{plain, "The model is "}, span{bold, flat(model)}, span{plain, "."})
	}
	p.line(span{dim, "In " + flat(project.Dir)})
	p.line()
	_, err := w.Write(p.out.Bytes())
	return err
}

// isScript reports whether the name of a model stands for a script.
func isScript(model string) bool { return strings.HasPrefix(model, "scripted") }

// WriteJSON writes the report as one JSON document.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

type printer struct {
	terminal Terminal
	out      bytes.Buffer
}

func (p *printer) line(spans ...span) {
	p.out.WriteString(line(spans).render(p.terminal.Color) + "\n")
}

func (p *printer) title(text, note string) {
	p.line()
	p.line(span{bold, text}, span{dim, note})
	p.line()
}

func (p *printer) diff(d Diff) {
	files := "files"
	if len(d.Files) == 1 {
		files = "file"
	}
	p.title("What changed", fmt.Sprintf("  %d %s", len(d.Files), files))
	width := 0
	for _, f := range d.Files {
		width = max(width, cells.Width(flat(f.Path)))
	}
	for _, f := range d.Files {
		name := line{{plain, "  " + flat(f.Path)}}.pad(width + 4)
		p.line(append(name, span{green, fmt.Sprintf("+%d", f.Added)}, span{plain, " "}, span{red, fmt.Sprintf("−%d", f.Removed)})...)
	}
	if d.Text == "" {
		return
	}
	p.line()
	for text := range strings.SplitSeq(strings.TrimSuffix(tui.Clean(d.Text), "\n"), "\n") {
		p.line(span{diffStyle(text), text})
	}
}

// diffStyle is the style of one line of a diff.
func diffStyle(text string) string {
	for _, s := range []struct{ prefix, style string }{
		{"diff --git", bold}, {"+++", bold}, {"---", bold}, {"index ", dim}, {"@@", cyan}, {"+", green}, {"-", red},
	} {
		if strings.HasPrefix(text, s.prefix) {
			return s.style
		}
	}
	return plain
}

func (p *printer) checks(r Report) {
	p.title("Checks", "  sh check.sh, in a process of its own")
	for text := range strings.Lines(tui.Clean(r.Checks.Output)) {
		text = strings.TrimRight(text, "\n")
		style := plain
		switch {
		case strings.HasPrefix(text, "ok "):
			style = green
		case strings.HasPrefix(text, "FAIL "):
			style = red
		}
		if text != "" {
			p.line(span{style, "  " + text})
		}
	}
	for _, path := range r.Checks.Changed {
		p.line(span{red, "  changed, which the team must not do: " + flat(path)})
	}
}

func (p *printer) agents(r Report) {
	p.title("Who did what", fmt.Sprintf("  %d messages among them", r.Messages.Count))
	names, owned := len("agent"), len("tasks")
	for _, a := range r.Agents {
		names = max(names, cells.Width(a.Name))
		owned = max(owned, cells.Width(taskList(a.Tasks)))
	}
	row := func(style, name, tasks string, figures ...string) {
		l := line{{style, "  " + name}}.pad(names + 4)
		l = append(l, span{dim, tasks}).pad(names + owned + 6)
		for _, f := range figures {
			l = append(l, span{plain, fmt.Sprintf("%8s", f)})
		}
		p.line(l...)
	}
	head := []string{"rounds", "calls", "tokens", "time"}
	if !p.terminal.isNarrow() {
		head = []string{"rounds", "calls", "read", "cached", "written", "time"}
	}
	row(dim, "agent", "tasks", head...)
	for _, a := range r.Agents {
		figures := []string{fmt.Sprint(a.Rounds), fmt.Sprint(a.ToolCalls)}
		if p.terminal.isNarrow() {
			figures = append(figures, thousands(a.Usage.Total()))
		} else {
			u := a.Usage
			figures = append(figures, thousands(u.InputTokens+u.CacheCreationInputTokens), thousands(u.CacheReadInputTokens), thousands(u.OutputTokens))
		}
		row(agentColors[a.Color], a.Name, taskList(a.Tasks), append(figures, fmt.Sprintf("%.1f s", a.Seconds))...)
	}
	if !p.terminal.isNarrow() {
		p.line()
		note := "  read, cached and written are tokens"
		if isScript(r.Model) {
			note += ", estimated at four bytes each: the model is a script"
		}
		p.line(span{dim, note})
	}
}

func taskList(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return flat("#" + strings.Join(ids, " #"))
}

// thousands writes a count of tokens.
func thousands(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

func (p *printer) answer(r Report) {
	if r.Answer == "" {
		return
	}
	p.title("The lead says", "")
	columns := 100
	if c := p.terminal.columns(); c > 0 {
		columns = min(c, columns)
	}
	for paragraph := range strings.Lines(tui.Clean(r.Answer)) {
		for _, text := range wrap(flat(paragraph), max(columns-4, 20)) {
			p.line(span{plain, "  " + text})
		}
	}
}

func (p *printer) outcome(r Report) {
	p.line()
	before := fmt.Sprintf("%d of %d checks failed before", len(r.Before.Failed()), len(r.Before.Results))
	if r.Passed() {
		p.line(span{green + ";" + bold, "✓ The checks pass."},
			span{plain, fmt.Sprintf(" %s, all %d pass now. %.1f s.", before, len(r.Checks.Results), r.Seconds)})
	} else {
		p.line(span{red + ";" + bold, "✗ The demo failed: "}, span{plain, flat(r.Reason) + fmt.Sprintf(". %s.", before)})
	}
	if proofs := r.proofText(); proofs != "" {
		p.line(span{plain, "  " + proofs + "."})
	}
	if r.Kept {
		p.line(span{plain, "  The project: "}, span{bold, flat(r.Folder)}, span{dim, "  (git diff shows the changes)"})
		if r.State != "" {
			p.line(span{plain, "  Transcripts, mail, tasks: "}, span{bold, flat(r.State)})
			p.line(span{dim, "  To read them: CADRE_HOME=" + flat(r.State) + " cadre team log " + flat(r.Team)})
		}
	} else {
		p.line(span{dim, "  The project was in " + flat(r.Folder) + " and has been removed; --keep keeps it."})
	}
}
