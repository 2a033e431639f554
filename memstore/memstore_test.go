package memstore_test

import (
	"testing"

	"github.com/cadre-dev/cadre/internal/storetest"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
)

func TestConformance(t *testing.T) {
	storetest.All(t, func(*testing.T) (a, b *memstore.Store) {
		s := memstore.New()
		return s, s
	})
}

func TestRemovedTeamTakesItsMailAlong(t *testing.T) {
	s := memstore.New()
	at := mailbox.Address{Team: "t", Agent: "w1"}
	near := mailbox.Address{Team: "t2", Agent: "w1"}
	for _, to := range []mailbox.Address{at, near} {
		if err := s.Mail().Post(t.Context(), to, mailbox.Message{From: "x", Text: "y"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Teams().Create(t.Context(), roster.Roster{Name: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Teams().Remove(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[mailbox.Address]int{at: 0, near: 1} {
		mail, err := s.Mail().All(t.Context(), to)
		if err != nil || len(mail) != want {
			t.Errorf("mail of %s: %v, %v", to, mail, err)
		}
	}
}
