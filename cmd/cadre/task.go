package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

func newTaskCommand() *cobra.Command {
	return group("task", "Show task lists on disk", newTaskLs(), newTaskShow())
}

// taskView is a task as the verbs show it.
type taskView struct {
	List        string          `json:"list"`
	ID          string          `json:"id"`
	Subject     string          `json:"subject"`
	Description string          `json:"description"`
	Status      task.Status     `json:"status"`
	Owner       string          `json:"owner,omitempty"`
	Blocks      []string        `json:"blocks"`
	BlockedBy   []string        `json:"blockedBy"` // whether still open or not
	Waits       []string        `json:"waitsFor"`  // what of BlockedBy is still open
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Root        layout.Root     `json:"root"`
}

// viewTasks leaves out what other programs keep for themselves.
func viewTasks(list string, root layout.Root, tasks []task.Task) []taskView {
	views := []taskView{}
	for _, t := range tasks {
		if t.Internal() {
			continue
		}
		v := taskView{
			List: list, ID: t.ID, Subject: t.Subject, Description: t.Description, Status: t.Status, Owner: t.Owner,
			Blocks: append([]string{}, t.Blocks...), BlockedBy: append([]string{}, t.BlockedBy...),
			Waits: openBlockers(t, tasks), Root: root,
		}
		if t.Metadata.Len() > 0 {
			v.Metadata, _ = t.Metadata.MarshalJSON() // it was JSON when it was read
		}
		views = append(views, v)
	}
	return views
}

func openBlockers(t task.Task, all []task.Task) []string {
	waits := []string{}
	for _, other := range all {
		if other.Status != task.Completed && slices.Contains(t.BlockedBy, other.ID) {
			waits = append(waits, other.ID)
		}
	}
	return waits
}

func newTaskLs() *cobra.Command {
	var asJSON, finished bool
	cmd := &cobra.Command{
		Use: "ls [LIST]", Aliases: []string{"list"}, Short: "List the tasks of a team or session, or of all", Args: atMost(1, "one list (a team or session) or none"),
		ValidArgsFunction: complete(listCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return listTasks(cmd.Context(), places, args, finished, asJSON) })
		},
	}
	cmd.Flags().BoolVarP(&finished, "all", "a", false, "also of teams that have finished, while their lead's session is kept")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// tasksOf reads one list: named by a team's name or a session's id.
func (p place) tasksOf(ctx context.Context, list string) ([]taskView, error) {
	tasks, err := p.Tasks().List(ctx, list)
	return viewTasks(list, p.ofSessions().root, tasks), err
}

// lists are the names of all lists: also those of teams that have no task yet.
func (p place) lists(ctx context.Context) ([]string, error) {
	lists, err := p.Tasks().Lists(ctx)
	if err != nil {
		return nil, err
	}
	teams, err := folders(p.root.TeamsDir())
	lists = append(lists, teams...)
	slices.Sort(lists)
	return slices.Compact(lists), err
}

func listTasks(ctx context.Context, places []place, args []string, finished, asJSON bool) error {
	all := []taskView{}
	var errs []error
	var known []string
	for _, p := range places {
		lists, err := p.lists(ctx)
		if err != nil {
			return err
		}
		known = append(known, lists...)
		switch {
		case len(args) == 0:
		case slices.Contains(lists, layout.DirName(args[0])):
			lists = args
		default:
			lists = nil
		}
		for _, list := range lists {
			views, err := p.tasksOf(ctx, list)
			errs = append(errs, err)
			all = append(all, views...)
		}
	}
	missing := len(args) > 0 && !slices.Contains(known, layout.DirName(args[0]))
	switch {
	case missing:
		p, c, err := findFinished(ctx, places, args[0])
		if err != nil {
			return noList(args[0], append(known, finishedNames(ctx, places)...))
		}
		all, err = p.tasksOf(ctx, c.Name)
		errs = append(errs, err)
	case len(args) == 0 && finished:
		errs = append(errs, withFinished(ctx, places, func(p place, c roster.Roster) error {
			views, err := p.tasksOf(ctx, c.Name)
			all = append(all, views...)
			return err
		}))
	}
	err := errors.Join(errs...)
	switch {
	case asJSON:
		return errors.Join(writeJSON(all), err)
	case len(all) == 0 && err == nil && len(args) == 0 && !finished:
		return writeOut([]byte("There are no tasks. --all also lists those of teams that have finished.\n"))
	case len(all) == 0 && err == nil:
		return writeOut([]byte("There are no tasks.\n"))
	case len(all) == 0:
		return err
	}
	return errors.Join(printTasks(all), err)
}

