package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cadre-dev/cadre/internal/fakeapi"
)

// bench holds the built programs and the mock model.
type bench struct {
	dir   string // of this run; removed at its end
	cadre string
	limit string
	model *model
}

// run is one execution as both sides saw it.
type run struct {
	execution
	work
	arrivals []arrival
	lines    []int // bytes that each round appended to the transcript
}

// first is the time from the start of the process to its first request.
func (r run) first() time.Duration { return r.arrivals[0].at.Sub(r.Start) }

// turn is what tool turn n took: from its request to the next.
func (r run) turn(n int) time.Duration { return r.arrivals[n].at.Sub(r.arrivals[n-1].at) }

// prepare builds the programs and starts the model.
func prepare(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp("", "cadre-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, cadre: filepath.Join(dir, "cadre"), limit: filepath.Join(dir, "limit")}
	for pkg, to := range map[string]string{"cmd/cadre": b.cadre, "bench/limit": b.limit} {
		if err := build(ctx, modulePath+"/"+pkg, to); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(b.home(), 0o700); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "git", "init", "-q", b.repo()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a repository: %w: %s", err, out)
	}
	b.model, err = serve()
	return b, err
}

const modulePath = "github.com/cadre-dev/cadre"

// work is what the model has a program do: tool turns one after another, or
// sub-agents of one reply beside each other.
type work struct{ turns, agents int }

// requests is how many requests the work takes: an agent makes one, and the end
// of it all another.
func (w work) requests() int {
	if w.agents > 0 {
		return w.agents + 2
	}
	return w.turns + 1
}

func (w work) answers() func(int, *fakeapi.Request) fakeapi.Reply {
	if w.agents > 0 {
		return subAgents(w.agents)
	}
	return toolTurns(w.turns)
}

// runCadre does some work with cadre.
func (b *bench) runCadre(ctx context.Context, w work) (run, error) {
	before, err := transcriptSize(b.home())
	if err != nil {
		return run{}, err
	}
	b.model.expect(w.answers())
	e, err := execute(ctx, program{
		path: b.cadre,
		args: []string{"-p", "--dangerously-skip-permissions", "Do it."},
		dir:  b.repo(),
		env:  b.environment(b.home()),
	})
	if err != nil {
		return run{}, err
	}
	r := run{execution: e, work: w, arrivals: b.model.arrivals()}
	if len(r.arrivals) != w.requests() {
		return run{}, fmt.Errorf("cadre made %d requests, expected %d", len(r.arrivals), w.requests())
	}
	after, err := transcriptSize(b.home())
	if err != nil {
		return run{}, err
	}
	if after == before {
		return run{}, fmt.Errorf("there is no new transcript under %s", b.home())
	}
	for range r.arrivals {
		r.lines = append(r.lines, (after-before)/len(r.arrivals))
	}
	return r, nil
}

// home is where cadre keeps its state, and repo the git repository it works in.
// Both are there before the first measured run, as on a machine in use.
func (b *bench) home() string { return filepath.Join(b.dir, "home") }
func (b *bench) repo() string { return filepath.Join(b.dir, "repo") }

// environment is the least that a program needs, with the mock as its model.
func (b *bench) environment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CADRE_HOME=" + filepath.Join(home, ".cadre"),
		"ANTHROPIC_BASE_URL=" + b.model.url, "ANTHROPIC_API_KEY=mock", "LANG=C.UTF-8",
	}
}

// runLimit does what cadre did in a run: requests of the same sizes, the same
// forks, as many bytes of transcript.
func (b *bench) runLimit(ctx context.Context, like run) (run, error) {
	plan := map[string]any{"url": b.model.url + "/v1/messages", "log": filepath.Join(b.dir, "limit.log"), "lines": like.lines, "atOnce": like.agents}
	if like.turns > 0 {
		plan["command"] = []string{shell(), "-c", "true"}
	}
	sizes := make([]int, 0, len(like.arrivals))
	for _, a := range like.arrivals {
		sizes = append(sizes, a.size)
	}
	plan["sizes"] = sizes
	text, err := json.Marshal(plan)
	if err != nil {
		return run{}, err
	}
	file := filepath.Join(b.dir, "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return run{}, err
	}
	b.model.expect(like.answers())
	e, err := execute(ctx, program{path: b.limit, args: []string{"-plan", file}, dir: b.dir, env: b.environment(b.dir)})
	if err != nil {
		return run{}, err
	}
	r := run{execution: e, work: like.work, arrivals: b.model.arrivals()}
	if len(r.arrivals) != like.requests() {
		return run{}, fmt.Errorf("the limit made %d requests, expected %d", len(r.arrivals), like.requests())
	}
	return r, nil
}

// shell is the one that cadre runs commands with.
func shell() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// transcriptSize adds up the transcripts under a home directory.
func transcriptSize(home string) (int, error) {
	size := 0
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += int(info.Size())
		}
		return err
	})
	return size, err
}

func (b *bench) close() error {
	err := b.model.close()
	if rm := os.RemoveAll(b.dir); err == nil {
		err = rm
	}
	return err
}
