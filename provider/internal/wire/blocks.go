package wire

import (
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/transcript"
)

// UniqueIDs gives calls whose id is empty, or stands twice in the reply, a new
// one that begins with prefix.
func UniqueIDs(blocks []transcript.Block, prefix string) {
	seen := make(map[string]bool)
	for i, b := range blocks {
		if b.Type != transcript.ToolUse {
			continue
		}
		if b.ID == "" || seen[b.ID] {
			blocks[i].ID = prefix + ids.Hex(24)
		}
		seen[blocks[i].ID] = true
	}
}

// MessageID is id, or a new one for servers that give none: the blocks of a
// stored reply are held together by it.
func MessageID(id, prefix string) string {
	if id == "" {
		return prefix + ids.Hex(24)
	}
	return id
}
