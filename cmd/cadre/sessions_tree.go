package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/transcript"
)

func newSessionsTree() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tree ID", Short: "Show a session with those of its sub-agents and teammates", Args: exactly(1, "the id of a session, or the beginning of it"),
		ValidArgsFunction: complete(sessionCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return showTree(cmd.Context(), places, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// branch is one session of a tree.
type branch struct {
	Session  string    `json:"sessionId"`
	AgentID  string    `json:"agentId,omitempty"` // of one that lies below the main session
	Kind     string    `json:"kind"`              // main, teammate or sub-agent
	Team     string    `json:"teamName,omitempty"`
	Agent    string    `json:"agentName,omitempty"`
	Began    time.Time `json:"startedAt,omitzero"`
	Entries  int       `json:"entries"`
	FirstAsk string    `json:"firstPrompt"`
}

func showTree(ctx context.Context, places []place, id string, asJSON bool) error {
	p, info, err := findSession(ctx, places, id)
	if err != nil {
		return err
	}
	branches, err := p.tree(ctx, info)
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(branches)
	}
	rows := [][]string{{"SESSION", "WHO", "STARTED", "ENTRIES", "FIRST PROMPT"}}
	for _, b := range branches {
		name, who := b.Session, b.Kind
		if b.AgentID != "" {
			name = b.AgentID
		}
		if b.Agent != "" {
			who = b.Agent + " (" + b.Kind + " of " + b.Team + ")"
		}
		rows = append(rows, []string{name, who, when(b.Began), fmt.Sprint(b.Entries), shorten(b.FirstAsk, 60)})
	}
	return table(rows)
}

// tree lists a session, the agents that ran inside it, and the sessions of teammates
// in the teams that it led, each in the order in which they began.
func (p place) tree(ctx context.Context, main transcript.Info) ([]branch, error) {
	trunk, entries, err := p.branch(ctx, main.Ref, "main")
	if err != nil {
		return nil, err
	}
	inside, err := p.subAgents(main.Ref)
	if err != nil {
		return nil, err
	}
	var below []branch
	for _, ref := range inside {
		b, _, err := p.branch(ctx, ref, "sub-agent")
		if err != nil && !errors.Is(err, transcript.ErrNotFound) {
			return nil, err
		}
		below = append(below, b)
	}
	others, err := p.Transcripts().List(ctx, main.Ref.Project)
	if err != nil {
		return nil, err
	}
	for _, info := range others {
		led := func(e transcript.Entry) bool { return e.AgentName == "" && e.TeamName == info.Team }
		if info.Agent == "" || !slices.ContainsFunc(entries, led) {
			continue
		}
		b, _, err := p.branch(ctx, info.Ref, "teammate")
		if err != nil {
			return nil, err
		}
		below = append(below, b)
	}
	slices.SortStableFunc(below, func(a, b branch) int { return a.Began.Compare(b.Began) })
	return append([]branch{trunk}, below...), nil
}

func (p place) branch(ctx context.Context, ref transcript.Ref, kind string) (branch, []transcript.Entry, error) {
	entries, err := p.Transcripts().Read(ctx, ref)
	b := branch{Session: ref.Session, AgentID: ref.Agent, Kind: kind, Entries: len(entries)}
	for _, e := range entries {
		b.Began = cmp.Or(b.Began, e.At)
		if e.AgentName != "" && e.TeamName != "" && kind != "main" {
			b.Kind, b.Team, b.Agent = "teammate", e.TeamName, e.AgentName
		}
		if e.Kind == transcript.KindUser && b.FirstAsk == "" {
			if parts := humanText(transcript.JoinText(e.Message.Content), b.Agent); len(parts) > 0 {
				b.FirstAsk = strings.TrimPrefix(parts[0], "> ")
			}
		}
	}
	return b, entries, err
}
