package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// ofSessions is the place that has the sessions of this one's teams.
func (p place) ofSessions() place {
	if p.sessions != nil {
		return *p.sessions
	}
	return p
}

// withFinished calls f for each finished team that is kept in our own places, oldest
// first, with all who were in it. Nobody watches these places, so they need no Close.
func withFinished(ctx context.Context, places []place, f func(place, roster.Roster) error) error {
	for _, p := range places {
		if p.foreign {
			continue // other programs keep none
		}
		roots, err := p.Finished()
		if err != nil {
			return err
		}
		for _, root := range roots {
			at := place{State: cadre.OpenOthersState(root, p.warn), root: root, foreign: true, sessions: &p, warn: p.warn}
			configs, err := at.Rosters().List(ctx)
			for _, c := range configs {
				c.Members = append(slices.Clone(c.Members), at.leftMembers(ctx, c)...)
				err = errors.Join(err, f(at, c))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leftMembers are those who were in a team and are not on its roster any more.
func (p place) leftMembers(ctx context.Context, c roster.Roster) []roster.Member {
	docs, _ := p.Records().All(ctx, c.Name, roster.RecordMember) // without records, the inboxes name them
	var left []roster.Member
	for _, doc := range docs {
		var e roster.Enrolment
		known := func(m roster.Member) bool { return m.Name == e.Member.Name }
		if json.Unmarshal(doc, &e) == nil && e.Member.Name != "" && !slices.ContainsFunc(c.Members, known) {
			left = append(left, e.Member)
		}
	}
	return left
}

// finishedNames are the names of the finished teams, for suggestions.
func finishedNames(ctx context.Context, places []place) []string {
	var names []string
	_ = withFinished(ctx, places, func(_ place, c roster.Roster) error { // without them there is less to suggest
		names = append(names, c.Name)
		return nil
	})
	return names
}

// findFinished finds the newest finished team with this name.
func findFinished(ctx context.Context, places []place, name string) (place, roster.Roster, error) {
	var found place
	var newest roster.Roster
	err := withFinished(ctx, places, func(p place, c roster.Roster) error {
		if layout.DirName(c.Name) == layout.DirName(name) && (found.State == nil || c.CreatedAt > newest.CreatedAt) {
			found, newest = p, c
		}
		return nil
	})
	if err == nil && found.State == nil {
		err = roster.ErrNotFound
	}
	return found, newest, err
}

// findAnyTeam is findTeam for verbs that only read: a finished team will do.
func findAnyTeam(ctx context.Context, places []place, name string) (place, roster.Roster, error) {
	p, c, err := findTeam(ctx, places, name)
	if unknown := (*exit)(nil); !errors.As(err, &unknown) {
		return p, c, err
	}
	if old, was, e := findFinished(ctx, places, name); e == nil {
		return old, was, nil
	}
	return p, c, err
}
