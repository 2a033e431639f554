package cadre_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// From spawn to TeamDelete, with what lies on the disk in between.
func TestATeamFromBeginningToEnd(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		for _, name := range []string{"ann", "bob"} {
			m := w.member(t, name)
			if m == nil || m.BackendType != w.mode || m.Color == "" || (m.PaneID == "in-process") == w.apart {
				t.Errorf("the roster has %+v", m)
			}
			w.isShown(t, name, `<teammate-message teammate_id="team-lead"`+w.summary("help out")+">\nYou are "+name+".\n</teammate-message>")
			w.isShown(t, name, `You are "`+name+`", a member of the team "alpha"`)
		}
		w.isShown(t, "bob", "Your teammates: ann (general-purpose)")
		if panes := w.panes(t); w.apart && (!slices.Contains(panes, "ann") || !slices.Contains(panes, "bob")) {
			t.Errorf("panes: %v", panes)
		}

		config, err := os.ReadFile(w.home.TeamConfig(alpha))
		if want := "{\n  \"name\": \"alpha\",\n  \"description\": \"the test\",\n  \"createdAt\": "; err != nil || !strings.HasPrefix(string(config), want) {
			t.Errorf("config.json starts %.120q, %v", config, err)
		}

		refused := w.leads(t, scripted.Use("TeamDelete", fields{}))[0]
		contains(t, refused, "Cannot cleanup team with 2 active member(s): ann, bob")
		w.leads(t, scripted.Use("TaskCreate", fields{"subject": "Guard", "description": "stay at it"}),
			scripted.Use("TaskUpdate", fields{"taskId": "1", "owner": "ann"}))
		for _, name := range []string{"ann", "bob"} {
			w.give(t, name, order{On: `"shutdown_request"`, Calls: []scripted.Call{approving(true, "")}})
			w.leads(t, scripted.Use("SendMessage", fields{"type": "shutdown_request", "recipient": name, "content": "enough"}))
			w.leaves(t, name)
		}
		w.isShown(t, mailbox.LeadName, `"type":"teammate_terminated"`, "ann has shut down", `1 task(s) were unassigned: #1 \"Guard\"`)
		w.isShown(t, mailbox.LeadName, `"type":"teammate_terminated"`, "bob has shut down")
		if item := w.task(t, "1"); item.Owner != "" || item.Status != task.Pending {
			t.Errorf("the task of who has left: %+v", item)
		}
		if panes := w.panes(t); slices.Contains(panes, "ann") || slices.Contains(panes, "bob") {
			t.Errorf("panes that are left: %v", panes)
		}
		if got := w.leads(t, scripted.Use("TeamDelete", fields{}))[0]; !strings.Contains(got, `"success": true`) {
			t.Errorf("TeamDelete: %s", got)
		}
		if w.member(t, mailbox.LeadName) != nil || exists(w.home.TeamDir(alpha)) || exists(w.home.TaskList(alpha)) {
			t.Error("the team is still there")
		}
		w.end(t)
		w.checkEvents(t)
		w.checkTranscripts(t)
	})
}

// checkEvents looks at what front ends were told of a team of two that has ended.
func (w *teamWorld) checkEvents(t *testing.T) {
	t.Helper()
	within := 2
	if w.apart {
		within = 0 // each tells of itself, in its own process
	}
	if started, ended := bodies[event.AgentStarted](w.world), bodies[event.AgentEnded](w.world); len(started) != within || len(ended) != within {
		t.Errorf("%d agents started, %d ended", len(started), len(ended))
	}
	for i, used := range w.Usage(t.Context()) {
		if name := used.Agent.Name; i > 0 && (name != "ann" && name != "bob" || !used.Teammate) || used.Rounds == 0 || i > 2 {
			t.Errorf("usage %d: %+v", i, used)
		}
	}
	if n := len(w.Usage(t.Context())); n != 3 {
		t.Errorf("usage of %d agents", n)
	}
	changes := bodies[event.TeamChanged](w.world)
	if last := changes[len(changes)-1]; last.Team != alpha || len(last.Members) != 0 {
		t.Errorf("the last that was told of the team: %+v", last)
	}
}

// What a teammate has used counts also when its process was killed, and when another has
// gone on with its conversation.
func TestUsageOfAKilledTeammateCounts(t *testing.T) {
	w := newTeamWorld(t, inPanes)
	w.form(t, "ann")
	w.idles(t, "ann", 1)
	w.does(t, "ann", scripted.Use("Bash", fields{"command": "true"}))
	w.idles(t, "ann", 2)
	rounds := func() int {
		for _, used := range w.Usage(t.Context()) {
			if used.Agent.Name == "ann" {
				return used.Rounds
			}
		}
		return 0
	}
	if got := rounds(); got != 3 {
		t.Errorf("it has made %d requests, not 3", got)
	}
	p, _ := w.place(t, "ann")
	process, err := os.FindProcess(p.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.leaves(t, "ann")
	w.leads(t, spawning("ann", "You are another ann."))
	w.idles(t, "ann", 3)
	if got := rounds(); got != 4 {
		t.Errorf("both have made %d requests, not 4", got)
	}
}

// checkTranscripts looks at the conversations of a team of two: one each, in the
// layout, line by line.
func (w *teamWorld) checkTranscripts(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ann", "bob"} {
		found := w.transcripts(t, name)
		if len(found) != 1 {
			t.Errorf("%d transcripts of %s", len(found), name)
			continue
		}
		parent := any(nil)
		for i, line := range found[0] {
			if line["parentUuid"] != parent || line["isSidechain"] != !w.apart || line["agentName"] != name || line["teamName"] != alpha {
				t.Fatalf("%s, line %d: %v", name, i, line)
			}
			parent = line["uuid"]
		}
	}
	lines := readLines(t, w.home.Transcript(w.dir, w.Info().SessionID, ""))
	led := slices.ContainsFunc(lines, func(line map[string]any) bool { return line["teamName"] == alpha })
	if last := lines[len(lines)-1]; !led || last["isSidechain"] != false || last["sessionId"] != w.Info().SessionID {
		t.Errorf("the last line of the lead: %v", last)
	}
}

// A lead that ends asks its teammates to end; who does not answer is stopped when
// there is no more time.
func TestTheEndOfALeadIsThatOfItsTeam(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		w.give(t, "ann", order{On: `"type":"shutdown_request"`, Calls: []scripted.Call{approving(true, "")}})
		w.isWorking(t, "ann")
		w.give(t, "bob", order{Fault: "silent"})
		w.isWorking(t, "bob")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"ann", "bob"} {
			if _, runs := w.place(t, name); w.member(t, name) != nil || runs {
				t.Errorf("%s is still there", name)
			}
		}
		if panes := w.panes(t); slices.Contains(panes, "ann") || slices.Contains(panes, "bob") {
			t.Errorf("panes that are left: %v", panes)
		}
		approved := controls[protocol.ShutdownApproved](t, w, mailbox.LeadName)
		if len(approved) != 1 || approved[0].From != "ann" {
			t.Errorf("who has agreed: %+v", approved)
		}
	})
}

// summary is the attribute of a first message that has one.
func (b backend) summary(text string) string {
	if b.apart {
		return ""
	}
	return fmt.Sprintf(" summary=%q", text)
}

// approving answers a shutdown request.
func approving(approve bool, reason string) scripted.Call {
	return scripted.Use("SendMessage", fields{"type": "shutdown_response", "request_id": requestOf, "approve": approve, "content": reason})
}
