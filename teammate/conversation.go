package teammate

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

// Conversations are where the conversations of teammates are stored, with what belongs
// to them.
type Conversations struct {
	Transcripts transcript.Store
	Asks        func(transcript.Ref) ask.Store
	Jobs        func(transcript.Ref) job.Store
	Desk        ask.Desk
}

// MakeMain makes the conversation of a teammate one that a process of its own can
// resume, and returns its session id ([Program].Resume). The conversation of one that
// ran inside its lead's process is copied into a main session, with the receipts of the
// mail that it was shown, its open questions and its jobs.
func (c Conversations) MakeMain(ctx context.Context, record roster.AgentRecord) (string, error) {
	if record.AgentID == "" {
		return record.SessionID, nil
	}
	kept := conversationRef(record)
	own := transcript.Ref{Project: record.Project, Session: ids.UUID()}
	if err := c.Transcripts.Fork(ctx, kept, own, true); err != nil {
		return "", err
	}
	return own.Session, errors.Join(c.copyAsks(ctx, kept, own), c.copyJobs(ctx, kept, own))
}

// conversationRef is where a teammate's conversation is stored.
func conversationRef(record roster.AgentRecord) transcript.Ref {
	return transcript.Ref{Project: record.Project, Session: record.SessionID, Agent: record.AgentID}
}

// Shown lists the receipts in a teammate's conversation; none when nothing of it is
// stored.
func (c Conversations) Shown(ctx context.Context, record roster.AgentRecord) ([]mailbox.ID, error) {
	entries, err := c.Transcripts.Read(ctx, conversationRef(record))
	if errors.Is(err, transcript.ErrNotFound) {
		return nil, nil
	}
	var shown []mailbox.ID
	for _, e := range entries {
		shown = append(shown, mailIDs(e.Receipts)...)
	}
	return shown, err
}

// Exists reports whether anything of a teammate's conversation is stored.
func (c Conversations) Exists(ctx context.Context, record roster.AgentRecord) (bool, error) {
	return c.Transcripts.Exists(ctx, conversationRef(record))
}

// copyAsks makes the open questions of a session those of its copy.
func (c Conversations) copyAsks(ctx context.Context, from, to transcript.Ref) error {
	open, err := c.Asks(from).Pending(ctx)
	if err != nil {
		return err
	}
	kept := c.Asks(to)
	for _, a := range open {
		a.SessionID, a.AgentID = to.Session, to.Agent
		if err := kept.Put(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// copyJobs keeps the jobs of a session for its copy too.
func (c Conversations) copyJobs(ctx context.Context, from, to transcript.Ref) error {
	past, err := c.Jobs(from).All(ctx)
	if err != nil {
		return err
	}
	kept := c.Jobs(to)
	for _, j := range past {
		if err := kept.Begin(ctx, j); err != nil {
			return err
		}
		if j.End == nil {
			continue // it is the copy's to settle
		}
		if err := kept.End(ctx, j.ID, *j.End); err != nil {
			return err
		}
	}
	return nil
}
