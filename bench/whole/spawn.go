package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/cadre-dev/cadre/internal/ids"
)

// spawnRows measures the start of a teammate, in the lead's process and in a
// tmux pane, where there is tmux: from the moment when the model begins to answer
// with the call of Agent to the lead's request with its result, and to the
// teammate's first request.
func spawnRows(ctx context.Context, b *bench, quick bool) ([]row, error) {
	within, panes := 50, 10
	if quick {
		within, panes = 10, 5
	}
	c, err := b.spawn(ctx, "spawn-within", within, "--teammate-mode", "in-process")
	if err != nil {
		return nil, err
	}
	rows := []row{
		figure("a teammate in the process: its start is told to the lead, p50", c.took(c.started)),
		figure("its first request, p50", c.took(c.first)),
	}
	path, err := exec.LookPath("tmux")
	if err != nil {
		return append(rows, row{what: "a teammate in a tmux pane: there is no tmux"}), nil
	}
	session := ids.UUID()
	server := tmuxServer{path, b.dir, "cadre-" + session[:8]}
	defer server.kill(ctx)
	if c, err = b.spawn(ctx, "spawn-panes", panes, "--teammate-mode", "tmux", "--session-id", session); err != nil {
		return nil, err
	}
	bare, err := server.bare(ctx, panes)
	if err != nil {
		return nil, err
	}
	up := figure("a teammate in a tmux pane: its start is told to the lead, p50", c.took(c.started))
	up.limit = ms(median(bare))
	return append(rows, up, figure("its first request, p50", c.took(c.first))), nil
}

// spawn starts teammates one by one, after one that is not counted: it also makes
// what all of them use.
func (b *bench) spawn(ctx context.Context, name string, times int, args ...string) (*crew, error) {
	c, err := b.leadCrew(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	defer c.end()
	for mate := range times + 1 {
		if err := c.start(ctx, mate, mate+1); err != nil {
			return nil, err
		}
	}
	c.forget(0)
	return c.crew, nil
}

// tmuxServer is the private server of a lead.
type tmuxServer struct{ path, dir, name string }

func (s tmuxServer) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.path, append([]string{"-L", s.name}, args...)...)
	cmd.Env = append(cmd.Environ(), "TMUX_TMPDIR="+s.dir, "TMUX=")
	return cmd
}

// bare is how long tmux takes to open a window that a program runs in: what is
// left when there is no teammate in it.
func (s tmuxServer) bare(ctx context.Context, times int) ([]time.Duration, error) {
	var took []time.Duration
	for range times {
		start := time.Now()
		out, err := s.command(ctx, "new-window", "-d", "-P", "-F", "#{pane_id}", "sleep 60").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("open a window: %w: %s", err, bytes.TrimSpace(out))
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// kill ends the server with all that runs in it.
func (s tmuxServer) kill(ctx context.Context) {
	_ = s.command(context.WithoutCancel(ctx), "kill-server").Run() // it may have ended with its last pane
}
