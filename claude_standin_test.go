//go:build unix

package cadre_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// claude stands in for a Claude Code that a lead starts as its teammate. It speaks
// what was observed (facts: claude-code §3.5, §4.3–§4.5, §5, §8, golden/t6-*, t11-*)
// with nothing of cadre in it: it has its own root, takes no place and seals nothing,
// writes the roster in place without a lock, tries the lock of an inbox once, and
// ends without tidying up.
type claude struct {
	root              string
	name, team, color string
	older             object // a roster that it has been told to remember
}

// object is a JSON object whose unknown fields stay in it.
type object = map[string]any

// runClaude is what a pane runs instead of Claude Code.
func runClaude(args []string) error {
	c := claude{root: os.Getenv("CLAUDE_CONFIG_DIR")}
	if c.root == "" {
		c.root = filepath.Join(os.Getenv("HOME"), ".claude")
	}
	if err := c.parse(args); err != nil {
		return err
	}
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return errors.New("the inbox is read on a terminal only")
	}
	if os.Getenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS") != "1" {
		return errors.New("teams are not enabled")
	}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for range poll.C {
		mail, err := c.take()
		if err != nil {
			return err
		}
		ended, err := c.turn(mail)
		if err != nil || ended {
			return err
		}
	}
	return nil
}

// parse takes the flags that the program knows; any other is an error.
func (c *claude) parse(args []string) error {
	flags := flag.NewFlagSet("claude", flag.ContinueOnError)
	flags.StringVar(&c.name, "agent-name", "", "")
	flags.StringVar(&c.team, "team-name", "", "")
	flags.StringVar(&c.color, "agent-color", "", "")
	for _, name := range []string{
		"agent-id", "parent-session-id", "agent-type", "model", "permission-mode", "allowedTools", "disallowedTools", "tools",
		"add-dir", "settings", "setting-sources", "system-prompt", "append-system-prompt", "resume",
	} {
		flags.String(name, "", "")
	}
	flags.Bool("plan-mode-required", false, "")
	flags.Bool("dangerously-skip-permissions", false, "")
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("error: %w", err)
	}
	return nil
}

// folder is the name of a team's folder: letters and digits stay, in lower case.
func (c *claude) folder() string {
	return strings.ToLower(regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(c.team, "-"))
}

func (c *claude) roster() string { return filepath.Join(c.root, "teams", c.folder(), "config.json") }

func (c *claude) inbox(agent string) string {
	return filepath.Join(c.root, "teams", c.folder(), "inboxes", agent+".json")
}

// turn does what the messages ask for.
func (c *claude) turn(mail []object) (ended bool, err error) {
	if len(mail) == 0 {
		return false, nil
	}
	if err := c.setActive(true); err != nil {
		return false, err
	}
	for _, m := range mail {
		text, _ := m["text"].(string)
		var control object
		if json.Unmarshal([]byte(text), &control) == nil && control["type"] == "shutdown_request" {
			return true, c.approve(control["requestId"])
		}
		if err := c.work(text); err != nil {
			return false, err
		}
	}
	if err := c.setActive(false); err != nil {
		return false, err
	}
	if text, _ := mail[0]["text"].(string); strings.Contains(text, "and undo") {
		if err := save(c.roster(), c.older); err != nil {
			return false, err
		}
	}
	return false, c.control(object{"type": "idle_notification", "from": c.name, "timestamp": stamp(), "idleReason": "available"})
}

// work answers a message; "do #N" is a task to claim and to complete first, "hold #N"
// one to claim and to stay at. It stands in for a neighbour that writes the roster at
// the worst moment, too: what it is to "remember" of that it can "write back", or write
// when it has just said that it is idle ("and undo").
func (c *claude) work(text string) error {
	switch {
	case strings.Contains(text, "remember"):
		c.older = nil
		if err := load(c.roster(), &c.older); err != nil {
			return err
		}
	case strings.Contains(text, "write back"):
		if err := save(c.roster(), c.older); err != nil {
			return err
		}
	}
	if _, id, ok := strings.Cut(text, "hold #"); ok {
		return c.updateTask(id, "in_progress")
	}
	_, id, ok := strings.Cut(text, "do #")
	if !ok {
		return c.post("team-lead", object{"from": c.name, "text": "heard: " + text, "summary": "an echo", "color": c.color})
	}
	for _, status := range []string{"in_progress", "completed"} {
		if err := c.updateTask(id, status); err != nil {
			return err
		}
	}
	return c.post("team-lead", object{"from": c.name, "text": "done with #" + id, "summary": "done", "color": c.color})
}

