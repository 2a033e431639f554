package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/transcript"
)

// log implements [transcript.Log].
type log struct {
	*Store
	ref      transcript.Ref
	lease    *lease.Lease
	lines    *journal
	receipts *journal
}

func (l *log) Entries(context.Context) ([]transcript.Entry, error) {
	entries, err := l.read(l.ref, l.lines.visible())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read transcript %s: %w", l.ref, err)
	}
	return entries, nil
}

func (l *log) Append(ctx context.Context, entries ...transcript.Entry) error {
	if err := l.append(ctx, entries); err != nil {
		return fmt.Errorf("append to transcript %s: %w", l.ref, err)
	}
	return nil
}

func (l *log) append(ctx context.Context, entries []transcript.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var lines, receipts []byte
	for _, e := range entries {
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
		if len(e.Receipts) > 0 {
			receipts = append(append(receipts, jsonx.MustMarshal(receipt{e.UUID, e.Receipts})...), '\n')
		}
	}
	if len(lines) == 0 {
		return nil
	}
	// Receipts first: without its entry a receipt counts for nothing, but an
	// entry without its receipts would be shown twice after a kill.
	if len(receipts) > 0 {
		if err := l.receipts.append(receipts); err != nil {
			return err
		}
	}
	return l.lines.append(lines)
}

// Rest closes the files until the next Append, so that a log at rest holds no more
// than its lease: one open file.
func (l *log) Rest() error {
	if err := errors.Join(l.lines.close(), l.receipts.close()); err != nil {
		return fmt.Errorf("let transcript %s rest: %w", l.ref, err)
	}
	return nil
}

func (l *log) Close() error {
	if err := errors.Join(l.lines.close(), l.receipts.close(), l.lease.Release()); err != nil {
		return fmt.Errorf("close transcript %s: %w", l.ref, err)
	}
	return nil
}
