package filestore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

var finishedLead = transcript.Ref{Project: "/home/u/p", Session: "11111111-1111-4111-8111-111111111111"}

// finish makes a team with mail and a task, whose lead's session is kept or not, and
// deletes it as its lead does.
func finish(t *testing.T, s *filestore.Store, withSession bool) {
	t.Helper()
	ctx := t.Context()
	if withSession {
		log, err := s.Transcripts().Open(ctx, finishedLead)
		check(t, err)
		check(t, log.Append(ctx, transcript.Entry{Kind: transcript.KindUser, UUID: "u1", Message: transcript.Message{
			Role: "user", Content: []transcript.Block{transcript.TextBlock("go")},
		}}))
		check(t, log.Close())
	}
	teams := s.LedTeams()
	check(t, teams.Create(ctx, roster.Roster{
		Name: "Alpha Team", CreatedAt: 17, LeadAgentID: "team-lead@Alpha Team", LeadSessionID: finishedLead.Session,
		Members: []roster.Member{{AgentID: "team-lead@Alpha Team", Name: "team-lead", Cwd: finishedLead.Project}},
	}))
	check(t, s.Records().Put(ctx, "Alpha Team", roster.RecordMember, "ann", []byte(`{"member":{"name":"ann"},"left":true}`)))
	check(t, s.Mail().Post(ctx, mailbox.Address{Team: "Alpha Team", Agent: "ann"}, ordinary(1)))
	_, err := s.Tasks().Create(ctx, "Alpha Team", task.Task{Subject: "write it", Description: "d"})
	check(t, err)
	check(t, teams.Remove(ctx, "Alpha Team"))
	check(t, s.Tasks().Remove(ctx, "Alpha Team"))
}

// A deleted team can be read for as long as its lead's session is kept.
func TestAFinishedTeamStaysReadable(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	finish(t, s, true)
	for _, gone := range []string{root.TeamDir("Alpha Team"), root.TaskList("Alpha Team")} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("other programs still see %s", gone)
		}
	}
	finished, err := s.Finished()
	check(t, err)
	if len(finished) != 1 {
		t.Fatalf("finished: %q", finished)
	}
	kept := open(t, finished[0])
	c, err := kept.Teams().Load(t.Context(), "Alpha Team")
	check(t, err)
	tasks, err := kept.Tasks().List(t.Context(), "Alpha Team")
	check(t, err)
	mail, err := kept.Mail().All(t.Context(), mailbox.Address{Team: "Alpha Team", Agent: "ann"})
	check(t, err)
	members, err := kept.Records().All(t.Context(), "Alpha Team", roster.RecordMember)
	check(t, err)
	if c.LeadSessionID != finishedLead.Session || len(tasks) != 1 || tasks[0].Subject != "write it" || len(mail) != 1 || len(members) != 1 {
		t.Errorf("kept: %+v\ntasks %+v\nmail %+v\nmembers %s", c, tasks, mail, members)
	}
	check(t, s.Transcripts().Remove(t.Context(), finishedLead))
	if finished, err = s.Finished(); err != nil || len(finished) > 0 {
		t.Errorf("it outlived its lead's session: %q, %v", finished, err)
	}
}

// Without a session there is no place for it, and a copy that fails keeps no team.
func TestAFinishedTeamIsDeletedWhateverBecomesOfTheCopy(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	finish(t, s, false)
	if finished, err := s.Finished(); err != nil || len(finished) > 0 {
		t.Errorf("finished without a session: %q, %v", finished, err)
	}

	var warnings []error
	s = open(t, root, filestore.WithWarn(func(err error) { warnings = append(warnings, err) }))
	occupied := layout.FinishedTeams(filepath.Join(root.Project(finishedLead.Project), finishedLead.Session))
	check(t, os.MkdirAll(filepath.Dir(occupied), 0o700))
	check(t, os.WriteFile(occupied, nil, 0o600))
	finish(t, s, true)
	if _, err := os.Lstat(root.TeamDir("Alpha Team")); err == nil {
		t.Error("the team is still there")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), `keep a copy of team "Alpha Team"`) {
		t.Errorf("warnings: %v", warnings)
	}
}
