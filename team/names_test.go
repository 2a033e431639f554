package team_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/roster"
)

func TestCleanName(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"w1", "w1"},
		{"Bad Name@x!", "Bad Name-x!"},
		{" tester ", "tester"},
		{"prüfer", "prüfer"},
		{"試験", "試験"},
		{"lead-dev", "lead-dev"},
		{"cadre-docs", "cadre-docs"},
		{"verifier", "verifier"},
		{strings.Repeat("n", 64), strings.Repeat("n", 64)},
	} {
		got, err := roster.CleanName(tt.raw)
		if err != nil || got != tt.want {
			t.Errorf("CleanName(%q) = %q, %v; want %q", tt.raw, got, err, tt.want)
		}
	}
}

func TestCleanNameRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "  ", ".", "..", "../x", "a/b", `a\b`, "*", "@", "--", "a\nb", "a\x00b", "a\x1b[31m", "a\u202eb", "a\u200bb", "a\ufe0fb",
		"\xff", strings.Repeat("n", 65), "con", "NUL", "com1",
		"team-lead", "Team-Lead", "team-lead ", "TEAM_LEAD", "team lead", "teamlead", "tеam-lead", "team-Iead"[:5] + "lead",
		"tеаm-lеаd", "ｔｅａｍ-ｌｅａｄ", "team-1ead", "team‐lead", "τeam-lead", "System", "User", "uѕer", "task-list", "task_list",
		"cadre", "Cadrе", "person", "Person", "team-lead (unverified)", "ann (UNVERIFIED)",
	} {
		name, err := roster.CleanName(raw)
		if _, ok := errors.AsType[*roster.NameError](err); !ok {
			t.Errorf("CleanName(%q) = %q, %v; want a NameError", raw, name, err)
		}
	}
}

func TestNearNames(t *testing.T) {
	known := []string{"team-lead", "parser", "tester", "tester-2", "ui"}
	for _, tt := range []struct {
		asked string
		want  []string
	}{
		{"tester", []string{"tester", "tester-2"}},
		{"testre", []string{"tester"}},
		{"Parser", []string{"parser"}},
		{"pars", []string{"parser"}},
		{"team-laed", []string{"team-lead"}},
		{"iu", []string{"ui"}},
		{"nobody", nil},
		{"", nil},
		{strings.Repeat("x", 1<<20), nil},
	} {
		if diff := cmp.Diff(tt.want, near.Names(tt.asked, known)); diff != "" {
			t.Errorf("NearNames(%.20q) (-want +got):\n%s", tt.asked, diff)
		}
	}
}

// Names that would share a mail file are never given twice, even where upper and
// lower case are one.
func TestSpawnGivesFreeNames(t *testing.T) {
	w := alphaTeam(t)
	var got []string
	for _, name := range []string{"w1", "w1", "W1", "a.b", "a-b", "試験", "日本", "w1@x"} {
		got = append(got, w.spawn(t, name).Name)
	}
	want := []string{"w1", "w1-2", "W1-3", "a.b", "a-b-2", "試験", "日本-2", "w1-x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestColorsWrapAndNeverGoBack(t *testing.T) {
	w := alphaTeam(t)
	var got []string
	for range 9 {
		m := w.spawn(t, "w")
		got = append(got, m.Color)
		if err := w.Gone(t.Context(), w.seat(t, m.Name).Address(), "the test ends it"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red", "blue"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("colours (-want +got):\n%s", diff)
	}
}
