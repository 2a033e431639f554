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

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

func newSessionsCommand() *cobra.Command {
	return group("sessions", "Show conversations on disk", newSessionsLs(), newSessionsShow(), newSessionsTree(), newSessionsRm())
}

// sessionView is a session as the verbs show it.
type sessionView struct {
	ID       string      `json:"sessionId"`
	Project  string      `json:"project"`
	Updated  time.Time   `json:"updatedAt"`
	Size     int64       `json:"bytes"`
	FirstAsk string      `json:"firstPrompt"`
	Team     string      `json:"teamName,omitempty"`  // of a teammate's session
	Agent    string      `json:"agentName,omitempty"` // the same
	HeldBy   int         `json:"heldByPid,omitempty"` // the process that has it open
	Root     layout.Root `json:"root"`
}

func (p place) viewSession(ctx context.Context, info transcript.Info) sessionView {
	v := sessionView{
		ID: info.Ref.Session, Project: info.Ref.Project, Updated: info.Updated, Size: info.Size,
		FirstAsk: info.FirstAsk, Team: info.Team, Agent: info.Agent, Root: p.root,
	}
	if p.foreign {
		return v
	}
	if h, err := p.holder(ctx, info.Ref); err == nil && h != nil {
		v.HeldBy = h.PID
	}
	return v
}

func newSessionsLs() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the sessions of this folder, newest first", Args: noArgs,
		Long: "Lists the conversations of this folder, newest first. The sessions of teammates are left out:\ncadre sessions tree shows them below their lead's, and --all lists everything.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPlaces(func(places []place) error { return listSessions(cmd.Context(), places, all, asJSON) })
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "of every folder, with those of teammates")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func listSessions(ctx context.Context, places []place, all, asJSON bool) error {
	project := ""
	if !all {
		cwd, err := workingFolder()
		if err != nil {
			return err
		}
		project = cwd
	}
	views := []sessionView{}
	for _, p := range places {
		infos, err := p.Transcripts().List(ctx, project)
		if err != nil {
			return err
		}
		for _, info := range infos {
			if all || info.Agent == "" {
				views = append(views, p.viewSession(ctx, info))
			}
		}
	}
	slices.SortStableFunc(views, func(a, b sessionView) int { return b.Updated.Compare(a.Updated) })
	switch {
	case asJSON:
		return writeJSON(views)
	case len(views) == 0 && !all:
		return writeOut([]byte("There are no sessions of this folder. --all lists those of every folder.\n"))
	case len(views) == 0:
		return writeOut([]byte("There are no sessions.\n"))
	}
	return printSessions(views, all)
}

func printSessions(views []sessionView, all bool) error {
	rows := [][]string{{"SESSION", "UPDATED", "SIZE", "OPEN IN", "FIRST PROMPT"}}
	for _, v := range views {
		held := ""
		if v.HeldBy != 0 {
			held = fmt.Sprintf("process %d", v.HeldBy)
		}
		rows = append(rows, []string{v.ID, when(v.Updated), bytesText(v.Size), held, v.title()})
	}
	if all {
		rows[0] = append(rows[0], "FOLDER")
		for i, v := range views {
			rows[i+1] = append(rows[i+1], v.Project)
		}
	}
	return table(rows)
}

