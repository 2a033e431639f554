package builtin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/internal/shellword"
	"github.com/cadre-dev/cadre/job"
)

// shellRun is one command in the shell.
type shellRun struct {
	command string
	dir     string
	env     []string
	files   string // what its helper files are called, before their endings

	// Set when it has ended.
	exit   proc.Exit
	endDir string // the folder that the command ended in; "" when it is the one it started in
}

// run is the job. Its result is for the notice; a call that waited finds more in s.
func (s *shellRun) run(ctx context.Context, j *job.Job) job.Result {
	script, remove, err := s.script()
	if err != nil {
		return job.Result{Status: job.Failed, Err: err}
	}
	defer remove()
	path, err := shellPath()
	if err != nil {
		return job.Result{Status: job.Failed, Err: err}
	}
	s.exit, err = proc.Run(ctx, proc.Command{
		Path: path, Args: append([]string{filepath.Base(path)}, script...), Dir: s.dir, Env: s.env, Stdout: j.Output(),
	})
	if err != nil {
		return job.Result{Status: job.Failed, Err: err}
	}
	s.endDir = s.folderAtEnd()
	result := job.Result{ExitCode: s.exit.Code}
	switch {
	case s.exit.Killed:
		result.Status = job.Killed
	case s.exit.Code != 0:
		result.Status = job.Failed
	default:
		result.Status = job.Completed
	}
	return result
}

// maxArgument is how long a command may be as an argument: Linux allows 128 KiB.
const maxArgument = 100 << 10

// script is the arguments of the shell. A command that is too long for one goes
// into a file, which remove deletes.
func (s *shellRun) script() (args []string, remove func(), err error) {
	text := s.prefix() + s.command
	if len(text) <= maxArgument {
		return []string{"-c", text}, func() {}, nil
	}
	file := s.files + ".sh"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, nil, fmt.Errorf("keep the command: %w", err)
	}
	return []string{file}, func() { _ = os.Remove(file) }, nil
}

// prefix makes the shell write down in which folder the command ended, if that is not
// where it started, however it ends, unless the command replaces the shell (exec) or
// this trap. It is on the first line of the command, so that the line numbers in
// error messages are right.
func (s *shellRun) prefix() string {
	if s.files == "" {
		return ""
	}
	trap := "{ set +x; } 2>/dev/null; [ \"$PWD\" = " + shellword.Quote(s.dir) + " ] || command pwd -P >" + shellword.Quote(s.cwdFile()) + " 2>/dev/null"
	return "trap " + shellword.Quote(trap) + " EXIT; "
}

func (s *shellRun) cwdFile() string { return s.files + ".cwd" }

// folderAtEnd reads what the trap has written, and removes it.
func (s *shellRun) folderAtEnd() string {
	if s.files == "" {
		return ""
	}
	content, err := os.ReadFile(s.cwdFile())
	if err != nil {
		return "" // the folder is the same
	}
	_ = os.Remove(s.cwdFile())
	dir := strings.TrimSuffix(string(content), "\n")
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// shellPath finds the shell: bash, or else sh.
var shellPath = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("bash"); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("sh")
	if err != nil {
		return "", fmt.Errorf("find a shell: %w", err)
	}
	return path, nil
})

// shellEnv is the environment of a command that starts in dir.
func (w *Workspace) shellEnv(dir string) []string {
	base := w.env()
	env := make([]string, 0, len(base)+3)
	for _, entry := range base {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "PWD", "OLDPWD", "GIT_EDITOR", "CADRE":
		default:
			env = append(env, entry)
		}
	}
	// An editor would wait forever for a person.
	return append(env, "PWD="+dir, "GIT_EDITOR=true", "CADRE=1")
}

// workingDir is where the next command starts, and a remark when that is not
// where the last one ended because the folder is gone.
func (w *Workspace) workingDir() (dir, remark string, err error) {
	dir = w.Dir()
	if isFolder(dir) {
		return dir, "", nil
	}
	if !isFolder(w.start) {
		return "", "", fmt.Errorf("the working folder %s does not exist any more", dir)
	}
	w.setDir(w.start)
	return w.start, fmt.Sprintf("[The working folder %s no longer exists; this ran in %s.]", dir, w.start), nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
