package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// TestMain lets the test binary be the launcher that the harness re-executes.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == launchVerb {
		if err := launch(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testBench(t *testing.T) *bench {
	t.Helper()
	m, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{dir: t.TempDir(), model: m}
	b.limit = filepath.Join(b.dir, "limit")
	if err := build(t.Context(), modulePath+"/bench/limit", b.limit); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheLimitDoesWhatItIsTold(t *testing.T) {
	b := testBench(t)
	like := run{work: work{turns: 2}, arrivals: []arrival{{size: 1000}, {size: 20_000}, {size: 30_000}}, lines: []int{100, 200, 300}}
	got, err := b.runLimit(t.Context(), like)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, a := range got.arrivals {
		sizes = append(sizes, a.size)
	}
	if diff := cmp.Diff([]int{1000, 20_000, 30_000}, sizes); diff != "" {
		t.Errorf("sizes of the requests (-want +got):\n%s", diff)
	}
	if got.stdout != "All of it is done.\n" {
		t.Errorf("it read %q", got.stdout)
	}
	log, err := os.ReadFile(filepath.Join(b.dir, "limit.log"))
	if err != nil || len(log) != 600 {
		t.Errorf("the log has %d bytes, want 600 (%v)", len(log), err)
	}
	if got.first() <= 0 || got.turn(1) <= 0 || got.Took <= got.first() {
		t.Errorf("times do not add up: %+v", got)
	}
}

// TestTheLimitMakesRequestsAtOnce: the requests after the first are under way
// together, and the last follows them.
func TestTheLimitMakesRequestsAtOnce(t *testing.T) {
	b := testBench(t)
	like := run{work: work{agents: 3}, lines: []int{10, 10, 10, 10, 10}}
	for range like.requests() {
		like.arrivals = append(like.arrivals, arrival{size: 1000})
	}
	got, err := b.runLimit(t.Context(), like)
	if err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(filepath.Join(b.dir, "limit.log")); err != nil || len(log) != 50 || got.stdout != "All of it is done.\n" {
		t.Errorf("the log has %d bytes, want 50 (%v); it read %q", len(log), err, got.stdout)
	}
}

func TestAFailingProgramIsAnErrorWithItsWords(t *testing.T) {
	b := testBench(t)
	_, err := execute(t.Context(), program{path: b.limit, args: []string{"-plan", "absent.json"}, dir: b.dir, env: os.Environ()})
	if err == nil || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}

func TestRowsOverTheirBoundAreMarked(t *testing.T) {
	const s = time.Second
	rows := []row{
		ratio("ratio", []time.Duration{3 * s, 1 * s, 2 * s}, []time.Duration{s}, 2),
		ratio("ratio over", []time.Duration{3 * s}, []time.Duration{s}, 2),
		above("above", []time.Duration{3 * s}, []time.Duration{s}, 2*s),
		above("above over", []time.Duration{4 * s}, []time.Duration{s}, 2*s),
		within("within over", []time.Duration{2 * s}, s),
		bytesWithin("bytes", 40*mebibyte, 40, mebibyte, "MiB"),
		bytesWithin("bytes over", 40*mebibyte+1, 40, mebibyte, "MiB"),
	}
	for _, r := range rows {
		if r.over != strings.HasSuffix(r.what, "over") {
			t.Errorf("%+v", r)
		}
	}
	var text strings.Builder
	render(&text, [2]string{"cadre", "minimal program"}, rows[:2])
	want := `| | cadre | minimal program | compared | bound | |
|---|---:|---:|---:|---:|---|
| ratio | 2000.00 ms | 1000.00 ms | 2.00x | ≤ 2x |  |
| ratio over | 3000.00 ms | 1000.00 ms | 3.00x | ≤ 2x | over |
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPartsAreChosenByName(t *testing.T) {
	for only, want := range map[string][]string{"": partNames(), "stores": {"stores"}, "stores,mail": {"mail", "stores"}} {
		got, err := chosen(only)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range got {
			names = append(names, p.name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("-only %q (-want +got):\n%s", only, diff)
		}
	}
	if _, err := chosen("stores,males"); err == nil || !strings.Contains(err.Error(), "males") {
		t.Errorf("got error %v, want one that names what is unknown", err)
	}
}

// TestTheStoresThatAreComparedAreWhatTheySay looks at them through the stores.
func TestTheStoresThatAreComparedAreWhatTheySay(t *testing.T) {
	root := layout.Root(t.TempDir())
	state := cadre.OpenState(root)
	defer state.Close()
	if err := errors.Join(writeInbox(root, longBox, 12), writeTasks(root, "list", 9)); err != nil {
		t.Fatal(err)
	}
	m := mailer{state.Mail(), state.Mail()}
	for range 2 {
		if _, _, err := m.round(t.Context(), longBox); err != nil {
			t.Fatal(err)
		}
		if _, err := claim(t.Context(), state.Tasks(), "list"); err != nil {
			t.Fatal(err)
		}
	}
	mail, err := state.Mail().All(t.Context(), longBox)
	if err != nil || len(mail) != 14 {
		t.Errorf("the inbox holds %d messages, want 14 (%v)", len(mail), err)
	}
	open := 0
	list, err := state.Tasks().List(t.Context(), "list")
	for _, one := range list {
		if one.Status == task.Pending && one.Owner == "" {
			open++
		}
	}
	if err != nil || len(list) != 9 || open != 1 {
		t.Errorf("the list holds %d tasks and %d open ones, want 9 and 1 (%v)", len(list), open, err)
	}
}

func TestNumberAfterAMark(t *testing.T) {
	for text, want := range map[string]int{"x bench-mate-17.": 17, "bench-mate-0": 0, "bench-mate-": -1, "mate-3": -1} {
		got, ok := numberAfter([]byte(text), mateMark)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestTheOrderIsTheNewestPromptsUntilACallWasMade(t *testing.T) {
	const prompt = `{"messages":[{"role":"user","content":[{"type":"text","text":"bench-lead: team"}]},{"type":"text","text":"bench-lead: send"}]`
	for body, want := range map[string]string{
		prompt + "}": "send",
		prompt + `,{"role":"user","content":[{"type":"tool_result"}]}]}`: "",
		`{"messages":[]}`: "",
	} {
		if got := order([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
