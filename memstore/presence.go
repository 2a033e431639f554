package memstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

type presence struct {
	exists func(team string) bool // whether there is a team of this name
	mu     sync.Mutex
	places map[string]*roster.Process // by the path that their file would have
}

func (p *presence) Enter(ctx context.Context, who mailbox.Address) (leave func() error, err error) {
	path, err := placePath(ctx, who)
	if err == nil && !p.exists(who.Team) {
		err = roster.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("enter the place of %s: %w", who, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.places[path]; other != nil {
		return nil, &roster.PresentError{Who: who, By: *other}
	}
	if p.places == nil {
		p.places = make(map[string]*roster.Process)
	}
	mine := thisProcess()
	p.places[path] = mine
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.places[path] == mine { // not one of a team that was made anew
			delete(p.places, path)
		}
		return nil
	}, nil
}

func (p *presence) Find(ctx context.Context, who mailbox.Address) (roster.Process, bool, error) {
	path, err := placePath(ctx, who)
	if err != nil {
		return roster.Process{}, false, fmt.Errorf("find the process of %s: %w", who, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if holder := p.places[path]; holder != nil {
		return *holder, true, nil
	}
	return roster.Process{}, false, nil
}

func (p *presence) removeTeam(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	removeBelow(p.places, root.TeamDir(name))
}

func placePath(ctx context.Context, who mailbox.Address) (string, error) {
	switch {
	case who.Team == "":
		return "", errNoName
	case who.Agent == "":
		return "", errNobody
	}
	return root.Presence(who.Team, who.Agent), context.Cause(ctx)
}

func thisProcess() *roster.Process {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &roster.Process{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Millisecond)}
}
