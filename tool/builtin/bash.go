package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/tool"
)

type bash struct {
	w    *Workspace
	jobs *job.Pool
}

const bashDescription = `Runs a command in a shell (bash, or sh where there is no bash) and returns its output and exit code. Use it to run programs: builds, tests, git, package managers, scripts.

Do not use it for what other tools do more reliably: read files with Read (not cat, head, tail), change them with Edit or Write (not sed, echo or here-documents), find them with Glob (not find, ls) and search in them with Grep (not grep, rg). Talk to the person in your reply, not with echo.

How it works:
- Commands start in the working folder. cd persists: the next command starts where this one ended. Nothing else persists: variables, functions, aliases and options are lost. Prefer absolute paths to changing folders.
- Quote paths with spaces: cd "/path with spaces".
- There is no terminal and no input: a command that asks a question gets no answer. Use flags that answer in advance (-y, --no-edit, --no-pager), and nothing interactive (vim, less, git rebase -i, a REPL).
- A command is terminated after 2 minutes; timeout (milliseconds, at most 600000) allows up to 10. Nothing keeps running: what a command starts with & is terminated when the command ends.
- Output over 30000 characters is shown without its middle; all of it is kept in a file that the result names. It is better to ask for less: a quiet flag, one test, head.
- Standard output and standard error are combined. A failed command is marked as an error with its exit code; read its output before you try again.
- description says in five to ten words what the command does, for the person who may have to approve it.

Several commands:
- Make independent commands several calls in one reply. Join commands that depend on each other in one call with && (or with ; where a failure does not matter). No newlines between commands, other than inside quoted text.

run_in_background: true starts the command and returns at once with its id and the file its output goes to, for servers, watchers and long builds. Do not add &. You are notified when it ends: do not wait for it with sleep, and do not poll. Read the file with Read when you want to know its progress.

git:
- Commit, push, or open a pull request only when you were asked to. Check git status, git diff and git log first; stage the files that belong to the change by name; give the message with -m.
- Never change the git configuration, skip hooks (--no-verify), amend or rewrite commits that are not yours, push with --force, or discard work (reset --hard, checkout ., clean -f, branch -D) unless you were asked for exactly that. When a hook fails, fix the cause and make a new commit.`

const bashSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string","description":"The command to run"},` +
	`"timeout":{"type":"number","description":"Milliseconds after which the command is terminated; 120000 by default, at most 600000"},` +
	`"description":{"type":"string","description":"What the command does, in five to ten words, like \"Run the unit tests of the parser\""},` +
	`"run_in_background":{"type":"boolean","description":"Return at once and let the command run; you are notified when it ends"},` +
	`"dangerouslyDisableSandbox":{"type":"boolean","description":"Has no effect: there is no sandbox here"}` +
	`},"required":["command"],"additionalProperties":false}`

var bashSpec = tool.Spec{Name: "Bash", Description: bashDescription, Schema: tool.NewSchema(bashSchema), Writes: true}

func (bash) Spec() tool.Spec { return bashSpec }

type bashInput struct {
	Command     string  `json:"command"`
	Timeout     float64 `json:"timeout"`
	Description string  `json:"description"`
	Background  bool    `json:"run_in_background"`
}

// How long a command may run while the call waits for it.
const (
	usualTimeout = 2 * time.Minute
	maxTimeout   = 10 * time.Minute
)

func (in bashInput) timeout() time.Duration {
	if in.Timeout < 1 {
		return usualTimeout
	}
	return min(time.Duration(toInt(in.Timeout))*time.Millisecond, maxTimeout)
}

// title says what the command is about in one line.
func (in bashInput) title() string {
	text := in.Description
	if text == "" {
		text = in.Command
	}
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > 100 {
		return string(runes[:99]) + "…"
	}
	return line
}

func (t bash) Access(_ context.Context, call tool.Call) tool.Access {
	in, failed := parseInput[bashInput](call)
	if failed != nil {
		return tool.Access{}
	}
	return tool.Access{Command: in.Command, Dir: symlink.Follow(t.w.Dir())}
}

// errTimedOut is why a command that ran too long was terminated.
var errTimedOut = errors.New("the command took too long")

func (t bash) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[bashInput](call)
	if failed != nil {
		return *failed
	}
	if strings.TrimSpace(in.Command) == "" {
		return tool.UseError("command is empty.")
	}
	if strings.ContainsRune(in.Command, 0) {
		return tool.UseError("command contains a NUL character, which cannot be passed to a program.")
	}
	dir, remark, err := t.w.workingDir()
	if err != nil {
		return tool.Error("Nothing was run: " + err.Error() + ".")
	}
	s := &shellRun{command: in.Command, dir: dir, env: t.w.shellEnv(dir)}
	j, err := t.jobs.Start(ctx, job.Spec{
		Kind: job.Shell, Title: in.title(), Owner: tool.CallerFrom(ctx).Key(), Call: call.ID, Waited: !in.Background, Output: t.w.output,
	}, func(ctx context.Context, j *job.Job) job.Result {
		if !in.Background {
			s.files = helperFiles(j)
		}
		return s.run(ctx, j)
	})
	if err != nil {
		return tool.Error("Nothing was run: " + err.Error() + ".")
	}
	if in.Background {
		return inBackground(j, "Command running in background with ID: %s.", remark)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, in.timeout(), errTimedOut)
	defer cancel()
	ended, err := j.WaitOrStop(ctx)
	if err != nil { // job.ErrDetached
		return inBackground(j, "Command was manually backgrounded by user with ID: %s.", remark)
	}
	if s.endDir != "" && !s.exit.Killed {
		t.w.setDir(s.endDir)
	}
	return outcome{in, j, s, ended, context.Cause(ctx), remark}.result()
}

