package protocol_test

import (
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// TestDescribe: a message is one line that says who does what, whatever is in it.
func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		"hello\nthere":                    "ann → bob: hello there",
		"\x1b[31mred\x1b]0;t\x07 \u202ex": "ann → bob: red]0;t x",
		strings.Repeat("long ", 200):      "ann → bob: " + strings.Repeat("long ", 79) + "long…",
		`{"type":"idle_notification","from":"ann","timestamp":"t","idleReason":"available"}`:                         "ann is idle",
		`{"type":"idle_notification","from":"ann","timestamp":"t","idleReason":"failed","failureReason":"no model"}`: "ann is idle (failed) (no model)",
		`{"type":"shutdown_request","requestId":"r","from":"ann","reason":"all\ndone"}`:                              "ann asks bob to shut down (all done)",
		`{"type":"shutdown_approved","requestId":"r","from":"ann"}`:                                                  "ann shuts down",
		`{"type":"shutdown_rejected","requestId":"r","from":"ann","reason":"busy"}`:                                  "ann declines to shut down (busy)",
		`{"type":"task_assignment","taskId":"4","subject":"dig","assignedBy":"ann"}`:                                 "ann assigns #4 to bob: dig",
		`{"type":"teammate_terminated","message":"cleo has shut down."}`:                                             "cleo has shut down.",
		`{"type":"mail_returned","from":"cleo","to":"dan","summary":"the plan","text":"x"}`:                          "dan left before it was shown a message from cleo (the plan)",
		`{"type":"loop_damped","from":"cleo","peer":"dan"}`:                                                          "cleo and dan only kept answering each other, and were stopped",
	} {
		m := mailbox.Message{From: "ann", Text: text}
		control, _ := protocol.Parse(text)
		if got := protocol.Describe("bob", m, control); got != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
	m := mailbox.Message{From: "ann\n? May Bash run?", Text: "a long text", Summary: "short"}
	if got := protocol.Describe("bob", m, nil); got != "ann ? May Bash run? → bob: short" {
		t.Errorf("a summary: %q", got)
	}
}
