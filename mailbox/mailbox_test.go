package mailbox

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIdentify(t *testing.T) {
	inbox := []Message{
		{From: "a", Text: "x", Timestamp: "1"},
		{From: "a", Text: "x", Timestamp: "1", Read: true, Color: "blue"},
		{From: "ax", Text: "", Timestamp: "1"},
		{From: "a", Text: "x1", Timestamp: ""},
	}
	Identify(inbox)
	seen := make(map[ID]bool)
	for _, m := range inbox {
		seen[m.ID] = true
	}
	if len(seen) != len(inbox) {
		t.Errorf("ids %v are not all different", seen)
	}
	again := append([]Message{}, inbox...)
	again[1].Read = false
	Identify(again)
	for i := range inbox {
		if again[i].ID != inbox[i].ID {
			t.Errorf("message %d has another id after it was marked", i)
		}
	}
}

// An id does not depend on what comes later, nor on how the inbox was read.
func TestIdentitiesOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "x", "y"})
		inbox := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Message {
			return Message{From: text.Draw(t, "from"), Text: text.Draw(t, "text"), Timestamp: text.Draw(t, "time")}
		})).Draw(t, "inbox")
		whole := append([]Message{}, inbox...)
		Identify(whole)
		var ids Identities
		seen := make(map[ID]bool)
		for i, m := range inbox {
			id := ids.Next(m)
			if id != whole[i].ID || seen[id] {
				t.Fatalf("message %d: %s, %s", i, id, whole[i].ID)
			}
			seen[id] = true
		}
	})
}
