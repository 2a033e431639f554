package teammate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// A teammate with a process of its own ends within 5 s after its lead was killed, also in
// the middle of a turn, and within a second after it has ended in order; it goes on when
// the lead comes back in time.
func TestATeammateDoesNotOutliveItsLead(t *testing.T) {
	for name, tt := range map[string]struct {
		busy, inOrder, comesBack bool
		after                    time.Duration
	}{
		"killed":                          {after: 4 * time.Second},
		"killed in the middle of a turn":  {busy: true, after: 4 * time.Second},
		"ended in order":                  {inOrder: true, after: time.Second},
		"ended in order, and back":        {inOrder: true, comesBack: true, after: time.Minute},
		"killed, and back before the end": {comesBack: true, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &teamPast{store: memstore.New(), requests: make(map[string][]string)}
				lead := p.begin(t, &mortal{}, nil)
				lead.openMain(t, false, false)
				main, stop := p.startApart(t, lead)
				defer stop()
				if tt.busy {
					if err := main.Send(t.Context(), session.Text(session.Prompt, "wait for ever")); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if tt.inOrder {
					end := roster.LeadEnd{At: time.Now()}
					if err := roster.PutRecord(t.Context(), p.store.Records(), "alpha", roster.RecordLeadEnd, "alpha", end); err != nil {
						t.Fatal(err)
					}
				}
				lead.end()
				if tt.comesBack {
					leave, err := p.store.Presence().Enter(t.Context(), alphaLead)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = leave() }()
				}
				<-time.After(tt.after)
				synctest.Wait()
				select {
				case <-main.Done():
					if tt.comesBack {
						t.Error("it has ended, and its lead is back")
					}
				default:
					if !tt.comesBack {
						t.Errorf("it runs %s after its lead", tt.after)
					}
				}
			})
		})
	}
}

// startApart starts ann as if in a process of its own. stop ends it.
func (p *teamPast) startApart(t *testing.T, lead *process) (main *session.Session, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lead.teams.Create(ctx, leadCaller, "alpha", "", ""); err != nil {
		t.Fatal(err)
	}
	_, err := p.store.Teams().Update(ctx, "alpha", func(c *roster.Roster) error {
		c.Members = append(c.Members, roster.Member{Name: "ann", AgentID: "ann@alpha", BackendType: "tmux", PaneID: "%1", JoinedAt: 1})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	own := p.begin(t, &mortal{}, nil)
	var folding sync.WaitGroup
	events := own.tree.Stream.Subscribe(context.WithoutCancel(ctx), 0)
	own.host.Tally = event.NewTally(func(string, transcript.Usage) (float64, bool) { return 0, false })
	folding.Go(func() { own.host.Tally.Fold(events) })
	caller := tool.Caller{SessionID: "00000000-0000-4000-8000-000000000001", AgentName: "ann", Team: "alpha", Cwd: "/w"}
	place, err := teammate.Join(ctx, own.host, caller, config.DefaultOrphanGrace)
	if err != nil {
		t.Fatal(err)
	}
	spec := session.Spec{Ref: transcript.Ref{Project: "/w", Session: caller.SessionID}, Caller: caller}
	release, err := place.Prepare(ctx, &spec, false, false)
	if err == nil {
		own.main, err = own.Open(ctx, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	own.tree.Sessions.SetMain(own.main)
	close(own.opened)
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		place.Serve(ctx, own.main)
	}()
	return own.main, func() {
		_ = own.main.Close(errors.New("the test is over"))
		cancel()
		<-serving
		release()
		own.end()
		folding.Wait()
	}
}
