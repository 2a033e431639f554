package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

// completionPatience is how long a person who has pressed Tab waits for candidates.
const completionPatience = time.Second

// candidates finds what may stand in the place of the word that a person is typing,
// given the arguments before it. It is read without any lock; what cannot be read, or
// not in time, is left out: an error message would land in the command line.
type candidates func(ctx context.Context, places []place, before []string) []cobra.Completion

// complete makes the completion of a verb whose arguments are these, in their order.
func complete(arguments ...candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, before []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(before) >= len(arguments) {
			return nil, directive
		}
		places, err := openPlaces(func(error) {})
		if err != nil {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		found := arguments[len(before)](ctx, places, before)
		_ = closePlaces(places) // they were only read
		return found, directive
	}
}

// candidate is a completion with its description. Other programs write the files that
// both come from: a word that a shell would not show as it is, is none.
func candidate(word, description string) []cobra.Completion {
	if word == "" || cleanCell(word) != word {
		return nil
	}
	return []cobra.Completion{cobra.CompletionWithDesc(word, shorten(description, 60))}
}

func teamCandidates(ctx context.Context, places []place, _ []string) []cobra.Completion {
	var found []cobra.Completion
	for _, p := range places {
		found = append(found, p.teamCandidates(ctx)...)
	}
	return found
}

// ownTeamCandidates leaves out the teams of other programs, which cadre changes nothing of.
func ownTeamCandidates(ctx context.Context, places []place, _ []string) []cobra.Completion {
	return places[0].teamCandidates(ctx)
}

func (p place) teamCandidates(ctx context.Context) []cobra.Completion {
	var found []cobra.Completion
	rosters, _ := p.Rosters().List(ctx)
	for _, c := range rosters {
		found = append(found, candidate(c.Name, c.Description)...)
	}
	return found
}

// anyTeamCandidates are the teams that can be read: also those that have finished.
func anyTeamCandidates(ctx context.Context, places []place, before []string) []cobra.Completion {
	found := teamCandidates(ctx, places, before)
	_ = withFinished(ctx, places, func(_ place, c roster.Roster) error {
		found = append(found, candidate(c.Name, "finished")...)
		return ctx.Err()
	})
	return found
}

// memberCandidates are the members of the team that the first argument names.
func memberCandidates(ctx context.Context, places []place, before []string) []cobra.Completion {
	_, c, err := findTeam(ctx, places, before[0])
	if err != nil {
		return nil
	}
	return membersOf(c.Members)
}

// teammateCandidates are the members without the lead.
func teammateCandidates(ctx context.Context, places []place, before []string) []cobra.Completion {
	_, c, err := findTeam(ctx, places, before[0])
	if err != nil {
		return nil
	}
	return membersOf(c.Teammates())
}

func membersOf(members []roster.Member) []cobra.Completion {
	var found []cobra.Completion
	for _, m := range members {
		found = append(found, candidate(m.Name, m.AgentType)...)
	}
	return found
}

// listCandidates are the task lists: of teams, and of sessions without one.
func listCandidates(ctx context.Context, places []place, _ []string) []cobra.Completion {
	var found []cobra.Completion
	for _, p := range places {
		lists, _ := p.lists(ctx)
		for _, list := range lists {
			found = append(found, candidate(list, "")...)
		}
	}
	return found
}

// taskCandidates are the tasks of the list that the first argument names.
func taskCandidates(ctx context.Context, places []place, before []string) []cobra.Completion {
	var found []cobra.Completion
	for _, p := range places {
		for _, id := range p.taskIDs(before[0]) {
			// One at a time: to see the whole list at one moment may need its lock.
			if t, err := p.Tasks().Get(ctx, before[0], id); err == nil && !t.Internal() {
				found = append(found, candidate(t.ID, t.Subject)...)
			}
		}
	}
	return found
}

// taskIDs lists the ids that the files of a list are named by.
func (p place) taskIDs(list string) []string {
	files, _ := os.ReadDir(p.root.TaskList(list))
	var ids []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return task.Number(a) - task.Number(b) })
	return ids
}

// sessionCandidates are the conversations of this folder, newest first.
func sessionCandidates(ctx context.Context, places []place, _ []string) []cobra.Completion {
	cwd, err := workingFolder()
	if err != nil {
		return nil
	}
	var found []cobra.Completion
	for _, p := range places {
		infos, _ := p.Transcripts().List(ctx, cwd)
		for _, info := range infos {
			if info.Agent == "" {
				found = append(found, candidate(info.Ref.Session, when(info.Updated)+" "+info.FirstAsk)...)
			}
		}
	}
	return found
}

// ownSessionCandidates are those that can be resumed.
func ownSessionCandidates(ctx context.Context, places []place, before []string) []cobra.Completion {
	return sessionCandidates(ctx, places[:1], before)
}

// askCandidates are the open questions.
func askCandidates(ctx context.Context, places []place, _ []string) []cobra.Completion {
	var found []cobra.Completion
	asks, _ := places[0].Desk().Open(ctx)
	for _, a := range asks {
		v := askView{Ask: a}
		found = append(found, candidate(a.ID, v.who()+": "+a.Question)...)
	}
	return found
}

func verdictCandidates(context.Context, []place, []string) []cobra.Completion {
	return []cobra.Completion{"allow", "deny"}
}
