package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// identify makes an id that is the same for the same request, and another for
// every other request and agent: the ids of a reply are made from it.
func identify(req provider.Request) string {
	h := sha256.New()
	add := func(part string) {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	add(req.Agent.Session)
	add(req.Agent.ID)
	add(req.Agent.Name)
	add(strconv.Itoa(len(req.Messages)))
	if n := len(req.Messages); n > 0 {
		for _, b := range req.Messages[n-1].Content {
			add(b.ToolUseID)
			add(b.ResultText())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:11])
}

// estimate counts four bytes as a token. What the request before had in it
// counts as read from the cache.
func estimate(req provider.Request, reply transcript.Message) transcript.Usage {
	old, fresh := 0, 0
	for _, part := range req.System {
		old += len(part)
	}
	for _, t := range req.Tools {
		old += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	sent := 0 // messages of the request before: all up to the newest reply
	for i, m := range req.Messages {
		if m.Role == transcript.Assistant {
			sent = i
		}
	}
	if sent == 0 {
		old, fresh = 0, old
	}
	for i, m := range req.Messages {
		if i < sent {
			old += size(m)
		} else {
			fresh += size(m)
		}
	}
	return transcript.Usage{
		InputTokens: tokens(fresh), CacheReadInputTokens: tokens(old), OutputTokens: tokens(size(reply)),
	}
}

func tokens(bytes int) int { return (bytes + 3) / 4 }

func size(m transcript.Message) int {
	n := 0
	for _, b := range m.Content {
		n += len(b.Text) + len(b.Name) + len(b.Input) + len(b.Raw)
		for _, inner := range b.Content {
			n += len(inner.Text) + len(inner.Raw)
		}
	}
	return n
}
