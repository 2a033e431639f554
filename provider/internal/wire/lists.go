package wire

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/provider"
)

// maxLists is how many lists are remembered: those of a lead, its teammates, and a
// few kinds of sub-agents.
const maxLists = 16

// Lists encodes the lists that requests begin with (tools, the blocks of the system
// prompt), and remembers the encodings: they are long, few, and must be byte-identical
// from request to request. It is safe for use by many goroutines.
type Lists[T any] struct {
	encode func([]T) []byte
	same   func(a, b T) bool

	mu    sync.Mutex
	known []knownList[T] // the newest last
}

type knownList[T any] struct {
	items   []T
	encoded []byte
}

// NewToolLists makes an empty memory for the tools of one dialect.
func NewToolLists(encode func([]provider.Tool) []byte) *Lists[provider.Tool] {
	return &Lists[provider.Tool]{encode: encode, same: sameTool}
}

// NewTextLists makes an empty memory for the system prompts of one dialect.
func NewTextLists(encode func([]string) []byte) *Lists[string] {
	return &Lists[string]{encode: encode, same: func(a, b string) bool { return a == b }}
}

// BufferForTexts is an empty buffer for the encoding of texts, large enough not to
// grow as a rule: the first request of a run waits for it.
func BufferForTexts(texts []string) []byte {
	size := 128
	for _, text := range texts {
		size += len(text) + 128
	}
	return make([]byte, 0, size+size/16)
}

// BufferFor is one for the encoding of tools.
func BufferFor(tools []provider.Tool) []byte {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema) + 128
	}
	return make([]byte, 0, size+size/16)
}

// Encode returns the encoding of a list, which the caller must not change.
func (l *Lists[T]) Encode(items []T) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range slices.Backward(l.known) {
		if slices.EqualFunc(known.items, items, l.same) {
			return known.encoded
		}
	}
	encoded := l.encode(items)
	if len(l.known) == maxLists {
		l.known = slices.Delete(l.known, 0, 1)
	}
	l.known = append(l.known, knownList[T]{slices.Clone(items), encoded})
	return encoded
}

func sameTool(a, b provider.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
