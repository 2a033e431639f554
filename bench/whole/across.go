package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// mailAcross measures mail to a teammate that is a process of its own: from the
// moment when the sender, another process, begins to post, and from the moment
// when it was told that the message is kept, to the teammate's request that
// carries it.
func (b *bench) mailAcross(ctx context.Context, times int) (rows []row, err error) {
	home := filepath.Join(b.dir, "across")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	b.model.expect(func(int, *fakeapi.Request) fakeapi.Reply { return fakeapi.Answer(fakeapi.Text("Noted.")) })
	state := cadre.OpenState(layout.Root(filepath.Join(home, ".cadre")))
	defer func() { err = errors.Join(err, state.Close()) }()
	session, err := writeRoster(ctx, state, b.repo())
	if err != nil {
		return nil, err
	}
	reader, err := b.converseWith(home,
		"--agent-id", "reader@"+teamName, "--agent-name", "reader", "--team-name", teamName,
		"--parent-session-id", session, "--agent-type", "general-purpose", "--model", "claude-sonnet-4-5",
	)
	if err != nil {
		return nil, err
	}
	defer reader.kill()
	var fromCall, fromPost []time.Duration
	for n := range times + 1 {
		called := time.Now()
		if _, err := state.Teams().Say(ctx, teamName, "reader", fmt.Sprint("A line of news: ", n)); err != nil {
			return nil, err
		}
		posted := time.Now()
		if err := b.await(ctx, state, rest{idles: n + 1}); err != nil {
			return nil, fmt.Errorf("message %d: %w: %s", n, err, reader.words())
		}
		seen := b.model.arrivals()
		if len(seen) != n+1 {
			return nil, fmt.Errorf("%d messages became %d requests", n+1, len(seen))
		}
		if n > 0 { // the first waits for the start of the process
			fromCall = append(fromCall, seen[n].at.Sub(called))
			fromPost = append(fromPost, seen[n].at.Sub(posted))
		}
	}
	return []row{
		within("across two processes: message in the inbox to the recipient's next request, p50", fromPost, 10*time.Millisecond),
		within("the same from the beginning of the post, p50", fromCall, 10*time.Millisecond),
		lately("across two processes", fromPost),
	}, nil
}

// writeRoster writes a team of a lead, which has no process, and one teammate.
func writeRoster(ctx context.Context, state *cadre.State, cwd string) (session string, err error) {
	session = ids.UUID()
	now := time.Now().UnixMilli()
	return session, state.Rosters().Create(ctx, roster.Roster{
		Name: teamName, CreatedAt: now, LeadAgentID: leadBox.String(), LeadSessionID: session,
		Members: []roster.Member{
			{AgentID: leadBox.String(), Name: mailbox.LeadName, AgentType: mailbox.LeadName, JoinedAt: now, Cwd: cwd},
			{AgentID: "reader@" + teamName, Name: "reader", AgentType: "general-purpose", JoinedAt: now, Cwd: cwd},
		},
	})
}

const teamName = "bench"

// leadBox is where teammates tell that they are idle.
var leadBox = mailbox.Address{Team: teamName, Agent: mailbox.LeadName}
