package filestore_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/jsonx"
)

func noAnswer(t *testing.T, what string, s *filestore.Store, id string) {
	t.Helper()
	if answer, ok, err := s.Desk().Left(t.Context(), deskAsk(id)); err != nil || ok {
		t.Errorf("%s: answer %+v, %v", what, answer, err)
	}
}

// Only what our runtime wrote with this key for this question is an answer, and
// what is none keeps no real one away.
func TestForgedAnswers(t *testing.T) {
	root, s, w := warned(t)
	check(t, inOrder(layAsk("q1"), layAsk("q2"))(t.Context(), s))
	otherRoot, other := quiet(t)
	check(t, inOrder(layAsk("q1"), leaveFor("q1"))(t.Context(), other))
	check(t, leaveFor("q2")(t.Context(), s))
	denied := root.AskAnswer("q1") + ".denied"
	check(t, s.Desk().Leave(t.Context(), "q1", ask.Answer{Allow: false, By: "person"}))
	check(t, os.Rename(root.AskAnswer("q1"), denied))

	forge := map[string]func(){
		"another key":      func() { copyFile(t, otherRoot.AskAnswer("q1"), root.AskAnswer("q1")) },
		"another question": func() { copyFile(t, root.AskAnswer("q2"), root.AskAnswer("q1")) },
		"changed":          func() { copyFile(t, denied, root.AskAnswer("q1")); edit(t, root.AskAnswer("q1"), "false", "true") },
		"spelled anew": func() {
			copyFile(t, denied, root.AskAnswer("q1"))
			edit(t, root.AskAnswer("q1"), `"allow":false`, `"allow": false`)
		},
		"no seal":   func() { write(t, root.AskAnswer("q1"), `{"content":{"allow":true},"seal":""}`) },
		"torn":      func() { write(t, root.AskAnswer("q1"), `{"content":{"allow":true},"se`) },
		"empty":     func() { write(t, root.AskAnswer("q1"), "") },
		"no answer": func() { write(t, root.AskAnswer("q1"), `[]`) },
	}
	for what, forge := range forge {
		forge()
		noAnswer(t, what, s, "q1")
		w.say(t, root.AskAnswer("q1"))
		check(t, s.Desk().Leave(t.Context(), "q1", ask.Answer{Message: what}))
		answer, ok, err := s.Desk().Left(t.Context(), deskAsk("q1"))
		if err != nil || !ok || answer.Message != what {
			t.Errorf("%s: then answered %+v, %v, %v", what, answer, ok, err)
		}
	}
	// The same question with another input.
	other1 := deskAsk("q1")
	other1.Digest = ask.DigestOf("Bash", []byte("rm"))
	if _, ok, err := s.Desk().Left(t.Context(), other1); err != nil || ok {
		t.Errorf("the answer counts for another input: %v", err)
	}
}

// What lies there and is not ours is not shown to anybody, and is not answered.
func TestForeignQuestions(t *testing.T) {
	root, s, w := warned(t)
	check(t, inOrder(layAsk("q1"), layAsk("q2"), layAsk("q3"))(t.Context(), s))
	otherRoot, other := quiet(t)
	check(t, layAsk("q5")(t.Context(), other))
	edit(t, root.OpenAsk("q2"), "May it?", "Harmless")
	copyFile(t, root.OpenAsk("q1"), root.OpenAsk("q4"))
	copyFile(t, otherRoot.OpenAsk("q5"), root.OpenAsk("q5"))
	foreign := string(jsonx.MustMarshal(deskAsk("q6")))
	write(t, root.OpenAsk("q6"), foreign)
	write(t, root.OpenAsk("q7"), "")
	copyFile(t, root.OpenAsk("q1"), filepath.Join(root.AsksDir(), "Q1.json"))
	check(t, os.Mkdir(root.OpenAsk("q8"), 0o700))
	write(t, filepath.Join(root.AsksDir(), "readme.txt"), "hello")
	asks, err := s.Desk().Open(t.Context())
	check(t, err)
	if len(asks) != 2 || asks[0].ID != "q1" || asks[1].ID != "q3" {
		t.Errorf("open questions %+v", asks)
	}
	for _, id := range []string{"q2", "q4", "q5", "q6", "q7", "q8"} {
		w.say(t, root.OpenAsk(id))
		if err := s.Desk().Leave(t.Context(), id, ask.Answer{Allow: true}); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("answer to %s: %v", id, err)
		}
	}
	w.say(t, "Q1.json")
	// Our own question takes the place of what is not ours.
	check(t, inOrder(layAsk("q2"), layAsk("q7"), leaveFor("q2"))(t.Context(), s))
}