// updateTask rewrites a task in place, without a lock, in the order of keys that is
// usual there; the first to set it in progress owns it.
func (c *claude) updateTask(id, status string) error {
	path := filepath.Join(c.root, "tasks", c.folder(), id+".json")
	var item struct {
		ID          string   `json:"id"`
		Subject     string   `json:"subject"`
		Description string   `json:"description"`
		Owner       string   `json:"owner,omitempty"`
		Status      string   `json:"status"`
		Blocks      []string `json:"blocks"`
		BlockedBy   []string `json:"blockedBy"`
	}
	if err := load(path, &item); err != nil {
		return err
	}
	item.Owner, item.Status = c.name, status
	return save(path, item)
}

// approve agrees to end. Its entry in the roster stays, and so do its tasks: that is
// the lead's to do.
func (c *claude) approve(request any) error {
	var roster struct {
		Members []struct{ Name, TmuxPaneID, BackendType string }
	}
	if err := load(c.roster(), &roster); err != nil {
		return err
	}
	answer := object{"type": "shutdown_approved", "requestId": request, "from": c.name, "timestamp": stamp()}
	for _, m := range roster.Members {
		if m.Name == c.name {
			answer["paneId"], answer["backendType"] = m.TmuxPaneID, m.BackendType
		}
	}
	return c.control(answer)
}

func (c *claude) control(message object) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return c.post("team-lead", object{"from": c.name, "text": string(text), "color": c.color})
}

// setActive reads the roster and writes it again, in place and without a lock.
func (c *claude) setActive(active bool) error {
	var roster object
	if err := load(c.roster(), &roster); err != nil {
		return err
	}
	members, _ := roster["members"].([]any)
	for _, m := range members {
		if m := m.(object); m["name"] == c.name {
			m["isActive"] = active
		}
	}
	return save(c.roster(), roster)
}

// take marks all unread mail read and returns it; none when the inbox is locked.
func (c *claude) take() (unread []object, err error) {
	path := c.inbox(c.name)
	err = locked(path, func() error {
		var all []object
		if err := load(path, &all); err != nil {
			return err
		}
		for _, m := range all {
			if m["read"] == false {
				m["read"] = true
				unread = append(unread, m)
			}
		}
		if len(unread) == 0 {
			return nil
		}
		return save(path, all)
	})
	if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return unread, err
}

// post appends to an inbox. The program drops the message when the lock is held; its
// stand-in tries again, for a test of what our side does.
func (c *claude) post(to string, message object) error {
	message["timestamp"], message["read"] = stamp(), false
	path := c.inbox(to)
	for {
		err := locked(path, func() error {
			var all []object
			if err := load(path, &all); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return save(path, append(all, message))
		})
		if !errors.Is(err, os.ErrExist) {
			return err
		}
	}
}

// locked does something while it holds a directory lock, which it tries to get once.
func locked(path string, do func() error) error {
	lock := path + ".lock"
	if err := os.Mkdir(lock, 0o777); err != nil {
		return err
	}
	soon := time.Now().Truncate(time.Second).Add(time.Second + 5*time.Millisecond)
	return errors.Join(os.Chtimes(lock, soon, soon), do(), os.Remove(lock))
}

// load reads JSON, again when it was read while somebody else wrote it in place.
func load(path string, into any) (err error) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range 50 {
		var data []byte
		if data, err = os.ReadFile(path); err != nil {
			return err
		}
		if err = json.Unmarshal(data, into); err == nil {
			return nil
		}
		<-again.C
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// save writes JSON in place.
func save(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func stamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
