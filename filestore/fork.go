package filestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"

	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/transcript"
)

// Fork copies what other programs wrote too, line by line.
func (ts *transcripts) Fork(ctx context.Context, from, to transcript.Ref, withReceipts bool) (err error) {
	defer wrap(&err, "fork session %s to %s", from, to)
	if err := checkRef(from); err != nil {
		return err
	}
	lines, err := ts.relabelled(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return transcript.ErrNotFound
	}
	var receipts map[string][]string
	if err == nil && withReceipts {
		receipts, err = ts.readReceipts(from)
	}
	if err != nil {
		return err
	}
	log, err := ts.open(ctx, to)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := log.Close(); closeErr != nil {
			ts.warn(closeErr) // the copy stands
		}
	}()
	if exists, err := ts.exists(ts.transcript(to)); err != nil {
		return err
	} else if exists {
		return &fs.PathError{Op: "write", Path: ts.transcript(to), Err: fs.ErrExist}
	}
	if len(receipts) > 0 {
		var copied bytes.Buffer
		for uuid, r := range receipts {
			copied.Write(jsonx.MustMarshal(receipt{uuid, r}))
			copied.WriteByte('\n')
		}
		if err := ts.writeNew(ts.side(to, "receipts"), copied.Bytes()); err != nil {
			return err
		}
	}
	return ts.writeNew(ts.transcript(to), lines)
}

// relabelled returns the whole lines of a transcript with the ids of another
// session.
func (ts *transcripts) relabelled(from, to transcript.Ref) ([]byte, error) {
	var out bytes.Buffer
	err := journal.Scan(ts.fsys, ts.transcript(from), math.MaxInt64, func(line []byte) error {
		var doc jsonx.Object
		if json.Unmarshal(line, &doc) != nil {
			return nil // torn
		}
		if doc.Has("sessionId") {
			relabel(&doc, to)
		}
		copied, err := doc.MarshalJSON()
		if err != nil {
			return err
		}
		out.Write(copied)
		out.WriteByte('\n')
		return nil
	})
	return out.Bytes(), err
}

func relabel(line *jsonx.Object, to transcript.Ref) {
	line.Set("sessionId", to.Session)
	if line.Has("isSidechain") {
		line.Set("isSidechain", to.Agent != "")
	}
	if to.Agent != "" {
		line.Set("agentId", to.Agent)
	} else {
		line.Delete("agentId")
	}
}
