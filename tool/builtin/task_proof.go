package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// maxCheck is how long a check may be; a longer one belongs in a script.
const maxCheck = 4_000

// checkMetadata says what is wrong with metadata that a model gives; "" when
// nothing is.
func checkMetadata(metadata jsonx.Object) string {
	if metadata.Has(task.CheckedKey) {
		return "metadata.checked is written by the runtime when it has run a check. Leave it out."
	}
	if raw := metadata.Raw(task.CheckKey); raw == nil || string(raw) == "null" {
		return ""
	}
	var check string
	switch ok, err := metadata.Get(task.CheckKey, &check); {
	case !ok || err != nil, strings.TrimSpace(check) == "", strings.ContainsRune(check, 0):
		return "metadata.check must be a command for the shell, as a string; null removes it."
	case len(check) > maxCheck:
		return fmt.Sprintf("metadata.check has %d bytes, more than the %d allowed. Put it into a script and name the script.", len(check), maxCheck)
	}
	return ""
}

// dueCheck is the check that has to pass before the change is made; "" when there is
// none. A task that was completed without proof is proved by completing it again.
func (in taskUpdateInput) dueCheck(t task.Task) string {
	if !in.completes() || t.Status == task.Completed && t.IsProved() {
		return ""
	}
	return t.Check()
}

// checkDetail is the question about a check as one about a command.
func checkDetail(t task.Task, check string) json.RawMessage {
	return jsonx.MustMarshal(bashCall{check, checkTitle(t.ID, t.Subject), checkTime.Milliseconds()})
}

type bashCall struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Timeout     int64  `json:"timeout"`
}

// prove runs the check, and makes the change if it passes. Its result is kept with the
// task either way.
func (t *taskUpdate) prove(ctx context.Context, call tool.Call, before task.Task, check string, in taskUpdateInput) tool.Result {
	caller := tool.CallerFrom(ctx)
	run := t.check.run(ctx, call, checkTitle(before.ID, before.Subject), check)
	if run.unended != "" {
		return tool.Error(fmt.Sprintf("Task #%s stays %s: its check %s. Set the task completed again to repeat the check.\n\nCheck: %s",
			before.ID, before.Status, strings.TrimSuffix(run.unended, "."), check))
	}
	now, err := t.teams.Tasks.KeepEvidence(ctx, caller, before.ID, task.Evidence{
		Command: check, Passed: run.passed, ExitCode: run.code, Output: run.output, By: t.nameOf(caller), At: run.ended.UTC(),
	})
	switch {
	case err != nil:
		return t.refused(ctx, before.ID, fmt.Errorf("keep the result of the check of task #%s: %w", before.ID, err))
	case !run.passed:
		return t.unproven(caller, now, check, run)
	case now.Check() != check:
		return tool.Error(fmt.Sprintf("The check passed, but it is no longer the check of task #%s: somebody has changed it in the meantime. "+
			"Nothing was changed: call TaskUpdate again.", before.ID))
	}
	remark := "\n\nIts check passed: " + check
	if !now.IsProved() {
		remark += "\nThat does not prove the task, since the check was given by a teammate that works on it: it is shown as not proved until " + mailbox.LeadName + " completes it."
	}
	return t.update(ctx, caller, before.ID, in, remark)
}

// unproven is the result of a call whose check failed.
func (t *taskUpdate) unproven(caller tool.Caller, now task.Task, check string, run checkRun) tool.Result {
	wrong := "change metadata.check and say why"
	if seat, ok := t.teams.Seat(caller); ok && !seat.Lead {
		wrong = "or you are stuck, tell " + mailbox.LeadName + " with SendMessage"
	}
	mend := "Fix the cause and set the task completed again."
	if now.Status == task.Completed {
		mend = "It is not done: set it in_progress again, and have the cause fixed."
	}
	output := run.output
	if output == "" {
		output = "(no output)"
	}
	return tool.Error(fmt.Sprintf("Task #%s stays %s: its check failed, %s.\n\nCheck: %s\n%s\n\n"+
		"%s If the check itself is wrong, %s.", now.ID, now.Status, run.why, check, output, mend, wrong))
}

// nameOf is the caller as evidence names it.
func (t *taskUpdate) nameOf(caller tool.Caller) string {
	if seat, ok := t.teams.Seat(caller); ok {
		return seat.Name
	}
	return caller.AgentName
}

// evidenceText is the result of the last check, for TaskGet.
func evidenceText(e task.Evidence) string {
	when := e.At.UTC().Format(time.RFC3339)
	if e.By != "" {
		when += ", by " + e.By
	}
	if e.Passed {
		return "Check passed: " + when
	}
	return lines(fmt.Sprintf("Check failed: %s, exit code %d", when, e.ExitCode), e.Output)
}
