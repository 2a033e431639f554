package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre"
)

// conversation is a running cadre that takes prompts on its stdin.
type conversation struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  tail
}

// converseWith starts cadre with these arguments. kill ends it.
func (b *bench) converseWith(home string, args ...string) (*conversation, error) {
	c := &conversation{cmd: exec.Command(b.cadre, append([]string{"--dangerously-skip-permissions"}, args...)...)}
	c.cmd.Dir, c.cmd.Env = b.repo(), append(b.environment(home), "TMUX_TMPDIR="+b.dir, "SHELL="+shell(), "TERM=xterm")
	c.cmd.Stdout, c.cmd.Stderr = io.Discard, &c.said
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start cadre: %w", err)
	}
	return c, nil
}

// prompt gives the lead of a team its next instruction.
func (c *conversation) prompt(words string) error {
	_, err := io.WriteString(c.stdin, leadMark+": "+words+"\n")
	return err
}

// kill ends the program at once and waits for that.
func (c *conversation) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// words are what it last told on stderr.
func (c *conversation) words() string { return c.said.String() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// How a team is seen to be at rest, and how long that may take.
const (
	restLook  = 20 * time.Millisecond
	restQuiet = 100 * time.Millisecond
	restTime  = 3 * time.Minute
)

var errRestless = errors.New("the team does not come to rest")

// rest is a state of a team to wait for.
type rest struct {
	idles    int  // how often, at least, teammates have told the lead that they are idle
	requests int  // how many requests, at least, were made
	read     bool // the lead, which runs, has read all its mail
}

// await blocks until the team is so, and made no request for a moment.
func (b *bench) await(ctx context.Context, state *cadre.State, want rest) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restTime, errRestless)
	defer cancel()
	look := time.NewTicker(restLook)
	defer look.Stop()
	for {
		told, unread, err := idleNotes(ctx, state)
		if err != nil {
			return err
		}
		seen := b.model.arrivals()
		quiet := len(seen) > 0 && time.Since(seen[len(seen)-1].at) > restQuiet
		if told >= want.idles && len(seen) >= want.requests && (unread == 0 || !want.read) && quiet {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: idle %d times of %d, %d unread", context.Cause(ctx), told, want.idles, unread)
		}
	}
}

// idleNotes counts what the lead was told of idle teammates, and what mail it
// has not read.
func idleNotes(ctx context.Context, state *cadre.State) (told, unread int, err error) {
	mail, err := state.Mail().All(ctx, leadBox)
	for _, m := range mail {
		if strings.Contains(m.Text, `"idle_notification"`) {
			told++
		}
		if !m.Read {
			unread++
		}
	}
	return told, unread, err
}
