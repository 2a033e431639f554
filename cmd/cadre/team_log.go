package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

func newTeamLog() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "log NAME", Short: "Show who did what in a team, oldest first", Args: exactly(1, "the name of a team"),
		Long:              "Shows what the transcripts and inboxes of a team contain: every call, what agents said, and their mail.",
		ValidArgsFunction: complete(anyTeamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return logTeam(cmd.Context(), places, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// deed is something that an agent did.
type deed struct {
	At    time.Time `json:"timestamp"`
	Agent string    `json:"agent"`
	Kind  string    `json:"kind"` // call, text or mail
	Tool  string    `json:"tool,omitempty"`
	Text  string    `json:"text"`
	Error string    `json:"error,omitempty"` // of a call that failed: what it said
}

func logTeam(ctx context.Context, places []place, name string, asJSON bool) error {
	p, config, err := findAnyTeam(ctx, places, name)
	if err != nil {
		return err
	}
	deeds, err := p.deedsOf(ctx, config)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(deeds)
	}
	var b strings.Builder
	day := ""
	for _, d := range deeds {
		mark := map[string]string{"call": "● ", "mail": "✉ "}[d.Kind]
		at := d.At.Local()
		if date := at.Format(time.DateOnly); date != day {
			day = date
			b.WriteString("── " + day + "\n")
		}
		line := at.Format(time.TimeOnly) + " "
		if d.Kind != "mail" {
			line += "[" + cleanCell(d.Agent) + "] "
		}
		b.WriteString(line + mark + d.Text + "\n")
		if d.Error != "" {
			b.WriteString("           ✗ " + d.Error + "\n")
		}
	}
	return writeOut([]byte(b.String()))
}

// deedsOf gathers what the members of a team did, oldest first.
func (p place) deedsOf(ctx context.Context, c roster.Roster) ([]deed, error) {
	refs, err := p.transcriptsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	g := gathered{deeds: []deed{}, calls: make(map[string]map[string]int)}
	for _, ref := range refs {
		entries, err := p.ofSessions().Transcripts().Read(ctx, ref)
		if errors.Is(err, transcript.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		g.add(entries, c.Name)
	}
	deeds := g.deeds
	for _, m := range p.mailOf(ctx, c) {
		at, err := time.Parse(time.RFC3339, m.At)
		if err != nil {
			continue // written by hand: its time is unknown
		}
		deeds = append(deeds, deed{At: at, Agent: m.From, Kind: "mail", Text: m.line(c.Name)})
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return a.At.Compare(b.At) })
	return deeds, nil
}

// gathered is what the transcripts of a team say, each line once: the conversation of a
// teammate that was resumed in another place, or of a lead that was forked, is a copy of
// the one before.
type gathered struct {
	deeds []deed
	calls map[string]map[string]int // by line, and its calls: where they stand in deeds
}

// add adds what one transcript says of a team.
func (g *gathered) add(entries []transcript.Entry, name string) {
	calls := make(map[string]int)
	for _, e := range entries {
		if e.TeamName != name {
			continue
		}
		if e.Kind == transcript.KindAssistant {
			made, known := g.calls[e.UUID]
			if !known || e.UUID == "" {
				made = g.addLine(e)
				g.calls[e.UUID] = made
			}
			maps.Copy(calls, made)
			continue
		}
		for _, block := range e.Message.Content {
			if i, ok := calls[block.ToolUseID]; ok && block.Type == transcript.ToolResult && block.IsError {
				g.deeds[i].Error = shorten(resultText(block), 160)
			}
		}
	}
}

// resultText is the text of a result in either form, without the wrapper around the errors
// of wrong calls, which is for the model.
func resultText(block transcript.Block) string {
	text := block.Text
	if text == "" {
		text = transcript.JoinText(block.Content)
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "<tool_use_error>"), "</tool_use_error>")
}

// addLine adds what one line of a transcript says, and returns the places of its calls in
// deeds. Mail is left out: it is read from the inboxes.
func (g *gathered) addLine(e transcript.Entry) (calls map[string]int) {
	agent := e.AgentName
	if agent == "" {
		agent = mailbox.LeadName
	}
	calls = make(map[string]int)
	for _, block := range e.Message.Content {
		switch {
		case block.Type == transcript.ToolUse && block.Name != "SendMessage":
			text := shorten(tui.Call(block.Name, block.Input), 160)
			calls[block.ID] = len(g.deeds)
			g.deeds = append(g.deeds, deed{At: e.At, Agent: agent, Kind: "call", Tool: block.Name, Text: text})
		case block.Type == transcript.Text && strings.TrimSpace(block.Text) != "":
			g.deeds = append(g.deeds, deed{At: e.At, Agent: agent, Kind: "text", Text: shorten(block.Text, 160)})
		}
	}
	return calls
}

// transcriptsOf lists the transcripts that may hold lines of a team: its lead's,
// those of agents that ran inside the lead's process, and of the sessions of the
// members' folders that are younger than the team.
func (p place) transcriptsOf(ctx context.Context, c roster.Roster) ([]transcript.Ref, error) {
	var projects []string
	for _, m := range c.Members {
		if m.Cwd != "" && !slices.Contains(projects, m.Cwd) {
			projects = append(projects, m.Cwd)
		}
	}
	p = p.ofSessions()
	var refs []transcript.Ref
	for _, project := range projects {
		infos, err := p.Transcripts().List(ctx, project)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if info.Updated.UnixMilli() < c.CreatedAt {
				continue
			}
			refs = append(refs, info.Ref)
			if info.Ref.Session == c.LeadSessionID {
				inside, err := p.subAgents(info.Ref)
				if err != nil {
					return nil, err
				}
				refs = append(refs, inside...)
			}
		}
	}
	return refs, nil
}

// subAgents lists the transcripts below a main session.
func (p place) subAgents(main transcript.Ref) ([]transcript.Ref, error) {
	files, err := os.ReadDir(filepath.Dir(p.root.Transcript(main.Project, main.Session, "x")))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var refs []transcript.Ref
	for _, f := range files {
		id, ok := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".jsonl"), "agent-")
		if ok && strings.HasSuffix(f.Name(), ".jsonl") {
			refs = append(refs, transcript.Ref{Project: main.Project, Session: main.Session, Agent: id})
		}
	}
	return refs, err
}
