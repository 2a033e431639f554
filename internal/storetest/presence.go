package storetest

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// presenceSuite checks an implementation of [roster.Presence].
func presenceSuite(t *testing.T, open Open[Stores]) {
	tests := map[string]func(*testing.T, Stores, Stores){
		"enter and leave":           enterAndLeave,
		"each name has its place":   places,
		"one of many enters":        enterAtOnce,
		"a search keeps nobody out": enterDuringSearches,
		"no place":                  noPlace,
		"made anew":                 placeInNewTeam,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			check(t, a.Teams().Create(t.Context(), newRoster("t")))
			test(t, a, b)
		})
	}
}

func at(agent string) mailbox.Address { return mailbox.Address{Team: "t", Agent: agent} }

func enter(t *testing.T, s Stores, who mailbox.Address) (leave func() error) {
	t.Helper()
	leave, err := s.Presence().Enter(t.Context(), who)
	check(t, err)
	return leave
}

// present checks who has a place: this process, or nobody.
func present(t *testing.T, s Stores, who mailbox.Address, want bool) {
	t.Helper()
	p, ok, err := s.Presence().Find(t.Context(), who)
	check(t, err)
	if ok != want {
		t.Errorf("%s is present: %v, want %v", who, ok, want)
	}
	if ok && !isThis(p) || !ok && p != (roster.Process{}) {
		t.Errorf("%s has process %+v", who, p)
	}
}

func isThis(p roster.Process) bool { return p.PID == os.Getpid() && p.Host != "" && !p.Since.IsZero() }

func enterAndLeave(t *testing.T, a, b Stores) {
	w1 := at("w1")
	present(t, a, w1, false)
	leave := enter(t, a, w1)
	for _, s := range []Stores{a, b, a, b} {
		present(t, s, w1, true)
		_, err := s.Presence().Enter(t.Context(), w1)
		var other *roster.PresentError
		if !errors.As(err, &other) || other.Who != w1 || !isThis(other.By) {
			t.Fatalf("second enter: %v", err)
		}
	}
	check(t, leave())
	check(t, leave()) // left is left
	present(t, b, w1, false)
	again := enter(t, b, w1)
	check(t, leave())
	present(t, a, w1, true)
	check(t, again())
	present(t, a, w1, false)
}

func places(t *testing.T, a, b Stores) {
	check(t, a.Teams().Create(t.Context(), newRoster("t2")))
	var leaves []func() error
	for _, who := range []mailbox.Address{at("w1"), at("W1"), at("a b"), at("a-b"), at("../x"), {Team: "t2", Agent: "w1"}} {
		present(t, b, who, false)
		leaves = append(leaves, enter(t, a, who))
		present(t, b, who, true)
	}
	present(t, b, at("w2"), false)
	for _, leave := range leaves {
		check(t, leave())
	}
}

func enterAtOnce(t *testing.T, a, b Stores) {
	for range 5 {
		var in atomic.Int32
		var leave func() error
		var wg sync.WaitGroup
		for n := range 6 {
			s := []Stores{a, b}[n%2]
			wg.Go(func() {
				l, err := s.Presence().Enter(t.Context(), at("w1"))
				var other *roster.PresentError
				switch {
				case err == nil && in.Add(1) == 1:
					leave = l
				case !errors.As(err, &other):
					t.Errorf("enter: %v", err)
				}
			})
		}
		wg.Wait()
		if in.Load() != 1 {
			t.Fatalf("%d are in", in.Load())
		}
		check(t, leave())
	}
}

// A search for an agent keeps it from nothing, and finds it as soon as it has entered.
func enterDuringSearches(t *testing.T, a, b Stores) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, _, err := b.Presence().Find(t.Context(), at("w1")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		leave, err := a.Presence().Enter(t.Context(), at("w1"))
		if err != nil {
			t.Error(err)
			break
		}
		present(t, b, at("w1"), true)
		check(t, leave())
	}
	close(over)
	wg.Wait()
}

func noPlace(t *testing.T, a, _ Stores) {
	for _, who := range []mailbox.Address{{Team: "t"}, {Agent: "w1"}} {
		if _, err := a.Presence().Enter(t.Context(), who); err == nil {
			t.Errorf("entered the place of %q", who)
		}
		if _, _, err := a.Presence().Find(t.Context(), who); err == nil {
			t.Errorf("searched for %q", who)
		}
	}
	missing := mailbox.Address{Team: "missing", Agent: "w1"}
	_, err := a.Presence().Enter(t.Context(), missing)
	fails(t, "enter in no team", err, roster.ErrNotFound)
	present(t, a, missing, false)
	check(t, a.Teams().Create(t.Context(), newRoster("missing"))) // nothing of it was made
	if _, err := a.Presence().Enter(ended(), at("w1")); err == nil {
		t.Error("entered under a cancelled context")
	}
	present(t, a, at("w1"), false)
}

// A team that was removed and made again has free places, and who had one in
// the old team leaves that only.
func placeInNewTeam(t *testing.T, a, b Stores) {
	old := enter(t, a, at("w1"))
	check(t, b.Teams().Remove(t.Context(), "t"))
	present(t, b, at("w1"), false)
	check(t, b.Teams().Create(t.Context(), newRoster("t")))
	leave := enter(t, b, at("w1"))
	check(t, old())
	present(t, a, at("w1"), true)
	check(t, leave())
}
