package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
)

// sealsSuite checks an implementation of [mailbox.Seals].
func sealsSuite(t *testing.T, open Open[Stores]) {
	tests := map[string]func(*testing.T, Stores, Stores){
		"a seal is for one message":     sealOneMessage,
		"a seal is for one inbox":       sealOneInbox,
		"parts do not run together":     sealParts,
		"what is sealed later is found": sealLater,
		"concurrent seals lose none":    concurrentSeals,
		"removed with the team":         sealsOfRemovedTeam,
		"cancelled":                     sealCancelled,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

var sealBox = mailbox.Address{Team: "My Team!", Agent: "w1"}

func protocol(n int) mailbox.Message {
	return mailbox.Message{From: "team-lead", Text: fmt.Sprintf(`{"type":"plan_approval_response","requestId":"%d"}`, n),
		Timestamp: "2026-11-21T03:18:57.981Z", Color: "blue"}
}

func sealed(t *testing.T, s Stores, at mailbox.Address, m mailbox.Message, about string, want bool) {
	t.Helper()
	got, err := s.Seals().Sealed(t.Context(), at, m, about)
	check(t, err)
	if got != want {
		t.Errorf("sealed for %s, about %q: %v, want %v: %+v", at, about, got, want, m)
	}
}

func sealOneMessage(t *testing.T, a, b Stores) {
	sealed(t, b, sealBox, protocol(1), "digest", false)
	check(t, a.Seals().Seal(t.Context(), sealBox, protocol(1), "digest"))
	for _, s := range []Stores{a, b} {
		sealed(t, s, sealBox, protocol(1), "digest", true)
		sealed(t, s, sealBox, protocol(1), "other digest", false)
		sealed(t, s, sealBox, protocol(1), "", false)
		sealed(t, s, sealBox, protocol(2), "digest", false)
	}
	m := protocol(1)
	m.Color, m.Summary, m.Read, m.ID = "red", "s", true, "x" // not what it says, nor who says it
	sealed(t, b, sealBox, m, "digest", true)
	m = protocol(1)
	m.From = "w2"
	sealed(t, b, sealBox, m, "digest", false)
	m = protocol(1)
	m.Timestamp = "2026-11-21T03:18:57.982Z"
	sealed(t, b, sealBox, m, "digest", false)
}

func sealOneInbox(t *testing.T, a, b Stores) {
	check(t, a.Seals().Seal(t.Context(), sealBox, protocol(1), ""))
	sealed(t, b, mailbox.Address{Team: "my team?", Agent: "w1"}, protocol(1), "", true) // the same inbox
	for _, at := range []mailbox.Address{{Team: "My Team!", Agent: "w2"}, {Team: "other", Agent: "w1"}, {Agent: "w1"}} {
		sealed(t, b, at, protocol(1), "", false)
		check(t, b.Seals().Seal(t.Context(), at, protocol(2), ""))
		sealed(t, a, at, protocol(2), "", true)
		sealed(t, a, sealBox, protocol(2), "", false)
	}
	if err := a.Seals().Seal(t.Context(), mailbox.Address{Team: "t"}, protocol(1), ""); err == nil {
		t.Error("sealed for nobody")
	}
	if _, err := a.Seals().Sealed(t.Context(), mailbox.Address{Team: "t"}, protocol(1), ""); err == nil {
		t.Error("searched for a seal for nobody")
	}
}

func sealParts(t *testing.T, a, b Stores) {
	m := mailbox.Message{From: "a", Timestamp: "b", Text: "c"}
	check(t, a.Seals().Seal(t.Context(), sealBox, m, "d"))
	for _, other := range []mailbox.Message{
		{From: "ab", Text: "c"}, {From: "a", Text: "bc"}, {From: "a", Timestamp: "bc"}, {From: "abc"},
		{From: "a1:b", Text: "c"}, {From: "a", Timestamp: "c", Text: "b"},
	} {
		sealed(t, b, sealBox, other, "d", false)
	}
	m.Text = "cd"
	sealed(t, b, sealBox, m, "", false)
}

func sealLater(t *testing.T, a, b Stores) {
	for i := range 40 {
		sealed(t, a, sealBox, protocol(i), "x", false)
		check(t, []Stores{a, b}[i%2].Seals().Seal(t.Context(), sealBox, protocol(i), "x"))
		sealed(t, a, sealBox, protocol(i), "x", true)
		sealed(t, a, sealBox, protocol(i/2), "x", true)
	}
	for i := range 40 {
		sealed(t, b, sealBox, protocol(i), "x", true)
	}
}

func concurrentSeals(t *testing.T, a, b Stores) {
	var wg sync.WaitGroup
	for n := range 8 {
		s := []Stores{a, b}[n%2]
		wg.Go(func() {
			for i := range 10 {
				m := protocol(100*n + i)
				if err := s.Seals().Seal(t.Context(), sealBox, m, ""); err != nil {
					t.Error(err)
				}
				if ok, err := s.Seals().Sealed(t.Context(), sealBox, m, ""); err != nil || !ok {
					t.Errorf("sealed just now: %v, %v", ok, err)
				}
			}
		})
	}
	wg.Wait()
	for n := range 8 {
		for i := range 10 {
			sealed(t, b, sealBox, protocol(100*n+i), "", true)
		}
	}
}

func sealsOfRemovedTeam(t *testing.T, a, b Stores) {
	other := mailbox.Address{Team: "My Team! 2", Agent: "w1"}
	check(t, a.Seals().Seal(t.Context(), other, protocol(1), ""))
	for round := range 3 {
		check(t, a.Teams().Create(t.Context(), newRoster(sealBox.Team)))
		for i := range 2 + round { // a file that is longer each time
			sealed(t, b, sealBox, protocol(100*round+i), "", false)
			check(t, a.Seals().Seal(t.Context(), sealBox, protocol(100*round+i), ""))
			sealed(t, b, sealBox, protocol(100*round+i), "", true)
		}
		if round > 0 {
			sealed(t, b, sealBox, protocol(100*(round-1)), "", false)
		}
		check(t, a.Teams().Remove(t.Context(), sealBox.Team))
	}
	sealed(t, b, sealBox, protocol(200), "", false)
	sealed(t, b, other, protocol(1), "", true)
}

func sealCancelled(t *testing.T, a, b Stores) {
	if err := a.Seals().Seal(ended(), sealBox, protocol(1), ""); err == nil {
		t.Error("sealed under a cancelled context")
	}
	sealed(t, b, sealBox, protocol(1), "", false)
	if _, err := a.Seals().Sealed(ended(), sealBox, protocol(1), ""); err == nil {
		t.Error("searched under a cancelled context")
	}
}
