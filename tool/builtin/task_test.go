package builtin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/tool"
)

// step is a call and what it gives (facts: claude-code §3.2).
type step struct {
	by    tool.Caller
	tool  string
	input string
	text  string
	twin  string // "" when it does not matter
}

func (o *office) play(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		r := o.call(t, s.by, s.tool, s.input)
		if diff := cmp.Diff(s.text, resultText(r)); diff != "" {
			t.Errorf("%s(%s) (-want +got):\n%s", s.tool, s.input, diff)
		}
		if diff := cmp.Diff(s.twin, string(r.Structured)); s.twin != "" && diff != "" {
			t.Errorf("twin of %s(%s) (-want +got):\n%s", s.tool, s.input, diff)
		}
		if r.IsError {
			t.Errorf("%s(%s) failed", s.tool, s.input)
		}
	}
}

func TestTaskTools(t *testing.T) {
	o := officeWith(t, "w1")
	o.play(t, []step{
		{chief, "TaskList", `{}`, "No tasks found", `{"tasks":[]}`},
		{chief, "TaskCreate", `{"subject":"Write parser","description":"Write the parser module"}`,
			"Task #1 created successfully: Write parser", `{"task":{"id":"1","subject":"Write parser"}}`},
		{chief, "TaskCreate", `{"subject":"Test\nparser","description":"Test it","activeForm":"Testing parser","metadata":{"k":"v","n":1}}`,
			"Task #2 created successfully: Test\nparser", ``},
		{chief, "TaskCreate", `{"subject":"Ship","description":"Ship it"}`, "Task #3 created successfully: Ship", ``},
		{chief, "TaskUpdate", `{"taskId":"#3","addBlockedBy":["1","#2"]}`,
			"Updated task #3 blockedBy", `{"success":true,"taskId":"3","updatedFields":["blockedBy"]}`},
		{chief, "TaskGet", `{"taskId":"3"}`, "Task #3: Ship\nStatus: pending\nDescription: Ship it\nBlocked by: #1, #2",
			`{"task":{"id":"3","subject":"Ship","description":"Ship it","status":"pending","blocks":[],"blockedBy":["1","2"]}}`},
		{chief, "TaskGet", `{"taskId":"#1"}`, "Task #1: Write parser\nStatus: pending\nDescription: Write the parser module\nBlocks: #3", ``},
		{chief, "TaskGet", `{"taskId":"99"}`, "Task not found", `{"task":null}`},
		{chief, "TaskUpdate", `{"taskId":"99","status":"completed"}`,
			"Task not found", `{"success":false,"taskId":"99","updatedFields":[],"error":"Task not found"}`},
		{chief, "TaskUpdate", `{"taskId":"1","subject":"Write parser"}`, "Updated task #1 ", `{"success":true,"taskId":"1","updatedFields":[]}`},
		{chief, "TaskUpdate", `{"taskId":"2","subject":"Test parser v2","description":"d2","activeForm":"x","owner":"w1","metadata":{"k":null},"status":"in_progress"}`,
			"Updated task #2 subject, description, activeForm, owner, metadata, status",
			`{"success":true,"taskId":"2","updatedFields":["subject","description","activeForm","owner","metadata","status"],"statusChange":{"from":"pending","to":"in_progress"}}`},
		{chief, "TaskUpdate", `{"taskId":"1","status":"completed"}`,
			"Updated task #1 status", `{"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"pending","to":"completed"}}`},
		{chief, "TaskList", `{}`,
			"#1 [completed] Write parser\n#2 [in_progress] Test parser v2 (w1)\n#3 [pending] Ship [blocked by #2]",
			`{"tasks":[{"id":"1","subject":"Write parser","status":"completed","blockedBy":[]},{"id":"2","subject":"Test parser v2","status":"in_progress","owner":"w1","blockedBy":[]},{"id":"3","subject":"Ship","status":"pending","blockedBy":["2"]}]}`},
		{chief, "TaskUpdate", `{"taskId":"3","status":"deleted"}`,
			"Updated task #3 deleted", `{"success":true,"taskId":"3","updatedFields":["deleted"],"statusChange":{"from":"pending","to":"deleted"}}`},
		{chief, "TaskCreate", `{"subject":"After delete","description":"x"}`, "Task #4 created successfully: After delete", ``},
	})
}

