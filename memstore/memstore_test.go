package memstore_test

import (
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/storetest"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

func TestConformance(t *testing.T) {
	t.Run("mailbox", func(t *testing.T) {
		storetest.Mailbox(t, func(*testing.T) (mailbox.Store, mailbox.Store) {
			s := memstore.New()
			return s.Mail(), s.Mail()
		})
	})
	t.Run("task", func(t *testing.T) {
		storetest.Tasks(t, func(*testing.T) (task.Store, task.Store) {
			s := memstore.New()
			return s.Tasks(), s.Tasks()
		})
	})
	t.Run("team", func(t *testing.T) {
		storetest.Teams(t, func(*testing.T) (roster.Store, roster.Store) {
			s := memstore.New()
			return s.Teams(), s.Teams()
		})
	})
	t.Run("transcript", func(t *testing.T) {
		storetest.Transcripts(t, func(*testing.T) (transcript.Store, transcript.Store) {
			s := memstore.New()
			return s.Transcripts(), s.Transcripts()
		})
	})
	t.Run("ask", func(t *testing.T) {
		storetest.Asks(t, func(*testing.T) (ask.Store, func() ask.Store) {
			s := memstore.New()
			ref := transcript.Ref{Project: "/p", Session: "s"}
			return s.Asks(ref), func() ask.Store { return s.Asks(ref) }
		})
	})
	t.Run("job", func(t *testing.T) {
		storetest.Jobs(t, func(*testing.T) (first, second func(transcript.Ref) job.Store) {
			s := memstore.New()
			return s.Jobs, s.Jobs
		})
	})
	states := func(*testing.T) (storetest.State, storetest.State) {
		s := memstore.New()
		return s, s
	}
	t.Run("seals", func(t *testing.T) { storetest.Seals(t, states) })
	t.Run("records", func(t *testing.T) { storetest.Records(t, states) })
	t.Run("presence", func(t *testing.T) { storetest.Presence(t, states) })
	t.Run("desk", func(t *testing.T) { storetest.Desk(t, states) })
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
