package cadre_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/team/protocol"
)

// A lead that only delegates has its team do everything: its teammates work as ever.
func TestALeadOnlyDelegates(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.open(t, func(c *cadre.Config) {
			c.SkipPermissions, c.Mode, c.AllowedTools = false, "delegate", []string{"Bash", "Write"}
		})
		w.form(t, "ann")
		writes := func(name string) scripted.Call {
			return scripted.Use("Write", fields{"file_path": name + ".txt", "content": "x"})
		}
		said := w.leads(t, writes("lead"), running("touch lead.txt"), creating("work", fields{"metadata": fields{"_internal": true}}), writing("ann", "Write it.", "the work"))
		contains(t, said[0], "delegate mode")
		contains(t, said[1], "delegate mode")
		contains(t, said[3], `"success": true`)
		w.isShown(t, "ann", "Write it.")
		w.does(t, "ann", writes("ann"), running("touch ann-ran.txt"))
		if exists(w.path("lead.txt")) || !exists(w.path("ann.txt")) || !exists(w.path("ann-ran.txt")) {
			t.Error("the lead did the work, or its teammate did not")
		}
		if err := w.Session().SetMode(t.Context(), permission.AcceptEdits); err != nil {
			t.Fatal(err)
		}
		w.leads(t, writes("lead"), running("touch lead-ran.txt"))
		if !exists(w.path("lead.txt")) || !exists(w.path("lead-ran.txt")) {
			t.Error("outside of delegate mode the lead has not all of its tools again")
		}
	})
}

// The lead is told why a teammate is idle.
func TestWhyTeammatesAreIdle(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		if n := w.idles(t, "ann", 1)[0]; n.IdleReason != protocol.Available || n.FailureReason != "" || n.CompletedTaskID != "" {
			t.Errorf("at first: %+v", n)
		}
		w.give(t, "ann", order{Fault: "down", Until: w.path("up")})
		if n := w.idles(t, "ann", 2)[1]; n.IdleReason != protocol.IdleFailed || n.FailureReason == "" {
			t.Errorf("with a model that is down: %+v", n)
		}
		w.isShown(t, mailbox.LeadName, "failed", "the model is down")
		w.write(t, w.path("up"), "", 0o600)
		w.does(t, "ann", writing("bob", "I am back.", "back"))
		if n := w.idles(t, "ann", 3)[2]; n.IdleReason != protocol.Available || n.Summary != "[to bob] back" {
			t.Errorf("with a model that is up again: %+v", n)
		}
	})
}

// A person may interrupt a teammate: in its pane, by the key that does it
// everywhere.
func TestAPersonInterruptsATeammate(t *testing.T) {
	w := newTeamWorld(t, inPanes) // nobody is in front of a teammate inside its lead's process
	w.form(t, "ann")
	w.idles(t, "ann", 1)
	w.give(t, "ann", order{Calls: []scripted.Call{w.untilThere("never")}})
	w.isThere(t, "begun")
	if out, err := exec.Command("tmux", "-L", "cadre-"+w.Info().SessionID[:8], "send-keys", "-t", w.member(t, "ann").PaneID, "C-c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := w.idles(t, "ann", 2)[1]; n.IdleReason != protocol.IdleInterrupted {
		t.Errorf("the lead was told %+v", n)
	}
	if m := w.member(t, "ann"); m == nil || !slices.Contains(w.panes(t), "ann") {
		t.Error("the teammate has gone")
	}
	contains(t, w.does(t, "ann", running("echo on we go"))[0], "on we go")
}
