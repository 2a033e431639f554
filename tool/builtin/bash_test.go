//go:build unix

package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/shellword"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/tool"
)

// shells runs a test with every shell that a command may meet.
func shells(t *testing.T, test func(t *testing.T)) {
	usual := shellPath
	t.Cleanup(func() { shellPath = usual })
	tried := map[string]bool{}
	for _, name := range []string{"bash", "sh", "dash"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || tried[real] {
			continue
		}
		tried[real] = true
		shellPath = func() (string, error) { return path, nil }
		t.Run(name, test)
	}
}

func twinOf(t *testing.T, r tool.Result) bashTwin {
	t.Helper()
	var twin bashTwin
	if err := json.Unmarshal(r.Structured, &twin); err != nil {
		t.Fatalf("%v in %s", err, r.Structured)
	}
	return twin
}

func TestBashResults(t *testing.T) {
	shells(t, func(t *testing.T) {
		d := newDesk(t)
		tests := []struct {
			command string
			want    string
			failed  bool
		}{
			{"echo hi", "hi", false},
			{"echo out; echo err >&2", "out\nerr", false},
			{"true", "(Bash completed with no output)", false},
			{"exit 3", "Exit code 3", true},
			{"echo said; exit 3", "Exit code 3\nsaid", true},
			{"printf '\\n\\n  x \\n\\n'", "  x", false},
			{"cat; echo $?", "0", false},
			{"echo $CADRE $GIT_EDITOR", "1 true", false},
			{"kill -9 $$", "Exit code 137 (killed)", true},
			{"# a comment\necho after", "after", false},
			{"cat <<EOF\nit's $((1+1))\nEOF", "it's 2", false},
			{"false || echo 'quo\"ted' \"and 'so'\"", "quo\"ted and 'so'", false},
			{"set -e; false; echo never", "Exit code 1", true},
			{"set -u; echo ok", "ok", false},
			{"echo \\\n  joined", "joined", false},
			{"(exit 4)", "Exit code 4", true},
			{"echo $#", "0", false},
			{"printf '\\033[31mred\\033[0m\\r\\n10%%\\r20%%\\n'", "red\n20%", false},
			{"exec echo replaced", "replaced", false},
		}
		for _, tt := range tests {
			r := d.call("Bash", args{"command": tt.command})
			if r.Text != tt.want || r.IsError != tt.failed {
				t.Errorf("%s: %v %q, want %q", tt.command, r.IsError, r.Text, tt.want)
			}
		}
		r := d.call("Bash", args{"command": "echo a; if"})
		if !r.IsError || !strings.Contains(r.Text, "Exit code 2") || strings.Contains(r.Text, "trap") {
			t.Errorf("a syntax error: %q", r.Text)
		}
		r = d.call("Bash", args{"command": "set -x; cd /; true"})
		if strings.Contains(r.Text, "pwd") || strings.Contains(r.Text, "PWD") {
			t.Errorf("tracing shows our part: %q", r.Text)
		}
	})
	d := newDesk(t)
	d.refused("Bash", args{"command": " \n"}, "empty")
	d.refused("Bash", args{"command": "echo a\x00b"}, "NUL")
	want := `{"stdout":"hi","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}`
	if r := d.call("Bash", args{"command": "echo hi"}); string(r.Structured) != want {
		t.Errorf("twin is %s", r.Structured)
	}
	if n := len(d.jobs.Active("")); n != 0 || d.jobs.Waiting("s1") != 0 {
		t.Errorf("%d jobs and %d notices are left", n, d.jobs.Waiting("s1"))
	}
}

func TestBashErrorsHaveTheRightLine(t *testing.T) {
	if path, err := shellPath(); err != nil || filepath.Base(path) != "bash" {
		t.Skip("needs bash")
	}
	d := newDesk(t)
	if r := d.call("Bash", args{"command": "true\nnot-a-program-at-all"}); !strings.Contains(r.Text, "line 2:") || !strings.HasPrefix(r.Text, "Exit code 127\n") {
		t.Errorf("got %q", r.Text)
	}
}

