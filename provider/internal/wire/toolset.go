package wire

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/provider"
)

// maxToolsets is how many lists of tools are remembered: those of a lead, its
// teammates, and a few kinds of sub-agents.
const maxToolsets = 16

// Toolsets encodes lists of tools, and remembers the encodings: they are long,
// few, and must be byte-identical from request to request. It is safe for use
// by many goroutines.
type Toolsets struct {
	encode func([]provider.Tool) []byte

	mu    sync.Mutex
	known []toolset // the newest last
}

type toolset struct {
	tools   []provider.Tool
	encoded []byte
}

// NewToolsets makes an empty memory for one dialect.
func NewToolsets(encode func([]provider.Tool) []byte) *Toolsets { return &Toolsets{encode: encode} }

// BufferFor is an empty buffer for the encoding of tools, large enough not to
// grow as a rule: the first request of a run waits for it.
func BufferFor(tools []provider.Tool) []byte {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + 128
	}
	return make([]byte, 0, size+size/16)
}

// Encode returns the encoding of tools, which the caller must not change.
func (t *Toolsets) Encode(tools []provider.Tool) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range slices.Backward(t.known) {
		if slices.EqualFunc(known.tools, tools, sameTool) {
			return known.encoded
		}
	}
	encoded := t.encode(tools)
	if len(t.known) == maxToolsets {
		t.known = slices.Delete(t.known, 0, 1)
	}
	t.known = append(t.known, toolset{slices.Clone(tools), encoded})
	return encoded
}

func sameTool(a, b provider.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
