package builtin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/task"
)

// fill puts tasks on the list of the team, the n-th as make says.
func (o *office) fill(t *testing.T, n int, make func(n int) task.Task) {
	t.Helper()
	for i := 1; i <= n; i++ {
		item := make(i)
		item.Subject, item.Description = fmt.Sprint("s", i), "d"
		if _, err := o.teams.Tasks.Create(t.Context(), chief, item); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTaskListIsAScreenful(t *testing.T) {
	o := officeWith(t, "w1")
	o.fill(t, 1200, func(n int) task.Task {
		switch {
		case n > 1190: // the last are begun
			return task.Task{Status: task.InProgress, Owner: "w1"}
		case n > 1170: // before them, some that are blocked by the first that is ready
			return task.Task{Status: task.Pending, BlockedBy: []string{"1101"}}
		case n > 1110:
			return task.Task{Status: task.Completed}
		case n > 1100:
			return task.Task{Status: task.Pending}
		}
		return task.Task{Status: task.Completed}
	})
	r := o.call(t, chief, "TaskList", `{}`)
	lines := strings.Split(r.Text, "\n")
	var want []string
	for n := 1101; n <= 1110; n++ {
		want = append(want, fmt.Sprintf("#%d [pending] s%d", n, n))
	}
	for n := 1151; n <= 1170; n++ {
		want = append(want, fmt.Sprintf("#%d [completed] s%d", n, n))
	}
	for n := 1171; n <= 1190; n++ {
		want = append(want, fmt.Sprintf("#%d [pending] s%d [blocked by #1101]", n, n))
	}
	for n := 1191; n <= 1200; n++ {
		want = append(want, fmt.Sprintf("#%d [in_progress] s%d (w1)", n, n))
	}
	want = append(want, "… and 1,140 more. In all: 10 in progress, 30 pending (10 ready to take), 1,160 completed. TaskGet shows one.")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var twin struct {
		Tasks []struct{ ID string }
		Total int
	}
	if err := json.Unmarshal(r.Structured, &twin); err != nil || len(twin.Tasks) != 60 || twin.Total != 1200 || twin.Tasks[0].ID != "1101" {
		t.Errorf("twin: %v, %d tasks of %d", err, len(twin.Tasks), twin.Total)
	}
}

// What matters more is shown even when it fills the screen.
func TestTaskListPrefersWhatIsOpen(t *testing.T) {
	o := officeWith(t, "w1")
	o.fill(t, 150, func(n int) task.Task {
		if n%2 == 0 {
			return task.Task{Status: task.InProgress, Owner: "w1"}
		}
		return task.Task{Status: task.Pending}
	})
	text := o.call(t, chief, "TaskList", `{}`).Text
	if n := strings.Count(text, "[in_progress]"); n != 60 || !strings.HasPrefix(text, "#2 ") || !strings.Contains(text, "\n#120 ") || strings.Contains(text, "\n#122 ") {
		t.Errorf("%d are begun:\n%s", n, text)
	}
}

func TestTaskListOfAScreenfulIsWhole(t *testing.T) {
	o := officeWith(t)
	o.fill(t, 60, func(int) task.Task { return task.Task{Status: task.Pending} })
	r := o.call(t, chief, "TaskList", `{}`)
	if n := strings.Count(r.Text, "\n"); n != 59 || strings.Contains(r.Text, "more") || strings.Contains(string(r.Structured), "total") {
		t.Errorf("%d lines:\n%s", n, r.Text)
	}
}

func TestTaskListLinesStayShort(t *testing.T) {
	o := officeWith(t)
	o.fill(t, 30, func(int) task.Task { return task.Task{Status: task.Pending} })
	var ids []string
	for n := 1; n <= 29; n++ {
		ids = append(ids, fmt.Sprint(n))
	}
	long := strings.Repeat("ä", 5000)
	change := task.Change{Subject: &long, AddBlockedBy: ids}
	if _, err := o.teams.Tasks.Update(t.Context(), chief, "30", change); err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(o.call(t, chief, "TaskList", `{}`).Text, "\n#30 ")
	want := "[pending] " + strings.Repeat("ä", 199) + "… [blocked by #1, #2, #3, #4, #5, #6, #7, #8, #9, #10 and 19 more]"
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