func TestTeammateGoesOnAfterCompleting(t *testing.T) {
	o := officeWith(t, "w1")
	o.call(t, chief, "TaskCreate", `{"subject":"a","description":"b"}`)
	if got := resultText(o.call(t, worker("w1"), "TaskUpdate", `{"taskId":"1","status":"in_progress"}`)); got != "Updated task #1 owner, status" {
		t.Errorf("begin: %q", got)
	}
	got := resultText(o.call(t, worker("w1"), "TaskUpdate", `{"taskId":"1","status":"completed"}`))
	if rest, ok := strings.CutPrefix(got, "Updated task #1 status\n\n"); !ok || !strings.Contains(rest, "TaskList") || strings.Contains(rest, "\n") {
		t.Errorf("complete: %q", got)
	}
}

func TestTaskUpdateRefuses(t *testing.T) {
	o := officeWith(t, "w1", "w2")
	for _, subject := range []string{"a", "b"} {
		o.call(t, chief, "TaskCreate", `{"subject":"`+subject+`","description":"x"}`)
	}
	o.call(t, chief, "TaskUpdate", `{"taskId":"2","addBlockedBy":["1"]}`)
	o.call(t, worker("w1"), "TaskUpdate", `{"taskId":"1","status":"in_progress"}`)
	for _, tt := range []struct {
		by    tool.Caller
		input string
		says  []string
	}{
		{chief, `{"taskId":"1","addBlockedBy":["2"]}`, []string{"#1 waits for #2 waits for #1", "Nothing was changed"}},
		{chief, `{"taskId":"1","addBlocks":["1"]}`, []string{"cannot depend on itself"}},
		{chief, `{"taskId":"1","addBlockedBy":["9"]}`, []string{"#9", "TaskList"}},
		{chief, `{"taskId":"1","owner":"w3"}`, []string{`There is no "w3"`, "Did you mean w1 or w2?", "Members: team-lead, w1, w2."}},
		{worker("w2"), `{"taskId":"1","status":"in_progress"}`, []string{"belongs to w1", "TaskList"}},
		{worker("w2"), `{"taskId":"2","status":"in_progress"}`, []string{"waits for #1", "TaskList"}},
		{chief, `{"taskId":"1","description":"` + strings.Repeat("x", 200_000) + `"}`, []string{"description has 200000 bytes"}},
	} {
		r := o.call(t, tt.by, "TaskUpdate", tt.input)
		if !r.IsError {
			t.Errorf("TaskUpdate(%.60s) succeeded: %s", tt.input, resultText(r))
		}
		for _, want := range tt.says {
			if !strings.Contains(resultText(r), want) {
				t.Errorf("TaskUpdate(%.60s) does not say %q: %s", tt.input, want, resultText(r))
			}
		}
	}
}

func TestTaskUpdateSaysWhenTheOwnerWasNotTold(t *testing.T) {
	o := officeWith(t, "w1")
	o.call(t, chief, "TaskCreate", `{"subject":"a","description":"x"}`)
	o.posting.broken = "w1"
	r := o.call(t, chief, "TaskUpdate", `{"taskId":"1","owner":"w1"}`)
	if got := resultText(r); !strings.HasPrefix(got, "Updated task #1 owner\n\n") || !strings.Contains(got, "disk full") {
		t.Errorf("result %q", got)
	}
}

func TestTasksWithoutATeam(t *testing.T) {
	o := newOffice(t)
	o.play(t, []step{
		{chief, "TaskCreate", `{"subject":"mine","description":"x"}`, "Task #1 created successfully: mine", ``},
		{chief, "TaskUpdate", `{"taskId":"1","owner":"anybody","status":"in_progress"}`, "Updated task #1 owner, status", ``},
		{tool.Caller{SessionID: "session-2"}, "TaskList", `{}`, "No tasks found", ``},
		{chief, "TaskList", `{}`, "#1 [in_progress] mine (anybody)", ``},
	})
}
