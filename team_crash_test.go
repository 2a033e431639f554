package cadre_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/task"
)

// kill ends a teammate that is given no chance to say anything. In panes that is
// its process. In its lead's process there is nothing to kill but the lead, which
// is another test; what is left is that its session ends, as by a stop.
func (w *teamWorld) kill(t *testing.T, name string) {
	t.Helper()
	if !w.apart {
		w.stop(t, name, true)
		return
	}
	p, ok := w.place(t, name)
	if !ok {
		t.Fatalf("%s has no process", name)
	}
	process, err := os.FindProcess(p.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A teammate whose session ends in no order is off the team, and others go on with
// its task.
func TestATeammateThatDies(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann")
		w.idles(t, "ann", 1)
		w.leads(t, creating("Guard", nil))
		w.isShown(t, "ann", "Start with task #1")
		w.kill(t, "ann")
		w.leaves(t, "ann")
		w.isShown(t, mailbox.LeadName, `"type":"teammate_terminated"`, "ann has ended", `#1 \"Guard\"`)
		if item := w.task(t, "1"); item.Owner != "" || item.Status != task.Pending {
			t.Errorf("its task is %+v", item)
		}
		w.leads(t, spawning("bob", "You are bob."))
		w.isShown(t, "bob", "Start with task #1")
	})
}

// A teammate that still runs when its lead is resumed, and ends before that has come
// to it, is brought back like the others.
func TestATeammateEndsWhileItsLeadComesBack(t *testing.T) {
	w := newTeamWorld(t, inPanes) // elsewhere it ends with its lead
	begin := order{ID: "begin", Calls: forming("ann", "bob")}
	lead := w.leadConfig()
	lead.Prompt = begin.text()
	kill := startLead(t, lead)
	w.results(t, mailbox.LeadName, "begin", len(begin.Calls))
	w.idles(t, "ann", 1)
	w.idles(t, "bob", 1)
	kill()
	for _, name := range []string{mailbox.LeadName, "ann", "bob"} {
		eventually(t, name+" has ended", func() bool { _, runs := w.place(t, name); return !runs })
	}
	config, err := w.state.Rosters().Load(t.Context(), alpha)
	if err != nil {
		t.Fatal(err)
	}
	leave, err := w.state.Presence().Enter(t.Context(), at("bob"))
	if err != nil {
		t.Fatal(err)
	}
	// When the lead starts ann it knows already who runs, and bob is next.
	script := fmt.Sprintf("#!/bin/sh\ntouch %s\nwhile [ ! -e %s ]; do sleep 0.02; done\nexec '%s' \"$@\"\n",
		w.path("starting"), w.path("ended"), w.command)
	w.write(t, w.path("teammate"), script, 0o700)
	w.command = w.path("teammate")
	ended := make(chan error, 1)
	go func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for !exists(w.path("starting")) && t.Context().Err() == nil {
			<-look.C
		}
		ended <- errors.Join(leave(), os.WriteFile(w.path("ended"), nil, 0o600))
	}()
	w.open(t, func(c *cadre.Config) { c.Resume = config.LeadSessionID })
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		w.isShown(t, name, "You were stopped, and are back.")
	}
}

// A teammate whose lead was killed before the first line of its conversation was
// written is started with its prompt: its file is there, and empty.
func TestATeammateThatWasNotToldItsPrompt(t *testing.T) {
	w := newTeamWorld(t, inProcess)
	begin := order{ID: "begin", Calls: forming("ann")}
	lead := w.leadConfig()
	lead.Prompt = begin.text()
	kill := startLead(t, lead)
	w.idles(t, "ann", 1)
	kill()
	kept, err := filepath.Glob(filepath.Join(w.home.Project(w.dir), "*", "subagents", "agent-t*.jsonl"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if err := errors.Join(os.Truncate(kept[0], 0), os.Remove(shownFile(w.home, "ann"))); err != nil {
		t.Fatal(err)
	}
	config, err := w.state.Rosters().Load(t.Context(), alpha)
	if err != nil {
		t.Fatal(err)
	}
	w.open(t, func(c *cadre.Config) { c.Resume = config.LeadSessionID })
	w.isShown(t, "ann", "You are ann.\n")
}

// The pane of a teammate whose lead was killed before its program could start does not
// outlive the lead for long.
func TestThePaneOfAKilledLeadCloses(t *testing.T) {
	w := newTeamWorld(t, inPanes)
	begin := order{ID: "begin", Calls: append(forming(), w.untilThere("go"), spawning("ann", "You are ann."))}
	lead := w.leadConfig()
	lead.Prompt = begin.text()
	kill := startLead(t, lead)
	w.isThere(t, "begun")
	config, err := w.state.Rosters().Load(t.Context(), alpha)
	if err != nil {
		t.Fatal(err)
	}
	lock := w.home.Inbox(alpha, "ann") + ".lock" // the prompt cannot be posted
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o700), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.path("go"), "", 0o600)
	eventually(t, "ann has a pane", func() bool { return len(panesOf(config.LeadSessionID)) > 0 })
	kill()
	eventually(t, "the pane is closed", func() bool { return len(panesOf(config.LeadSessionID)) == 0 })
}