func printTasks(views []taskView) error {
	rows := [][]string{{"LIST", "ID", "STATE", "OWNER", "WAITS FOR", "SUBJECT"}}
	for _, v := range views {
		rows = append(rows, []string{
			v.List, "#" + v.ID, strings.ReplaceAll(string(v.Status), "_", " "), v.Owner, joinIDs(v.Waits), shorten(v.Subject, 70),
		})
	}
	return table(rows)
}

func joinIDs(ids []string) string {
	marked := make([]string, len(ids))
	for i, id := range ids {
		marked[i] = "#" + id
	}
	return strings.Join(marked, " ")
}

func newTaskShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show LIST ID", Short: "Show one task", Args: exactly(2, "a list (a team or session) and the id of a task"),
		ValidArgsFunction: complete(listCandidates, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error {
				return showTask(cmd.Context(), places, args[0], strings.TrimPrefix(args[1], "#"), asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func showTask(ctx context.Context, places []place, list, id string, asJSON bool) error {
	var known []string
	if list == "" {
		return noList(list, nil)
	}
	for _, p := range places {
		views, err := p.tasksOf(ctx, list)
		if err != nil {
			return err
		}
		for _, v := range views {
			if v.ID == id {
				return printTask(v, asJSON)
			}
		}
		lists, err := p.lists(ctx)
		if err != nil {
			return err
		}
		known = append(known, lists...)
	}
	if !slices.Contains(known, layout.DirName(list)) {
		p, c, err := findFinished(ctx, places, list)
		if err != nil {
			return noList(list, append(known, finishedNames(ctx, places)...))
		}
		views, err := p.tasksOf(ctx, c.Name)
		if i := slices.IndexFunc(views, func(v taskView) bool { return v.ID == id }); i >= 0 {
			return printTask(views[i], asJSON)
		}
		if err != nil {
			return err
		}
	}
	e := usagef("there is no task #%s in the list %q", id, list)
	e.hint = fmt.Sprintf("cadre task ls %s lists its tasks.", list)
	return e
}

func noList(name string, known []string) error {
	e := usagef("there is no task list %q", name)
	e.hint = cmp.Or(didYouMean(near.Names(name, known)), "cadre task ls --all lists the tasks of all lists.")
	return e
}

// metadataRows are the values of a task's metadata, a row each.
func metadataRows(metadata json.RawMessage) [][]string {
	var doc jsonx.Object
	if len(metadata) == 0 || json.Unmarshal(metadata, &doc) != nil {
		return nil
	}
	var rows [][]string
	for _, name := range doc.Keys() {
		rows = append(rows, []string{"metadata", name + ": " + plainValue(doc.Raw(name))})
	}
	return rows
}

// plainValue writes a text without its quotes, and an object as its fields.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var doc jsonx.Object
	if json.Unmarshal(value, &doc) != nil {
		return string(value)
	}
	fields := make([]string, doc.Len())
	for i, name := range doc.Keys() {
		fields[i] = name + " " + plainValue(doc.Raw(name))
	}
	return strings.Join(fields, ", ")
}

func printTask(v taskView, asJSON bool) error {
	if asJSON {
		return writeJSON(v)
	}
	err := fields(append([][]string{
		{"task", "#" + v.ID + " of " + v.List}, {"subject", v.Subject}, {"state", string(v.Status)}, {"owner", v.Owner},
		{"blocked by", joinIDs(v.BlockedBy)}, {"still waits for", joinIDs(v.Waits)}, {"blocks", joinIDs(v.Blocks)},
		{"root", string(v.Root)},
	}, metadataRows(v.Metadata)...))
	if err != nil {
		return err
	}
	return writeOut([]byte("\n" + strings.TrimRight(tui.Clean(v.Description), "\n") + "\n"))
}
