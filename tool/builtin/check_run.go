package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/tool"
)

// checker runs the checks of tasks as Bash runs commands: as a job, with the
// environment of the workspace and the same limits.
type checker struct {
	space *Workspace
	jobs  *job.Pool
}

// checkTime is how long a check may run.
const checkTime = maxTimeout

// maxCheckOutput is how many characters of what a failed check printed are
// shown: its end, where programs say what is wrong.
const maxCheckOutput = 10_000

// dir is where a check runs: the folder that the caller was started in, whatever
// folder its commands have changed to since.
func (c checker) dir(caller tool.Caller) string {
	if caller.Cwd != "" {
		return symlink.Follow(caller.Cwd)
	}
	return symlink.Follow(c.space.start)
}

// checkRun is how a check ended.
type checkRun struct {
	passed  bool
	code    int
	why     string // in one line; "" when it passed
	output  string // the end of what it printed
	ended   time.Time
	unended string // why it did not run to its end, and so proves nothing; "" when it did
}

// run runs a command to its end. When ctx ends, the command is ended too.
func (c checker) run(ctx context.Context, call tool.Call, title, command string) checkRun {
	caller := tool.CallerFrom(ctx)
	dir := c.dir(caller)
	if !isFolder(dir) {
		return checkRun{unended: fmt.Sprintf("could not be run, since the folder %s does not exist", dir)}
	}
	s := &shellRun{command: command, dir: dir, env: c.space.shellEnv(dir)}
	j, err := c.jobs.Start(ctx, job.Spec{
		Kind: job.Shell, Title: title, Owner: caller.Key(), Call: call.ID, Waited: true, Output: c.space.output,
	}, func(ctx context.Context, j *job.Job) job.Result {
		s.files = helperFiles(j)
		return s.run(ctx, j)
	})
	if err != nil {
		return checkRun{unended: "could not be run: " + err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, errTimedOut)
	defer cancel()
	ended, err := j.WaitOrStop(ctx)
	if err != nil { // job.ErrDetached
		return checkRun{unended: fmt.Sprintf("was moved to the background (ID: %s), where it proves nothing any more", j.ID())}
	}
	return outcomeOfCheck(ctx, j, s, ended)
}

func outcomeOfCheck(ctx context.Context, j *job.Job, s *shellRun, ended job.Result) checkRun {
	r := checkRun{code: s.exit.Code, output: lastOutput(j), ended: time.Now()}
	switch {
	case ended.Status == job.Killed && errors.Is(context.Cause(ctx), errTimedOut):
		r.why = fmt.Sprintf("it took longer than %s and was ended", checkTime)
	case ended.Status == job.Killed && ctx.Err() != nil:
		return checkRun{unended: "was interrupted"}
	case ended.Status == job.Killed:
		return checkRun{unended: "was stopped"}
	case ended.Err != nil:
		return checkRun{unended: "could not be run: " + ended.Err.Error()}
	case s.exit.Code != 0:
		r.why = fmt.Sprintf("exit code %d", s.exit.Code)
		if s.exit.Signal != "" {
			r.why += " (" + s.exit.Signal + ")"
		}
	default:
		r.passed = true
	}
	return r
}

// lastOutput is the end of what a command printed, and where the rest is.
func lastOutput(j *job.Job) string {
	out := j.Output()
	held := out.Snapshot()
	var text string
	if held.Cut() == 0 {
		text = tidy(plain(append(held.Head, held.Tail...)))
	} else {
		text = tidy(plain(fromWhole(held.Tail)))
	}
	shown := lastPart(text, maxCheckOutput)
	if held.Cut() == 0 && len(shown) == len(text) {
		return text
	}
	if err := out.Persist(); err != nil {
		return lines("[Only the end of the output is shown.]", shown)
	}
	return lines(fmt.Sprintf("[Only the end is shown. The whole output, %d bytes, is in %s.]", held.Total, out.Path()), shown)
}

// checkTitle says in one line what a check is about.
func checkTitle(id, subject string) string {
	return bashInput{Description: "Check of task #" + id + ": " + strings.TrimSpace(subject)}.title()
}
