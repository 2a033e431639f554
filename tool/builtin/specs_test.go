package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/tool"
)

// What a tool is decides who is offered it and when it may run, so that each trait
// of each tool is a decision. A new tool gets a line here.
func TestTraits(t *testing.T) {
	want := map[string]string{
		"Agent":           "parallel delegates",
		"AskUserQuestion": "readOnly delegates",
		"Bash":            "writes",
		"Edit":            "writes",
		"EnterPlanMode":   "",
		"ExitPlanMode":    "",
		"Glob":            "parallel readOnly reads",
		"Grep":            "parallel readOnly reads",
		"Read":            "parallel readOnly reads",
		"SendMessage":     "delegates",
		"TaskCreate":      "delegates",
		"TaskGet":         "parallel readOnly delegates",
		"TaskList":        "parallel readOnly delegates",
		"TaskUpdate":      "delegates",
		"TeamCreate":      "delegates",
		"TeamDelete":      "delegates",
		"Wait":            "parallel readOnly delegates",
		"Write":           "writes",
	}
	got := make(map[string]string)
	for _, spec := range Specs() {
		got[spec.Name] = traits(spec)
		if spec.ReadOnly && spec.Writes {
			t.Errorf("%s changes nothing and writes", spec.Name)
		}
	}
	for _, made := range slices.Concat(
		[]tool.Tool{AgentTool(nil, nil, nil), AskUserQuestion(), WaitTool(nil, nil)},
		FileTools(nil, nil), PlanTools(nil), TaskTools(nil, nil, nil), TeamTools(nil, nil),
	) {
		if _, ok := got[made.Spec().Name]; !ok {
			t.Errorf("%s is not among the Specs", made.Spec().Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
}

func traits(s tool.Spec) string {
	var names []string
	for _, trait := range []struct {
		name string
		has  bool
	}{
		{"parallel", s.Parallel}, {"readOnly", s.ReadOnly}, {"reads", s.Reads}, {"writes", s.Writes},
		{"outward", s.Outward}, {"delegates", s.Delegates},
	} {
		if trait.has {
			names = append(names, trait.name)
		}
	}
	return strings.Join(names, " ")
}
