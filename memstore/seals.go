package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

// seals needs no key: nothing but our own runtime reaches this memory.
type seals struct {
	mu  sync.Mutex
	all map[string]map[seal]struct{} // by the path that their file would have
}

// seal is what a seal covers.
type seal struct{ from, timestamp, text, about string }

func sealOf(m mailbox.Message, about string) seal {
	return seal{m.From, m.Timestamp, m.Text, about}
}

var errNobody = errors.New("the agent's name is empty")

func (s *seals) Seal(ctx context.Context, to mailbox.Address, m mailbox.Message, about string) error {
	path, err := sealsPath(ctx, to)
	if err != nil {
		return fmt.Errorf("seal message for %s: %w", to, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string]map[seal]struct{})
	}
	if s.all[path] == nil {
		s.all[path] = make(map[seal]struct{})
	}
	s.all[path][sealOf(m, about)] = struct{}{}
	return nil
}

func (s *seals) Sealed(ctx context.Context, at mailbox.Address, m mailbox.Message, about string) (bool, error) {
	path, err := sealsPath(ctx, at)
	if err != nil {
		return false, fmt.Errorf("find the seal of a message for %s: %w", at, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.all[path][sealOf(m, about)]
	return ok, nil
}

func sealsPath(ctx context.Context, at mailbox.Address) (string, error) {
	if at.Agent == "" {
		return "", errNobody
	}
	return root.Seals(at.Team, at.Agent), context.Cause(ctx)
}

func (s *seals) removeTeam(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removeBelow(s.all, root.TeamDir(name))
}
