package filestore_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// A member that says the same is written as it stands: a field that the
// comparison forgot would never be written again.
func TestEveryFieldOfAMemberIsWritten(t *testing.T) {
	var extra jsonx.Object
	extra.Set("mode", "plan")
	others := map[reflect.Type]any{
		reflect.TypeFor[string](): "other", reflect.TypeFor[bool](): true, reflect.TypeFor[int64](): int64(7),
		reflect.TypeFor[[]string](): []string{"other"}, reflect.TypeFor[*bool](): ptr(true), reflect.TypeFor[jsonx.Object](): extra,
	}
	for field := range reflect.TypeFor[roster.Member]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			a, b := pair(t)
			check(t, a.Teams().Create(t.Context(), alphaTeam()))
			_, err := a.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error {
				c.Members = append(c.Members, alphaMate("w1", "haiku", "p", "blue", 1))
				return nil
			})
			check(t, err)
			_, err = a.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error {
				reflect.ValueOf(&c.Members[1]).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(others[field.Type]))
				return nil
			})
			check(t, err)
			c, err := b.Teams().Load(t.Context(), "alpha-team")
			check(t, err)
			got := reflect.ValueOf(c.Members[1]).FieldByIndex(field.Index).Interface()
			if !reflect.DeepEqual(got, others[field.Type]) {
				t.Errorf("kept %v, want %v", got, others[field.Type])
			}
		})
	}
}

func TestOtherMembersStayAsTheyAreSpelled(t *testing.T) {
	root, s := quiet(t)
	path := root.TeamConfig("t")
	foreign := `{
      "zeta": 1.50,
      "name": "\u0041lpha",
      "joinedAt": 1.5e3, "model": {"id": "m"},
      "agentId": "Alpha@t", "empty": {}, "list": [1, 2]
    }`
	write(t, path, `{"x-first":1,"members":[`+strings.NewReplacer("\n", "", "      ", "").Replace(foreign)+
		`,{"agentId":"b@t","name":"b"},{"agentId":"c@t","name":"c"}],"name":"t","x-last":[]}`)
	_, err := s.Teams().Update(t.Context(), "t", func(c *roster.Roster) error {
		c.Members = append(c.Members[:1], c.Members[2:]...) // without b
		c.Find("c").Model = "haiku"
		return nil
	})
	check(t, err)
	same(t, path, `{
  "x-first": 1,
  "members": [
    {
      "zeta": 1.50,
      "name": "\u0041lpha",
      "joinedAt": 1.5e3,
      "model": {
        "id": "m"
      },
      "agentId": "Alpha@t",
      "empty": {},
      "list": [
        1,
        2
      ]
    },
    {
      "agentId": "c@t",
      "name": "c",
      "agentType": "",
      "model": "haiku",
      "joinedAt": 0,
      "tmuxPaneId": "",
      "cwd": "",
      "subscriptions": []
    }
  ],
  "name": "t",
  "x-last": [],
  "createdAt": 0,
  "leadAgentId": "",
  "leadSessionId": ""
}`)
}

// Joining a team of a thousand must not cost a thousand times what joining one
// costs.
func TestALongRosterIsNotDecodedForEachChange(t *testing.T) {
	_, s := quiet(t)
	long := alphaTeam()
	for i := range 1000 {
		long.Members = append(long.Members, alphaMate(fmt.Sprint("w", i), "haiku", "p", "blue", 1))
	}
	check(t, s.Teams().Create(t.Context(), long))
	model := 0
	got := testing.AllocsPerRun(10, func() {
		_, err := s.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error {
			model++
			c.Members[500].Model = fmt.Sprint("m", model)
			return nil
		})
		check(t, err)
		_, err = s.Teams().Load(t.Context(), "alpha-team")
		check(t, err)
	})
	if got > float64(len(long.Members)) {
		t.Errorf("a change of one of %d members made %v allocations", len(long.Members), got)
	}
}

// A program that writes in place, right after us and within one step of the file
// system's clock, changes neither size nor time.
func TestARosterThatLooksUnchangedIsReadAgain(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	check(t, s.Teams().Create(t.Context(), alphaTeam()))
	path := root.TeamConfig("alpha-team")
	for _, name := range []string{"after our write", "after our reading"} {
		before, err := s.Teams().Load(t.Context(), "alpha-team")
		check(t, err)
		info, err := os.Stat(path)
		check(t, err)
		data, err := os.ReadFile(path)
		check(t, err)
		lead := before.Members[0].Model
		other := strings.Repeat("x", len(lead)-1) + string('0'+rune(len(name)%10))
		check(t, os.WriteFile(path, []byte(strings.Replace(string(data), lead, other, 1)), 0o600))
		check(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		after, err := s.Teams().Load(t.Context(), "alpha-team")
		check(t, err)
		if after.Members[0].Model != other {
			t.Errorf("%s: model %q, want %q", name, after.Members[0].Model, other)
		}
	}
}
