package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// mailReader reads the mail of a team, again and again: an inbox is read once
// more only when its file has changed. One goroutine at a time may use it.
type mailReader struct {
	place
	known map[string]inboxRead // by the file's path
}

type inboxRead struct {
	size     int64
	modified time.Time
	messages []post
}

func newMailReader(p place) *mailReader { return &mailReader{p, make(map[string]inboxRead)} }

// all is the mail of a team, oldest first: that of its members, and of those who
// were. viewMember reports what cannot be read.
func (r *mailReader) all(ctx context.Context, c roster.Roster) []post {
	var all []post
	for _, name := range r.readers(c) {
		all = append(all, r.inbox(ctx, mailbox.Address{Team: c.Name, Agent: name})...)
	}
	byName(all, func(m post) string { return m.Timestamp })
	return all
}

func (r *mailReader) inbox(ctx context.Context, at mailbox.Address) []post {
	path := r.root.Inbox(at.Team, at.Agent)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	known, ok := r.known[path]
	if ok && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.messages
	}
	messages, err := r.Mail().All(ctx, at)
	if err != nil {
		return known.messages
	}
	read := inboxRead{size: info.Size(), modified: info.ModTime()}
	for _, m := range messages {
		read.messages = append(read.messages, post{at, m})
	}
	r.known[path] = read
	return read.messages
}

// readers are the names whose inboxes a team has. Those of agents that have left
// are known by their files alone.
func (r *mailReader) readers(c roster.Roster) []string {
	var names, files []string
	for _, m := range c.Members {
		names = append(names, m.Name)
		files = append(files, r.root.Inbox(c.Name, m.Name))
	}
	entries, _ := os.ReadDir(filepath.Dir(r.root.Inbox(c.Name, mailbox.LeadName))) // without inboxes there is no mail
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || e.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		if path := r.root.Inbox(c.Name, name); !slices.Contains(files, path) && filepath.Base(path) == e.Name() {
			names = append(names, name)
		}
	}
	return names
}
