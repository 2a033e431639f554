package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/roster"
)

// teamSuite checks an implementation of [roster.Store].
func teamSuite(t *testing.T, open Open[roster.Store]) {
	tests := map[string]func(*testing.T, roster.Store, roster.Store){
		"create and load":              createTeam,
		"one team per folder name":     sameFolder,
		"update":                       updateTeam,
		"a change that fails":          failedChange,
		"concurrent updates lose none": concurrentUpdates,
		"remove":                       removeTeam,
		"list":                         listTeams,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

var teamOptions = []cmp.Option{objects, cmpopts.EquateEmpty()}

func newRoster(name string) roster.Roster {
	return roster.Roster{
		Name: name, Description: "Test team", CreatedAt: 1795231010482,
		LeadAgentID: "team-lead@" + name, LeadSessionID: "62c88335-268d-4933-83f4-81bc04a35760",
		Members: []roster.Member{{AgentID: "team-lead@" + name, Name: "team-lead", AgentType: "team-lead",
			Model: "claude-sonnet-4-5", JoinedAt: 1795231010482, Cwd: "/work-dir"}},
	}
}

func mate(name string) roster.Member {
	return roster.Member{AgentID: name + "@t", Name: name, AgentType: "general-purpose", Model: "haiku", Prompt: "do <it>",
		Color: "blue", JoinedAt: 1795231084242, PaneID: "in-process", Cwd: "/work-dir", BackendType: "in-process"}
}

func load(t *testing.T, s roster.Store, name string) roster.Roster {
	t.Helper()
	c, err := s.Load(t.Context(), name)
	check(t, err)
	return c
}

func createTeam(t *testing.T, a, b roster.Store) {
	if _, err := a.Load(t.Context(), "My Team!"); !errors.Is(err, roster.ErrNotFound) {
		t.Errorf("load before create: %v", err)
	}
	want := newRoster("My Team!")
	want.Extra.Set("x-foreign", 1)
	want.Members[0].Extra.Set("mode", "plan")
	check(t, a.Create(t.Context(), want))
	equal(t, "team", load(t, b, "My Team!"), want, teamOptions...)
	if err := a.Create(t.Context(), roster.Roster{}); err == nil {
		t.Error("a team without a name was created")
	}
}

func sameFolder(t *testing.T, a, b roster.Store) {
	check(t, a.Create(t.Context(), newRoster("My Team!")))
	if err := b.Create(t.Context(), newRoster("my team?")); !errors.Is(err, roster.ErrExists) {
		t.Errorf("second create: %v", err)
	}
	equal(t, "name", load(t, b, "my-team-").Name, "My Team!")
}

func updateTeam(t *testing.T, a, b roster.Store) {
	want := newRoster("t")
	check(t, a.Create(t.Context(), want))
	got, err := b.Update(t.Context(), "t", func(c *roster.Roster) error {
		c.Members = append(c.Members, mate("w1"), mate("w2"))
		return nil
	})
	check(t, err)
	want.Members = append(want.Members, mate("w1"), mate("w2"))
	equal(t, "returned", got, want, teamOptions...)
	equal(t, "kept", load(t, a, "t"), want, teamOptions...)
	active := true
	_, err = a.Update(t.Context(), "t", func(c *roster.Roster) error {
		c.Find("w2").IsActive = &active
		c.Members = append(c.Members[:1], c.Members[2:]...)
		return nil
	})
	check(t, err)
	w2 := mate("w2")
	w2.IsActive = &active
	want.Members = []roster.Member{want.Members[0], w2}
	equal(t, "after removal", load(t, b, "t"), want, teamOptions...)
	if _, err := a.Update(t.Context(), "other", func(*roster.Roster) error { return nil }); !errors.Is(err, roster.ErrNotFound) {
		t.Errorf("update of a missing team: %v", err)
	}
}

func failedChange(t *testing.T, a, b roster.Store) {
	check(t, a.Create(t.Context(), newRoster("t")))
	refused := errors.New("refused")
	_, err := a.Update(t.Context(), "t", func(c *roster.Roster) error {
		c.Members[0].Name, c.Description = "changed", "changed"
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	equal(t, "kept", load(t, b, "t"), newRoster("t"), teamOptions...)
	if _, err := a.Update(ended(), "t", func(c *roster.Roster) error { c.Description = "x"; return nil }); err == nil {
		t.Error("update under a cancelled context succeeded")
	}
	equal(t, "kept", load(t, b, "t"), newRoster("t"), teamOptions...)
}

func concurrentUpdates(t *testing.T, a, b roster.Store) {
	check(t, a.Create(t.Context(), newRoster("t")))
	var wg sync.WaitGroup
	for n := range 6 {
		s := []roster.Store{a, b}[n%2]
		wg.Go(func() {
			for i := range 5 {
				_, err := s.Update(t.Context(), "t", func(c *roster.Roster) error {
					c.Members = append(c.Members, mate(fmt.Sprint("w", n, "-", i)))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]int)
	for _, m := range load(t, a, "t").Members {
		seen[m.Name]++
	}
	equal(t, "members", len(seen), 31)
}

func removeTeam(t *testing.T, a, b roster.Store) {
	check(t, a.Remove(t.Context(), "t"))
	check(t, a.Create(t.Context(), newRoster("t")))
	check(t, a.Create(t.Context(), newRoster("other")))
	check(t, b.Remove(t.Context(), "t"))
	check(t, a.Remove(t.Context(), "t"))
	if _, err := a.Load(t.Context(), "t"); !errors.Is(err, roster.ErrNotFound) {
		t.Errorf("load after remove: %v", err)
	}
	if err := a.Remove(t.Context(), ""); err == nil {
		t.Error("a team without a name was removed")
	}
	check(t, a.Create(t.Context(), newRoster("t")))
	equal(t, "other", load(t, b, "other").Name, "other")
}

func listTeams(t *testing.T, a, b roster.Store) {
	none, err := a.List(t.Context())
	check(t, err)
	equal(t, "no teams", len(none), 0)
	for _, name := range []string{"zeta", "alpha", "Mid 1"} {
		check(t, a.Create(t.Context(), newRoster(name)))
	}
	all, err := b.List(t.Context())
	check(t, err)
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	equal(t, "names", names, []string{"Mid 1", "alpha", "zeta"})
}
