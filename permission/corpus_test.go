package permission

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/cadre-dev/cadre/tool"
)

// corpusLine is one line of testdata/corpus.jsonl: advisories and tricks that
// were used against other engines (facts: permission-corpus.json).
type corpusLine struct {
	ID       string
	Allow    []string
	Deny     []string
	DenyRead []string
	Cmd      string
	Want     Behavior
}

func readCorpus(t testing.TB) []corpusLine {
	t.Helper()
	data, err := os.ReadFile("testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []corpusLine
	for _, text := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var line corpusLine
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

func (l corpusLine) policy() Policy {
	p := Policy{Mode: Default, Folders: []string{"/srv/repo"}, Home: "/home/u", StateRoots: []string{"/home/u/.cadre"}}
	add := func(rules []SourcedRule, tool string, contents []string) []SourcedRule {
		for _, content := range contents {
			rules = append(rules, SourcedRule{Rule: Rule{tool, content}, Source: "corpus"})
		}
		return rules
	}
	p.Allow = add(nil, "Bash", l.Allow)
	p.Deny = add(add(nil, "Bash", l.Deny), "Read", l.DenyRead)
	return p
}

var strictness = map[Behavior]int{Allow: 0, Ask: 1, Deny: 2}

func TestCorpusIsNeverDecidedMorePermissively(t *testing.T) {
	lines := readCorpus(t)
	if len(lines) < 99 {
		t.Fatalf("the corpus has %d lines", len(lines))
	}
	allowed := 0
	for _, l := range lines {
		got := Decide(l.policy(), Call{Spec: tool.Spec{Name: "Bash"}, Access: tool.Access{Command: l.Cmd}})
		if strictness[got.Behavior] < strictness[l.Want] {
			t.Errorf("%s %q: %s, want %s (%s)", l.ID, l.Cmd, got.Behavior, l.Want, got.Reason)
		}
		if got.Behavior == Deny && l.Want != Deny {
			t.Errorf("%s %q: denied though no rule wants it: %s", l.ID, l.Cmd, got.Reason)
		}
		if l.Want == Deny && got.Rule == "" {
			t.Errorf("%s %q: denied without a rule: %s", l.ID, l.Cmd, got.Reason)
		}
		if got.Behavior == Allow {
			allowed++
		}
	}
	if allowed == 0 {
		t.Error("nothing is allowed: the rules of the corpus do not arrive")
	}
}