func TestBashKeepsTheFolder(t *testing.T) {
	shells(t, func(t *testing.T) {
		d := newDesk(t)
		odd := d.path("it's an \"odd\" $name")
		for _, dir := range []string{"a/b", "c", filepath.Base(odd)} {
			if err := os.MkdirAll(d.path(dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		link(t, "a/b", d.path("link"))
		tests := []struct{ command, want string }{
			{"cd a", d.path("a")},
			{"cd b && false", d.path("a/b")},
			{"cd .. ; exit 3", d.path("a")},
			{"(cd /)", d.path("a")},
			{"cd / | cat", d.path("a")},
			{"cd nowhere", d.path("a")},
			{"set -e; cd ../c; false", d.path("c")},
			{"cd " + shellword.Quote(odd), odd},
			{"true", odd},
			{"cd ../link", d.path("a/b")},
			{"cd ../..; kill -TERM $$", ""}, // may or may not be told
			{"cd " + shellword.Quote(d.dir), d.dir},
			{"if; cd a", d.dir},
			{"exec sh -c 'cd a'", d.dir},
			{"pwd() { echo /; }; cd c", d.path("c")},
			{"PWD=/; true", d.path("c")},
			{"cd " + shellword.Quote(d.dir) + "; exec 3>&- 9>&- 1>&- 2>&-", d.dir},
		}
		for _, tt := range tests {
			d.call("Bash", args{"command": tt.command})
			if got := d.w.Dir(); tt.want != "" && got != tt.want {
				t.Errorf("after %s it is in %s, want %s", tt.command, got, tt.want)
			}
		}
		if got := d.ok("Bash", args{"command": "pwd; pwd -P; echo $PWD"}); got != strings.Join([]string{d.dir, d.dir, d.dir}, "\n") {
			t.Errorf("it runs in %s", got)
		}
		outputs := filepath.Dir(d.w.output("x"))
		if left, _ := os.ReadDir(outputs); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestBashFolderCountsForOtherTools(t *testing.T) {
	d := newDesk(t)
	d.put("sub/f", "x\n")
	d.ok("Bash", args{"command": "cd sub"})
	if got := d.ok("Read", args{"file_path": "f"}); got != "     1\tx" {
		t.Errorf("got %q", got)
	}
}

func TestBashWithoutItsFolder(t *testing.T) {
	d := newDesk(t)
	d.ok("Bash", args{"command": "mkdir gone && cd gone"})
	if err := os.Remove(d.path("gone")); err != nil {
		t.Fatal(err)
	}
	want := d.dir + "\n[The working folder " + d.path("gone") + " no longer exists; this ran in " + d.dir + ".]"
	if got := d.ok("Bash", args{"command": "pwd"}); got != want {
		t.Errorf("got %q", got)
	}
	if got := d.ok("Bash", args{"command": "mkdir -p x && cd x && rmdir ../x && echo done"}); got != "done" {
		t.Errorf("got %q", got)
	}
	if got := d.ok("Bash", args{"command": "pwd"}); !strings.HasPrefix(got, d.dir) {
		t.Errorf("got %q", got)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		t.Fatal(err)
	}
	d.refused("Bash", args{"command": "pwd"}, "Nothing was run", "does not exist any more")
}

func TestBashLongCommand(t *testing.T) {
	d := newDesk(t)
	text := strings.Repeat("it's line of text\n", 20000) // 360 KB
	d.ok("Bash", args{"command": "mkdir there; cd there; cat > big <<'EOF'\n" + text + "EOF"})
	d.has("there/big", text)
	if got := d.w.Dir(); got != d.path("there") {
		t.Errorf("it is in %s", got)
	}
}

func TestBashEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-secret-1")
	t.Setenv("OPENAI_API_KEY", "sk-secret-2")
	t.Setenv("COPIED", "Bearer sk-ant-secret-1")
	t.Setenv("HARMLESS", "yes")
	d := newDesk(t)
	got := d.ok("Bash", args{"command": "env"})
	if strings.Contains(got, "secret") || !strings.Contains(got, "HARMLESS=yes") {
		t.Errorf("the environment is\n%s", got)
	}
}

func TestBashTimesOut(t *testing.T) {
	d := newDesk(t)
	r := d.call("Bash", args{"command": "echo before; sleep 1000", "timeout": 300})
	twin := twinOf(t, r)
	if want := "The command was terminated because it ran longer than 300ms. Give it a longer timeout (at most 600000), or run it in the background. Its output until then:\nbefore"; r.Text != want || !r.IsError {
		t.Errorf("got %q", r.Text)
	}
	if !twin.Interrupted || twin.TimedOutAfter != 300 || twin.Stdout != "before" {
		t.Errorf("twin is %+v", twin)
	}
	for given, want := range map[float64]time.Duration{0: 2 * time.Minute, -1: 2 * time.Minute, 1: time.Millisecond, 1e12: 10 * time.Minute} {
		if got := (bashInput{Timeout: given}).timeout(); got != want {
			t.Errorf("timeout %v is %v", given, got)
		}
	}
}

// gone waits for the end of a process, which must not be ours.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatalf("no process id: %q", pid)
	}
	if syscall.Kill(n, 0) != nil {
		return
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
	if err == nil && !bytes.Contains(stat, []byte(") Z ")) {
		t.Errorf("process %d is alive", n)
	}
}

func TestBashIsInterrupted(t *testing.T) {
	d := newDesk(t)
	ready := d.path("ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan tool.Result)
	go func() {
		// The grandchild ignores SIGTERM and holds the output open.
		done <- d.callIn(ctx, "Bash", args{"command": `(trap '' TERM; echo $(exec sh -c 'echo $PPID'); echo >ready; while :; do sleep 0.1; done) & cd /; wait`})
	}()
	if _, err := os.ReadFile(ready); err != nil { // blocks until it is written
		t.Fatal(err)
	}
	cancel(errors.New("the person pressed Ctrl+C"))
	r := <-done
	pid, found := strings.CutPrefix(r.Text, "The command was interrupted before it was done. Its output until then:\n")
	if !found || !r.IsError || !twinOf(t, r).Interrupted {
		t.Fatalf("got %+v", r)
	}
	gone(t, pid)
	if d.w.Dir() != d.dir {
		t.Errorf("an interrupted command moved to %s", d.w.Dir())
	}
	if d.jobs.Waiting("s1") != 0 {
		t.Error("there is a notice of a job whose end was waited for")
	}
}

func TestBashEndsWhatIsLeft(t *testing.T) {
	d := newDesk(t)
	got := d.ok("Bash", args{"command": "sleep 1000 & echo $!"})
	pid, note, _ := strings.Cut(got, "\n")
	gone(t, pid)
	if !strings.Contains(note, "run_in_background") {
		t.Errorf("the remark is %q", note)
	}
}

func TestBashLongOutput(t *testing.T) {
	d := newDesk(t)
	r := d.call("Bash", args{"command": "seq 1 1500000"}) // about 10 MB
	twin := twinOf(t, r)
	if r.IsError || len(r.Text) > 31_000 || !strings.HasPrefix(r.Text, "1\n2\n3\n") || !strings.HasSuffix(r.Text, "\n1500000") ||
		!strings.Contains(r.Text, "[Part of the output is left out here. All of it (10888896 bytes) is in "+twin.PersistedPath+": ") {
		t.Errorf("%d characters: %.100q … %q", len(r.Text), r.Text, r.Text[len(r.Text)-100:])
	}
	if info, err := os.Stat(twin.PersistedPath); err != nil || info.Size() != 10888896 || twin.PersistedSize != 10888896 {
		t.Errorf("%v %v", info, err)
	}
	if got := d.ok("Read", args{"file_path": twin.PersistedPath, "offset": 777777, "limit": 1}); !strings.HasPrefix(got, "777777\t777777\n") {
		t.Errorf("the file has %q", got)
	}
	r = d.call("Bash", args{"command": "seq 1 8000"}) // more than is shown, less than is held
	if twin := twinOf(t, r); !strings.Contains(r.Text, twin.PersistedPath) || !strings.HasSuffix(r.Text, "\n8000") {
		t.Errorf("%+v", twin)
	} else if got, err := os.ReadFile(twin.PersistedPath); err != nil || len(got) != 38893 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	r = d.call("Bash", args{"command": "head -c 3000000 /dev/zero | tr '\\0' x"}) // one line
	if n := len(r.Text); n < 30_000 || n > 31_000 {
		t.Errorf("%d characters", n)
	}
	r = d.call("Bash", args{"command": "i=0; while [ $i -lt 20000 ]; do printf '\\033[31m\\033]52;c;aGFjaw==\\007'; i=$((i+1)); done; echo end"})
	if !strings.HasPrefix(r.Text, "[Part of the output is left out here.") || !strings.HasSuffix(r.Text, "]\nend") {
		t.Errorf("got %.300q", r.Text)
	}
	if err := os.WriteFile(d.path("raw"), []byte("\xff\xfe\x00\x01binary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := d.ok("Bash", args{"command": "cat raw"}); got != "\uFFFD\uFFFDbinary" {
		t.Errorf("binary output: %q", got)
	}
}

func TestBashInBackground(t *testing.T) {
	d := newDesk(t)
	goOn := d.path("go")
	if err := syscall.Mkfifo(goOn, 0o600); err != nil {
		t.Fatal(err)
	}
	r := d.call("Bash", args{"command": "cd /; echo started; cat " + goOn + "; exit 3", "run_in_background": true, "description": "bg cmd"})
	m := regexp.MustCompile(`^Command running in background with ID: (b[0-9a-f]{6})\. Output is being written to: (.*)$`).FindStringSubmatch(r.Text)
	if m == nil || r.IsError {
		t.Fatalf("got %+v", r)
	}
	if want := (bashTwin{BackgroundTaskID: m[1]}); twinOf(t, r) != want {
		t.Errorf("twin is %s", r.Structured)
	}
	if _, err := os.Stat(m[2]); err != nil {
		t.Error(err)
	}
	if infos := d.jobs.Active("s1"); len(infos) != 1 || infos[0].ID != m[1] || infos[0].Title != "bg cmd" || infos[0].Call != "toolu_1" || !infos[0].Background {
		t.Errorf("jobs are %+v", infos)
	}
	if err := os.WriteFile(goOn, []byte("told\n"), 0); err != nil {
		t.Fatal(err)
	}
	n, err := d.jobs.Next(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	want := "<task-notification>\n<task-id>" + m[1] + "</task-id>\n<output-file>" + m[2] + "</output-file>\n<status>failed</status>\n" +
		"<summary>Background command \"bg cmd\" failed with exit code 3</summary>\n</task-notification>\nRead the output file to retrieve the result: " + m[2]
	if diff := cmp.Diff(want, n.Text()); diff != "" {
		t.Errorf("notice (-want +got):\n%s", diff)
	}
	if got := d.ok("Read", args{"file_path": m[2]}); got != "     1\tstarted\n     2\ttold" {
		t.Errorf("the output is %q", got)
	}
	if d.w.Dir() != d.dir {
		t.Errorf("a command in the background moved to %s", d.w.Dir())
	}
}

func TestBashIsMovedToTheBackground(t *testing.T) {
	d := newDesk(t)
	for _, fifo := range []string{"ready", "go"} {
		if err := syscall.Mkfifo(d.path(fifo), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan tool.Result)
	go func() {
		done <- d.call("Bash", args{"command": "cd /; echo one; echo >" + d.path("ready") + "; cat " + d.path("go")})
	}()
	if _, err := os.ReadFile(d.path("ready")); err != nil {
		t.Fatal(err)
	}
	infos := d.jobs.Active("s1")
	if len(infos) != 1 || infos[0].Background {
		t.Fatalf("jobs are %+v", infos)
	}
	j, _ := d.jobs.Job(infos[0].ID)
	if !j.Detach() {
		t.Fatal("nobody was waiting")
	}
	r := <-done
	if want := "Command was manually backgrounded by user with ID: " + j.ID() + ". Output is being written to: " + j.Output().Path(); r.Text != want || r.IsError {
		t.Errorf("got %q", r.Text)
	}
	if twin := twinOf(t, r); twin.BackgroundTaskID != j.ID() || !twin.BackgroundedBy {
		t.Errorf("twin is %+v", twin)
	}
	if err := os.WriteFile(d.path("go"), []byte("two\n"), 0); err != nil {
		t.Fatal(err)
	}
	n, err := d.jobs.Next(t.Context(), "s1")
	if err != nil || n.Result.Status != job.Completed {
		t.Errorf("%+v %v", n, err)
	}
	if got, err := os.ReadFile(j.Output().Path()); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("%q %v", got, err)
	}
	if d.w.Dir() != d.dir {
		t.Errorf("it is in %s", d.w.Dir())
	}
}

func TestBashAfterTheEnd(t *testing.T) {
	d := newDesk(t)
	d.jobs.Close()
	d.refused("Bash", args{"command": "true"}, "Nothing was run", "ending")
}

func TestAskUserQuestion(t *testing.T) {
	d := newDesk(t)
	questions := []args{
		{"question": "Which database?", "header": "DB", "multiSelect": false, "options": []args{{"label": "A", "description": "a"}, {"label": "B", "description": "b"}}},
		{"question": "When?", "header": "Time", "options": []args{{"label": "A", "description": "a"}, {"label": "B", "description": "b"}}},
	}
	d.refused("AskUserQuestion", args{"questions": questions}, "Nobody answered", "Decide yourself")
	r := d.call("AskUserQuestion", args{"questions": questions, "answers": args{"Which database?": "A", "note": "be quick"}})
	if want := "The person answered:\n- Which database? -> A\n- When? -> (no answer: decide yourself)\n- note -> be quick"; r.Text != want || r.IsError {
		t.Errorf("got %q", r.Text)
	}
	if !strings.HasPrefix(string(r.Structured), `{"questions":[{`) || !strings.HasSuffix(string(r.Structured), `"answers":{"Which database?":"A","note":"be quick"}}`) {
		t.Errorf("twin is %s", r.Structured)
	}
}

func BenchmarkBash(b *testing.B) {
	b.Run("tool", func(b *testing.B) {
		d := newDesk(b)
		for b.Loop() {
			d.call("Bash", args{"command": "true"})
		}
	})
	b.Run("bare", func(b *testing.B) {
		path, err := shellPath()
		if err != nil {
			b.Skip(err)
		}
		for b.Loop() {
			_, _ = exec.Command(path, "-c", "true").Output()
		}
	})
}