// helperFiles is how the names of the files begin that help to run a job; they lie
// beside its output. "" when their folder cannot be made: the command runs without.
func helperFiles(j *job.Job) string {
	path := j.Output().Path()
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return ""
	}
	return strings.TrimSuffix(path, filepath.Ext(path))
}

// bashTwin is the structured twin (facts: sdk-contract §4.1; golden t5, t7).
type bashTwin struct {
	Stdout           string `json:"stdout"`
	Stderr           string `json:"stderr"` // always empty: both streams are one
	Interrupted      bool   `json:"interrupted"`
	IsImage          bool   `json:"isImage"`
	NoOutputExpected bool   `json:"noOutputExpected"`
	BackgroundTaskID string `json:"backgroundTaskId,omitempty"`
	BackgroundedBy   bool   `json:"backgroundedByUser,omitempty"`
	TimedOutAfter    int64  `json:"timedOutAfterMs,omitempty"`
	PersistedPath    string `json:"persistedOutputPath,omitempty"`
	PersistedSize    int64  `json:"persistedOutputSize,omitempty"`
}

// inBackground is the result of a command that keeps running (facts: claude-code §10).
func inBackground(j *job.Job, text, remark string) tool.Result {
	text = fmt.Sprintf(text, j.ID())
	if err := j.Output().Err(); err != nil {
		text += " Its output is not kept: " + err.Error() + "."
	} else {
		text += " Output is being written to: " + j.Output().Path()
	}
	if remark != "" {
		text += "\n" + remark
	}
	return withTwin(text, bashTwin{BackgroundTaskID: j.ID(), BackgroundedBy: strings.Contains(text, "by user")})
}

// outcome is a command that has ended while it was waited for.
type outcome struct {
	in     bashInput
	job    *job.Job
	run    *shellRun
	ended  job.Result
	cause  error // why the call stopped waiting, when that ended the command
	remark string
}

func (o outcome) result() tool.Result {
	shown := o.output()
	twin := bashTwin{Stdout: shown.text, Interrupted: o.ended.Status == job.Killed, PersistedPath: shown.path, PersistedSize: shown.size}
	verdict := o.verdict()
	if errors.Is(o.cause, errTimedOut) && twin.Interrupted {
		twin.TimedOutAfter = o.in.timeout().Milliseconds()
	}
	text := shown.text
	if text == "" && verdict == "" {
		text = "(Bash completed with no output)"
	}
	if o.run.exit.Left {
		text = lines(text, "[Processes that the command left running were terminated. Use run_in_background for what is to keep running.]")
	}
	return tool.Result{
		Text: lines(verdict, text, o.remark), IsError: verdict != "", Structured: jsonx.MustMarshal(twin),
	}
}

// verdict says what went wrong; "" when nothing did.
func (o outcome) verdict() string {
	switch {
	case o.ended.Status == job.Killed && errors.Is(o.cause, errTimedOut):
		hint := "Give it a longer timeout (at most 600000), or run it in the background."
		if o.in.timeout() == maxTimeout {
			hint = "Run it in the background."
		}
		return fmt.Sprintf("The command was terminated because it ran longer than %s. %s Its output until then:", o.in.timeout(), hint)
	case o.ended.Status == job.Killed:
		return "The command was interrupted before it was done. Its output until then:"
	case o.ended.Err != nil:
		return "The command could not be run: " + o.ended.Err.Error()
	case o.run.exit.Code != 0:
		text := fmt.Sprintf("Exit code %d", o.run.exit.Code)
		if o.run.exit.Signal != "" {
			text += " (" + o.run.exit.Signal + ")"
		}
		return text
	}
	return ""
}

// maxBashOutput is how many characters of output are shown (facts:
// sdk-contract §3.5, bashOutputMaxChars).
const maxBashOutput = 30_000

// shownOutput is the output as the model gets it, and where the complete output is
// when that is longer.
type shownOutput struct {
	text string
	path string
	size int64
}

func (o outcome) output() shownOutput {
	out := o.job.Output()
	held := out.Snapshot()
	var head, tail string
	if held.Cut() == 0 {
		head, tail = middleOut(tidy(plain(append(held.Head, held.Tail...))), maxBashOutput)
	} else {
		head = firstPart(plainUpTo(held.Head, true), maxBashOutput/2)
		tail = lastPart(tidy(plain(fromWhole(held.Tail))), maxBashOutput/2)
	}
	if tail == "" && held.Cut() == 0 {
		return shownOutput{text: head}
	}
	if err := out.Persist(); err != nil {
		return shownOutput{text: lines(head, fmt.Sprintf("[Part of the output (%d bytes) is left out here, and was not kept: %v.]", held.Total, err), tail)}
	}
	note := fmt.Sprintf("[Part of the output is left out here. All of it (%d bytes) is in %s: search it with Grep, or read parts of it with Read.]", held.Total, out.Path())
	return shownOutput{lines(head, note, tail), out.Path(), held.Total}
}

// fromWhole drops the remainder of a line or control sequence whose beginning was
// cut off, unless that is a large part of the text.
func fromWhole(raw []byte) []byte {
	if i := bytes.IndexByte(raw[:len(raw)/4], '\n'); i >= 0 {
		return raw[i+1:]
	}
	if i := bytes.IndexByte(raw[:min(len(raw), 1<<10)], '\x1b'); i >= 0 {
		return raw[i:]
	}
	return raw
}

// tidy removes empty lines at the start, and white space at the end.
func tidy(text string) string {
	text = strings.TrimRight(text, " \t\n")
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return text
		}
		text = rest
	}
}

// lines joins the parts that are not empty with line ends.
func lines(parts ...string) string {
	var filled []string
	for _, part := range parts {
		if part != "" {
			filled = append(filled, part)
		}
	}
	return strings.Join(filled, "\n")
}
