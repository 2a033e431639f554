package layout

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSidePaths(t *testing.T) {
	root := Root("/r")
	paths := map[string]string{
		root.Seals("My Team", "Bad Name"):  "/r/teams/my-team/cadre/seals/Bad-Name.seals",
		root.Seals("", "w1"):               "/r/teams/default/cadre/seals/w1.seals",
		root.Record("t", "agent", "w1"):    "/r/teams/t/cadre/agent/w1.json",
		root.Presence("t", "W1"):           "/r/teams/t/cadre/present/%571.lease",
		root.Key():                         "/r/cadre/key",
		root.OpenAsk("ask-12"):             "/r/cadre/asks/ask-12.json",
		root.AskAnswer("ask-12"):           "/r/cadre/asks/ask-12.answer.json",
		filepath.Dir(root.Key()):           root.OwnDir(),
		root.Accepted("/a-b"):              "/r/cadre/accepted/590bb8f61576893a9f9c045cda77ddf64275700e1ad23227709e733047f1b834.json",
		filepath.Dir(root.OpenAsk("../x")): root.AsksDir(),
	}
	for got, want := range paths {
		if got != filepath.FromSlash(want) {
			t.Errorf("path %q, want %q", got, want)
		}
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"w1": "w1", "a_b-c": "a_b-c", "W1": "%571", "../x": "%2e%2e%2fx", ".": "%2e", "a b": "a%20b", "é": "%c3%a9",
		"x.answer": "x%2eanswer", "50%": "50%25", "a~b": "a%7eb", "con": "%63on", "com1": "%63om1", "coma": "coma", "": "",
	} {
		if got := FileName(name); got != want {
			t.Errorf("file of %q is %q, want %q", name, got, want)
		}
		if got := NameOf(want); got != name {
			t.Errorf("name of %q is %q, want %q", want, got, name)
		}
	}
	long := strings.Repeat("界", 100)
	if got := FileName(long); len(got) != maxFileName || got == FileName(long+"界") || !strings.HasPrefix(NameOf(got), "界界") {
		t.Errorf("file of a long name is %q", got)
	}
	if NameOf("%zz%4") != "%zz%4" {
		t.Errorf("name of no spelling of ours is %q", NameOf("%zz%4"))
	}
}

// No two names share a file, whatever the file system makes of case.
func TestFileNamesAreTheirOwn(t *testing.T) {
	name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aAbB%~./-]{0,4}`), rapid.StringMatching(`[A-Za]{50,120}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		if strings.EqualFold(FileName(a), FileName(b)) != (a == b) {
			t.Fatalf("files %q and %q", FileName(a), FileName(b))
		}
		root := Root(filepath.FromSlash("/r"))
		for path, folder := range map[string]string{
			root.Record("t", "agent", a): root.TeamSide("t", "agent"),
			root.Presence("t", a):        root.TeamSide("t", "present"),
			root.Seals("t", a):           root.TeamSide("t", "seals"),
			root.OpenAsk(a):              root.AsksDir(),
			root.AskAnswer(a):            root.AsksDir(),
		} {
			if filepath.Dir(path) != folder {
				t.Fatalf("%q leads to %q, not in %q", a, path, folder)
			}
		}
	})
}
