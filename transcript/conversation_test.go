package transcript

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func use(id string) Block {
	return Block{Type: ToolUse, ID: id, Name: "Read", Input: json.RawMessage(`{}`)}
}

func result(id, text string) Block { return Block{Type: ToolResult, ToolUseID: id, Text: text} }

func reply(id string, blocks ...Block) Entry {
	return Entry{Kind: KindAssistant, Message: Message{ID: id, Role: Assistant, Content: blocks}}
}

func said(blocks ...Block) Entry {
	return Entry{Kind: KindUser, Message: Message{Role: User, Content: blocks}}
}

// shape spells a conversation in one line per message.
func shape(messages []Message) []string {
	var lines []string
	for _, m := range messages {
		line := string(m.Role) + ":"
		for _, b := range m.Content {
			switch b.Type {
			case ToolUse:
				line += " use " + b.ID
			case ToolResult:
				line += " result " + b.ToolUseID
				if b.Text == LostResult {
					line += " lost"
				}
			default:
				line += " " + b.Text
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestConversation(t *testing.T) {
	tests := map[string]struct {
		entries []Entry
		want    []string
	}{
		"blocks of one reply": {
			[]Entry{said(TextBlock("hi")), reply("1", TextBlock("a")), reply("1", use("x")), said(result("x", "r")), reply("2", TextBlock("b"))},
			[]string{"user: hi", "assistant: a use x", "user: result x", "assistant: b"},
		},
		"parallel calls, results in any order, text after them": {
			[]Entry{said(TextBlock("hi")), reply("1", use("x"), use("y")), said(TextBlock("wait")), said(result("y", "r")), said(result("x", "r"))},
			[]string{"user: hi", "assistant: use x use y", "user: result x result y wait"},
		},
		"a killed call": {
			[]Entry{said(TextBlock("hi")), reply("1", use("x"), use("y")), said(result("y", "r"))},
			[]string{"user: hi", "assistant: use x use y", "user: result x lost result y"},
		},
		"a late result": {
			[]Entry{said(TextBlock("hi")), reply("1", use("x")), said(TextBlock("go on")), reply("2", TextBlock("ok")), said(result("x", "r"))},
			[]string{"user: hi", "assistant: use x", "user: result x lost go on", "assistant: ok"},
		},
		"no beginning": {
			[]Entry{reply("1", TextBlock("a"))},
			[]string{"user: " + LostBeginning, "assistant: a"},
		},
		"nothing between two replies": {
			[]Entry{said(TextBlock("hi")), reply("1", TextBlock("a")), said(result("z", "r")), reply("2", TextBlock("b")), said(TextBlock(""))},
			[]string{"user: hi", "assistant: a b"},
		},
		"an id used twice": {
			[]Entry{said(TextBlock("hi")), reply("1", use("x")), said(result("x", "r")), reply("2", use("x"), TextBlock("b"))},
			[]string{"user: hi", "assistant: use x", "user: result x", "assistant: b"},
		},
		"nothing": {nil, nil},
	}
	for name, test := range tests {
		messages := Conversation(test.entries)
		if diff := cmp.Diff(test.want, shape(messages)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := Check(messages); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLineThatStandsTwice(t *testing.T) {
	first := said(TextBlock("hi"))
	first.UUID = "u1"
	if diff := cmp.Diff([]string{"user: hi"}, shape(Conversation([]Entry{first, first}))); diff != "" {
		t.Error(diff)
	}
}

func TestDangling(t *testing.T) {
	entries := []Entry{reply("1", use("x"), use("y"), use("z")), said(result("y", "r")), reply("2", use("x"))}
	var ids []string
	for _, b := range Dangling(entries) {
		ids = append(ids, b.ID)
	}
	if diff := cmp.Diff([]string{"x", "z"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestCheckFindsWhatModelsRefuse(t *testing.T) {
	user, assistant := UserText("hi"), Message{Role: Assistant, Content: []Block{TextBlock("a")}}
	calls := Message{Role: Assistant, Content: []Block{use("x")}}
	bad := map[string][]Message{
		"assistant first":   {assistant},
		"twice user":        {user, user},
		"empty":             {user, {Role: Assistant}},
		"no result":         {user, calls, user},
		"no answer":         {user, calls},
		"unknown result":    {user, assistant, {Role: User, Content: []Block{result("x", "")}}},
		"result after text": {user, calls, {Role: User, Content: []Block{TextBlock("t"), result("x", "")}}},
		"id twice":          {user, calls, {Role: User, Content: []Block{result("x", "")}}, calls, {Role: User, Content: []Block{result("x", "")}}},
	}
	for name, messages := range bad {
		if Check(messages) == nil {
			t.Errorf("%s: not found", name)
		}
	}
	if err := Check([]Message{user, calls, {Role: User, Content: []Block{result("x", ""), TextBlock("t")}}, assistant}); err != nil {
		t.Error(err)
	}
}

// Whatever entries come in whatever order, the conversation can be sent.
func TestAnyEntriesCanBeSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]string{"", "a", "b", "c"})
		block := rapid.Custom(func(t *rapid.T) Block {
			switch rapid.IntRange(0, 5).Draw(t, "type") {
			case 0:
				return use(ids.Draw(t, "use"))
			case 1:
				return result(ids.Draw(t, "result"), "r")
			case 2:
				return TextBlock(rapid.SampledFrom([]string{"", "text"}).Draw(t, "text"))
			case 3:
				return Block{Type: Thinking, Text: "t"}
			case 4:
				return Block{Type: "image", Raw: json.RawMessage(`{"type":"image"}`)}
			}
			return Block{}
		})
		entry := rapid.Custom(func(t *rapid.T) Entry {
			kind := rapid.SampledFrom([]Kind{KindUser, KindAssistant, "system"}).Draw(t, "kind")
			return Entry{UUID: ids.Draw(t, "uuid"), Kind: kind,
				Message: Message{ID: ids.Draw(t, "message"), Content: rapid.SliceOfN(block, 0, 4).Draw(t, "blocks")}}
		})
		entries := rapid.SliceOfN(entry, 0, 12).Draw(t, "entries")
		if err := Check(Conversation(entries)); err != nil {
			t.Fatalf("%v: %v", err, shape(Conversation(entries)))
		}
	})
}