// Before there is a key, a seal that was made without one is none.
func TestNoKeyVouchesForNothing(t *testing.T) {
	root, s, _ := warned(t)
	question := string(jsonx.MustMarshal(deskAsk("q1")))
	write(t, root.OpenAsk("q1"), fmt.Sprintf(`{"content":%s,"seal":%q}`, question, keyless("question", question)))
	answer := `{"allow":true,"by":"person"}`
	write(t, root.AskAnswer("q1"), fmt.Sprintf(`{"content":%s,"seal":%q}`, answer, keyless("answer", "q1", deskAsk("q1").Digest, answer)))
	if asks, err := s.Desk().Open(t.Context()); err != nil || len(asks) > 0 {
		t.Errorf("open questions %v, %v", asks, err)
	}
	noAnswer(t, "without a key", s, "q1")
	m := numbered(1)
	write(t, root.Seals("t", "w1"), "\n"+keyless("seal", "t", "w1.seals", m.From, m.Timestamp, m.Text, "about")+"\n")
	sealedWith(t, s, 1, false)
	// With a key it would be one: the forgery is a good one.
	write(t, root.Key(), plainKey)
	key, err := hex.DecodeString(plainKey)
	check(t, err)
	write(t, root.Seals("t", "w1"), "\n"+macWith(key, "seal", "t", "w1.seals", m.From, m.Timestamp, m.Text, "about")+"\n")
	write(t, root.AskAnswer("q1"), fmt.Sprintf(`{"content":%s,"seal":%q}`, answer, macWith(key, "answer", "q1", deskAsk("q1").Digest, answer)))
	sealedWith(t, s, 1, true)
	if _, ok, err := s.Desk().Left(t.Context(), deskAsk("q1")); err != nil || !ok {
		t.Errorf("sealed by hand with the key: %v, %v", ok, err)
	}
}

func keyless(parts ...string) string { return macWith(nil, parts...) }

// macWith is the format of our seals.
func macWith(key []byte, parts ...string) string {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestAskIDsStayInside(t *testing.T) {
	root, s := quiet(t)
	for _, id := range []string{"", "../x", "a/b", "..", ".", "x\x00", "a b", "q1.answer", "q1.json", strings.Repeat("x", 300)} {
		if err := s.Desk().Lay(t.Context(), deskAsk(id)); err == nil {
			t.Errorf("laid %q", id)
		}
		if err := s.Desk().Leave(t.Context(), id, ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
			t.Errorf("answered %q: %v", id, err)
		}
		if err := s.Desk().Clear(t.Context(), id); err == nil {
			t.Errorf("cleared %q", id)
		}
		if _, _, err := s.Desk().Left(t.Context(), deskAsk(id)); err == nil {
			t.Errorf("looked for the answer to %q", id)
		}
	}
	if entries, err := os.ReadDir(string(root)); err != nil || len(entries) > 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
}

// Who waits in this process knows of an answer when it is left: it waits for no
// poll.
func TestAnswerSignalsAtOnce(t *testing.T) {
	root, _ := quiet(t)
	s := open(t, root, filestore.WithPoll(time.Hour))
	signal, stop := s.Desk().Watch()
	defer stop()
	check(t, layAsk("q1")(t.Context(), s))
	select {
	case <-signal:
	default:
	}
	check(t, leaveFor("q1")(t.Context(), s))
	select {
	case <-signal:
	default:
		t.Error("no signal")
	}
}