// title says in a few words what a session is about.
func (v sessionView) title() string {
	if v.Agent != "" {
		return shorten("(teammate "+v.Agent+" of "+v.Team+")", 60)
	}
	return shorten(v.FirstAsk, 60)
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// findSession finds a session in any root.
func findSession(ctx context.Context, places []place, id string) (place, transcript.Info, error) {
	for _, p := range places {
		info, err := p.findSession(ctx, id)
		if err == nil || !errors.Is(err, transcript.ErrNotFound) {
			return p, info, err
		}
	}
	e := usagef("session %q: %w", id, transcript.ErrNotFound)
	e.hint = sessionsHint
	if p, ref, err := findAgent(ctx, places, id); err == nil {
		e = usagef("%s is not a session of its own, but an agent's inside session %s", ref.Agent, ref.Session)
		e.hint = "cadre sessions show " + ref.Agent + " shows it."
		return p, transcript.Info{}, e
	}
	return place{}, transcript.Info{}, e
}

func newSessionsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a conversation", Args: exactly(1, "the id of a session or of an agent in one, or the beginning of it"),
		Long:              "Shows a conversation: that of a session, or of a sub-agent or teammate that ran inside one. cadre sessions tree\nlists the ids of those.",
		ValidArgsFunction: complete(sessionCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return showSession(cmd.Context(), places, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON: the entries of the transcript")
	return cmd
}

func showSession(ctx context.Context, places []place, id string, asJSON bool) error {
	p, ref, err := findConversation(ctx, places, id)
	if err != nil {
		return err
	}
	entries, err := p.Transcripts().Read(ctx, ref)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(append([]transcript.Entry{}, entries...))
	}
	var b strings.Builder
	b.WriteString(heading(ref, entries) + "\n")
	for _, e := range entries {
		writeEntry(&b, e)
	}
	return writeOut([]byte(b.String()))
}

// heading says whose conversation it is.
func heading(ref transcript.Ref, entries []transcript.Entry) string {
	var updated time.Time
	who := ""
	for _, e := range entries {
		updated = e.At
		if e.AgentName != "" && e.TeamName != "" {
			who = fmt.Sprintf("teammate %s in team %s", cleanCell(e.AgentName), cleanCell(e.TeamName))
		}
	}
	name := "session " + ref.Session
	switch {
	case ref.Agent != "":
		name = fmt.Sprintf("%s %s inside session %s", cmp.Or(who, "sub-agent"), ref.Agent, ref.Session)
	case who != "":
		name += " of " + who
	}
	return fmt.Sprintf("%s in %s, %s", name, ref.Project, when(updated))
}

// findConversation finds a main session, or that of an agent inside one, by its id or the
// beginning of it. SESSION/AGENT names an agent of several that have the same id.
func findConversation(ctx context.Context, places []place, id string) (place, transcript.Ref, error) {
	type candidate struct {
		place
		ref transcript.Ref
	}
	var found []candidate
	for _, p := range places {
		all, err := p.conversations(ctx)
		if err != nil {
			return p, transcript.Ref{}, err
		}
		for _, ref := range all {
			if id == "" {
				break // an unset variable names nothing
			}
			switch name := agentOrSession(ref); {
			case name == id && ref.Agent == "", ref.String() == id:
				return p, ref, nil
			case strings.HasPrefix(name, id):
				found = append(found, candidate{p, ref})
			}
		}
	}
	if exact := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return agentOrSession(c.ref) != id }); len(exact) > 0 {
		found = exact
	}
	switch len(found) {
	case 0:
		_, _, err := findSession(ctx, places, id)
		return place{}, transcript.Ref{}, err
	case 1:
		return found[0].place, found[0].ref, nil
	}
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = c.ref.String()
	}
	return place{}, transcript.Ref{}, usagef("%q is the beginning of %d sessions: %s", id, len(found), strings.Join(names, ", "))
}

// findAgent finds the conversation of an agent inside a session.
func findAgent(ctx context.Context, places []place, id string) (place, transcript.Ref, error) {
	for _, p := range places {
		all, err := p.conversations(ctx)
		if err != nil {
			return p, transcript.Ref{}, err
		}
		for _, ref := range all {
			if id != "" && strings.HasPrefix(ref.Agent, id) {
				return p, ref, nil
			}
		}
	}
	return place{}, transcript.Ref{}, transcript.ErrNotFound
}

// agentOrSession is the id that people name a conversation by.
func agentOrSession(ref transcript.Ref) string { return cmp.Or(ref.Agent, ref.Session) }

// conversations lists the main sessions and those of the agents inside them.
func (p place) conversations(ctx context.Context) ([]transcript.Ref, error) {
	infos, err := p.Transcripts().List(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []transcript.Ref
	for _, info := range infos {
		inside, err := p.subAgents(info.Ref)
		if err != nil {
			return nil, err
		}
		all = append(append(all, info.Ref), inside...)
	}
	return all, nil
}

// writeEntry writes a line of a transcript for people.
func writeEntry(b *strings.Builder, e transcript.Entry) {
	for _, block := range e.Message.Content {
		switch block.Type {
		case transcript.Text:
			if e.Kind == transcript.KindAssistant {
				b.WriteString("\n" + strings.TrimRight(tui.Clean(block.Text), "\n") + "\n")
				continue
			}
			for _, part := range humanText(block.Text, cmp.Or(e.AgentName, mailbox.LeadName)) {
				b.WriteString("\n" + part + "\n")
			}
		case transcript.ToolUse:
			b.WriteString("● " + shorten(tui.Call(block.Name, block.Input), 160) + "\n")
		case transcript.ToolResult:
			mark := "  ⎿ "
			if block.IsError {
				mark = "  ⎿ error: "
			}
			b.WriteString(mark + shorten(transcript.WithoutReminders(block.ResultText()), 160) + "\n")
		}
	}
}
