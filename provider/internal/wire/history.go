package wire

import (
	"bytes"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// How much of old conversations is remembered, over all agents. A conversation
// that was forgotten is encoded anew, which costs a few milliseconds per
// megabyte; the newest is always remembered.
const (
	maxHistories    = 64
	maxHistoryBytes = 16 << 20
)

// Encode appends the encoding of a message to dst: each of the dialect's own
// messages with a comma before it. Bare leaves out what the server may have
// come to refuse (see [Histories.Strip]).
type Encode func(dst []byte, m transcript.Message, bare bool) []byte

// Histories encodes conversations, and remembers the encodings, because each
// request of an agent repeats all of the one before. Messages are compared by
// value, so a conversation may be rebuilt, cut or changed at will; what a message
// holds must not be changed in place. It is safe for use by many goroutines.
type Histories struct {
	encode Encode

	mu    sync.Mutex
	known map[provider.Agent]*history
	bytes int // of all buffers
	clock int // counts uses
}

// NewHistories makes an empty memory for one dialect.
func NewHistories(encode Encode) *Histories {
	return &Histories{encode: encode, known: make(map[provider.Agent]*history)}
}

// Encoded is the encoding of a conversation. It is not changed any more.
type Encoded struct {
	Bytes []byte // the first one is a comma
	Ends  []int  // where the encoding of each message ends
	Bare  int    // messages before this one were encoded bare
}

// history is what is remembered of one conversation. Bytes and ends are only
// ever appended to: what was handed out may still be on its way to a server.
type history struct {
	messages []transcript.Message
	Encoded
	used int
}

// Encode encodes the conversation of an agent.
func (h *Histories) Encode(agent provider.Agent, messages []transcript.Message) Encoded {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := h.known[agent]
	if own == nil {
		own = &history{}
		h.known[agent] = own
	}
	h.bytes -= cap(own.Bytes)
	own.cut(own.common(messages))
	own.extend(messages, h.encode)
	h.bytes += cap(own.Bytes)
	h.clock++
	own.used = h.clock
	h.forget(own)
	return Encoded{Bytes: slices.Clip(own.Bytes), Ends: slices.Clip(own.Ends), Bare: own.Bare}
}

// Strip makes the messages that the agent has sent so far bare from now on.
func (h *Histories) Strip(agent provider.Agent, messages int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if own := h.known[agent]; own != nil {
		own.cut(0)
		own.Bare = messages
	}
}

// forget drops the conversations not used for longest until the rest is small
// enough.
func (h *Histories) forget(keep *history) {
	for len(h.known) > maxHistories || h.bytes > maxHistoryBytes {
		var oldest *history
		var whose provider.Agent
		for agent, own := range h.known {
			if own != keep && (oldest == nil || own.used < oldest.used) {
				oldest, whose = own, agent
			}
		}
		if oldest == nil {
			return
		}
		h.bytes -= cap(oldest.Bytes)
		delete(h.known, whose)
	}
}

// common is how many messages from the start are those already encoded.
func (h *history) common(messages []transcript.Message) int {
	n := min(len(messages), len(h.messages))
	for i := range n {
		if messages[i].Role != h.messages[i].Role || !sameBlocks(messages[i].Content, h.messages[i].Content) {
			return i
		}
	}
	return n
}

// cut forgets the messages from n on. The next append copies: the bytes behind
// may be on their way.
func (h *history) cut(n int) {
	if n == len(h.messages) {
		return
	}
	end := 0
	if n > 0 {
		end = h.Ends[n-1]
	}
	h.messages = slices.Delete(h.messages, n, len(h.messages))
	h.Bytes, h.Ends = h.Bytes[:end:end], h.Ends[:n:n]
	if n < h.Bare {
		h.Bare = 0 // another conversation
	}
}

func (h *history) extend(messages []transcript.Message, encode Encode) {
	for i := len(h.messages); i < len(messages); i++ {
		m := messages[i]
		h.messages = append(h.messages, m)
		h.Bytes = encode(h.Bytes, m, i < h.Bare)
		h.Ends = append(h.Ends, len(h.Bytes))
	}
}

func sameBlocks(a, b []transcript.Block) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true // a conversation that only grew: no turn may cost more for those before
	}
	for i := range a {
		if !sameBlock(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameBlock(a, b *transcript.Block) bool {
	return a.Type == b.Type && a.Text == b.Text && a.Signature == b.Signature && a.Data == b.Data &&
		a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Input, b.Input) &&
		a.ToolUseID == b.ToolUseID && a.IsError == b.IsError &&
		(a.Content == nil) == (b.Content == nil) && sameBlocks(a.Content, b.Content) && bytes.Equal(a.Raw, b.Raw)
}