// A pane that shows why its teammate has ended is closed by its lead, and closes by
// itself when the lead was killed: nobody else knows of it.
func TestThePaneOfAFailureClosesWithoutItsLead(t *testing.T) {
	for _, leadFirst := range []bool{false, true} {
		w := newTeamWorld(t, inPanes)
		w.settings(t, `{"orphanGraceMs": 600000}`) // ann does not end by herself
		begin := order{ID: "begin", Calls: append(forming(), spawning("ann", "You are ann."), w.untilThere("never"))}
		lead := w.leadConfig()
		lead.Prompt = begin.text()
		kill := startLead(t, lead)
		w.isThere(t, "begun")
		config, err := w.state.Rosters().Load(t.Context(), alpha)
		if err != nil {
			t.Fatal(err)
		}
		ann, runs := w.place(t, "ann")
		if !runs {
			t.Fatal("ann does not run")
		}
		if leadFirst {
			kill()
		}
		process, err := os.FindProcess(ann.PID)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		if !leadFirst {
			eventually(t, "ann has left", func() bool {
				now, err := w.state.Rosters().Load(t.Context(), alpha)
				return err == nil && now.Find("ann") == nil
			})
			if len(panesOf(config.LeadSessionID)) == 0 {
				t.Error("the pane does not show why ann has ended")
			}
			kill()
		}
		eventually(t, "the pane is closed", func() bool { return len(panesOf(config.LeadSessionID)) == 0 })
	}
}

// A lead that is stopped takes its teammates in panes along, also one that is at work,
// and finds them again when it is resumed.
func TestAStoppedLeadTakesItsPanesAlong(t *testing.T) {
	w := newTeamWorld(t, inPanes)
	w.settings(t, `{"orphanGraceMs": 600000}`) // they do not wait for it
	w.form(t, "ann", "bob")
	w.idles(t, "bob", 1)
	w.give(t, "ann", order{Calls: []scripted.Call{w.untilThere("never")}})
	w.isThere(t, "begun")
	id := w.Info().SessionID
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		eventually(t, name+" has ended", func() bool { _, runs := w.place(t, name); return !runs })
	}
	w.write(t, w.path("never"), "", 0o600)
	w.open(t, func(c *cadre.Config) { c.Resume = id })
	for _, name := range []string{"ann", "bob"} {
		w.isShown(t, name, "You were stopped, and are back.")
	}
}

// A killed lead is resumed with its team, in the same backend or the other:
// everybody has its history, its tasks, and the mail that came meanwhile, once.
func TestAKilledLeadIsResumed(t *testing.T) {
	for _, resumed := range backends {
		t.Run("in "+resumed.mode, func(t *testing.T) {
			t.Parallel()
			overBackends(t, func(t *testing.T, w *teamWorld) {
				begin := order{ID: "begin", Calls: append(forming("ann", "bob"), creating("Guard", nil), writing("ann", "Remember 42.", "a number"))}
				lead := w.leadConfig()
				lead.Prompt = begin.text()
				kill := startLead(t, lead)
				w.results(t, mailbox.LeadName, "begin", len(begin.Calls))
				w.isShown(t, "ann", "Remember 42.")
				w.idles(t, "ann", 1)
				w.idles(t, "bob", 1)
				eventually(t, "somebody guards", func() bool { return w.task(t, "1").Status == task.InProgress })
				guard := w.task(t, "1").Owner
				w.isShown(t, guard, "Start with task #1")
				eventually(t, "the lead was shown that somebody is idle", func() bool {
					seen := w.shown(t, mailbox.LeadName)
					return seen.times("idle_notification")+seen.times("teammates are idle") > 0
				})
				kill()
				for _, name := range []string{mailbox.LeadName, "ann", "bob"} { // orphans leave by themselves
					eventually(t, name+" has ended", func() bool { _, runs := w.place(t, name); return !runs })
				}
				for _, name := range []string{"ann", "bob"} {
					if _, err := w.state.Teams().Say(t.Context(), alpha, name, "While you were away."); err != nil {
						t.Fatal(err)
					}
				}
				config, err := w.state.Rosters().Load(t.Context(), alpha)
				if err != nil {
					t.Fatal(err)
				}
				w.backend = resumed
				w.open(t, func(c *cadre.Config) { c.Resume, c.TeammateMode = config.LeadSessionID, resumed.mode })
				for _, name := range []string{"ann", "bob"} {
					w.isShown(t, name, "While you were away.")
					w.isShown(t, name, "You were stopped, and are back.")
					seen := w.shown(t, name)
					for _, text := range []string{"You are " + name + ".\n", "While you were away."} {
						if n := seen.times(text); n != 1 {
							t.Errorf("%s was shown %q %d times", name, text, n)
						}
					}
					if m := w.member(t, name); m == nil || m.BackendType != resumed.mode {
						t.Errorf("the roster has %+v", m)
					}
				}
				if n := w.shown(t, "ann").times("Remember 42."); n != 1 {
					t.Errorf("ann was shown what it was to remember %d times", n)
				}
				if item := w.task(t, "1"); item.Owner != guard || item.Status != task.InProgress {
					t.Errorf("the task is %+v; it was %s's", item, guard)
				}
				w.does(t, guard, updating("1", fields{"status": "completed"}))
				w.leads(t, running("true"))
				w.isShown(t, mailbox.LeadName, `You lead the team "alpha"`, "#1 [in_progress, owned by "+guard+"] Guard")
				for _, name := range []string{"ann", "bob"} {
					w.give(t, name, order{On: `"type":"shutdown_request"`, Calls: []scripted.Call{approving(true, "")}})
					w.leads(t, scripted.Use("SendMessage", fields{"type": "shutdown_request", "recipient": name}))
					w.leaves(t, name)
				}
				contains(t, w.leads(t, scripted.Use("TeamDelete", fields{}))[0], `"success": true`)
			})
		})
	}
}
