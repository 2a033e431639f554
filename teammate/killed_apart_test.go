package teammate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// apart runs teammates as if each had a process of its own ([team.Backend]).
type apart struct {
	t    *testing.T
	past *teamPast
	mate *mortal // of all teammates

	conversations teammate.Conversations
	running       map[string]func() // by name: ends it
}

func (b *apart) Kind(context.Context) (string, error) { return "tmux", nil }

func (b *apart) Start(ctx context.Context, s team.Spawn) (team.Started, error) {
	if _, err := s.DeliverPrompt(ctx); err != nil {
		return team.Started{}, err
	}
	id := ids.UUID()
	if s.Record != nil {
		var err error
		if id, err = b.conversations.MakeMain(ctx, *s.Record); err != nil {
			return team.Started{}, err
		}
	}
	_, end, err := b.past.startMate(b.t, b.mate, s.Member.Name, id, s.Record != nil)
	if err != nil {
		return team.Started{}, err
	}
	b.running[s.Member.Name] = end
	return team.Started{PaneID: "%1"}, s.Seat.CheckedIn(ctx)
}

func (b *apart) Stop(_ context.Context, who mailbox.Address, _ error) error {
	b.end(who.Agent)
	return nil
}

func (b *apart) end(name string) {
	if end := b.running[name]; end != nil {
		delete(b.running, name)
		end()
	}
}

// startMate starts a teammate as a process of its own.
func (p *teamPast) startMate(t *testing.T, m *mortal, name, id string, comesBack bool) (main *session.Session, end func(), err error) {
	ctx, cancel := context.WithCancel(t.Context())
	own := p.begin(t, m, nil)
	caller := tool.Caller{SessionID: id, AgentName: name, Team: "alpha", Cwd: "/w"}
	place, err := teammate.Join(ctx, own.host, caller, time.Hour)
	if err != nil {
		cancel()
		own.end()
		return nil, nil, err
	}
	spec := session.Spec{Ref: transcript.Ref{Project: "/w", Session: id}, Caller: caller}
	release, err := place.Prepare(ctx, &spec, false, comesBack)
	if err == nil {
		own.main, err = own.Open(ctx, spec)
	}
	if err != nil {
		cancel()
		own.end()
		return nil, nil, err
	}
	own.tree.Sessions.SetMain(own.main)
	close(own.opened)
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		place.Serve(ctx, own.main)
	}()
	return own.main, func() {
		m.kill()
		_ = own.main.Close(errKilled)
		cancel()
		<-serving
		release()
		own.end()
	}, nil
}

// lifeApart lets the team of a lead live whose teammates have processes of their own, new
// or resumed. When the teammates die first, the lead notices, and gets so many changes
// further with what it does then.
func (p *teamPast) lifeApart(t *testing.T, lead, mates *mortal, resumed bool, further int) {
	b := &apart{t: t, past: p, mate: mates, conversations: p.conversations(lead), running: make(map[string]func())}
	l := p.begin(t, lead, b)
	if resumed {
		p.resumeApart(t, l)
	} else {
		l.openMain(t, false, false)
		l.sendAround(t)
	}
	l.rest()
	if mates.isDead() && !lead.isDead() {
		lead.mu.Lock()
		lead.dies = lead.changes + 1 + further
		lead.mu.Unlock()
		for _, name := range []string{"ann", "bob"} {
			b.end(name)
			_ = l.teams.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: name}, "its process has ended")
		}
		l.rest()
	}
	l.end()
	for _, name := range []string{"ann", "bob"} {
		b.end(name)
	}
}

// resumeApart opens a lead again, which brings its teammates back.
func (p *teamPast) resumeApart(t *testing.T, l *process) {
	ctx := t.Context()
	spec := session.Spec{Ref: transcript.Ref{Project: "/w", Session: leadCaller.SessionID}, Caller: leadCaller}
	absent, err := l.host.ReopenTeam(ctx, &spec)
	if err == nil {
		l.main, err = l.Open(ctx, spec)
	}
	if err != nil {
		if !l.isDead() {
			t.Error(err)
		}
		return
	}
	l.tree.Sessions.SetMain(l.main)
	close(l.opened)
	for _, m := range absent {
		if _, err := l.teams.Revive(ctx, leadCaller, m); errors.Is(err, roster.ErrNoRecord) {
			t.Errorf("nothing was kept of %s", m.Name)
		}
	}
}

// The same as [TestAKillAtAnyPointOfADelivery] for a team whose teammates have processes
// of their own: all are killed at once, or the teammates first, which the lead notices, and
// is killed while it deals with that.
func TestAKillOfATeamInSeveralProcesses(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		points, _ := killedApart(t, fate{}, nil, 0)
		for n := 1; n <= points; n++ {
			for _, after := range []bool{false, true} {
				if whole || rand.IntN(3) == 0 {
					killedApart(t, fate{n, after}, nil, 0)
				}
			}
		}
	})
	t.Run("the teammates first", func(t *testing.T) {
		_, points := killedApart(t, fate{}, &fate{}, 0)
		for n := 1; n <= points; n++ {
			for _, after := range []bool{false, true} {
				for further := range 30 {
					if whole || rand.IntN(40) == 0 {
						killedApart(t, fate{}, &fate{n, after}, further)
					}
				}
			}
		}
	})
}

// fate is when a process is killed: at which change, before it or after it.
type fate struct {
	at    int
	after bool
}

func (f fate) mortal() *mortal { return &mortal{dies: f.at, after: f.after} }

// killedApart kills a team, resumes it, and returns how many changes the lead and the
// teammates stored until then. mates is nil when all die at once.
func killedApart(t *testing.T, lead fate, mates *fate, further int) (byLead, byMates int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &teamPast{store: memstore.New(), requests: make(map[string][]string)}
		first, second := lead.mortal(), (*mortal)(nil)
		if second = first; mates != nil {
			second = mates.mortal()
		}
		p.lifeApart(t, first, second, false, further)
		byLead, byMates = first.changes, second.changes
		if lead.at == 0 && (mates == nil || mates.at == 0) && len(p.sent) != len(allSent) {
			t.Errorf("acknowledged were only %q", p.sent)
		}
		p.lifeApart(t, &mortal{}, &mortal{}, true, 0)
		p.check(t, fmt.Sprintf("killed at %+v, %+v, the lead %d changes later", lead, mates, further), mates != nil)
	})
	return byLead, byMates
}

// A team that is killed again and again, and is resumed in the same place or the other,
// goes on as if nothing had happened: what its models are shown is never rewritten.
func TestATeamOutlivesManyKills(t *testing.T) {
	seeds := 40
	if whole {
		seeds = 2000
	}
	for range seeds {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 0))
			p := &teamPast{store: memstore.New(), requests: make(map[string][]string)}
			where := fmt.Sprintf("seed %d:", seed)
			for n := range 8 {
				m := &mortal{dies: 1 + draw.IntN(60), after: draw.IntN(2) == 0}
				apart := draw.IntN(2) == 0
				where += fmt.Sprintf(" %d %v %v;", m.dies, m.after, apart)
				switch {
				case n == 0:
					m.dies += 6 // there is a team
					p.firstOf(t, m, apart)
				case apart:
					p.lifeApart(t, m, m, true, 0)
				default:
					p.nextLife(t, m, false)
				}
			}
			p.nextLife(t, &mortal{}, false)
			p.check(t, where, false)
		})
	}
}

func (p *teamPast) firstOf(t *testing.T, m *mortal, apart bool) {
	if apart {
		p.lifeApart(t, m, m, false, 0)
		return
	}
	p.firstLife(t, m)
}
