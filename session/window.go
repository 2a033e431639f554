package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// What is not known of a request before the model has counted it is estimated, on the
// safe side: text of many short words, of figures or of another script has few bytes
// per token.
const (
	bytesPerToken = 2
	toolTokens    = 20_000 // of all tools
	imageTokens   = 2_000
)

// leastShown is how much of a message a model is shown however full its window is.
const leastShown = 4 << 10

// portion removes from the waiting input what goes into the next request.
func (o *owner) portion() []Input {
	if !slices.ContainsFunc(o.intake.pending, func(in Input) bool { return in.Bulk }) {
		return o.intake.portion(0) // there is nothing to measure
	}
	return o.intake.portion(o.room())
}

// room is how much bulk input, in bytes, the context window of the model still takes
// beside the conversation and an answer. Of a model that we do not know it is all that
// may be given at once.
func (o *owner) room() int {
	info, known := provider.Lookup(o.cfg.ModelName)
	if !known || info.Context == 0 {
		return MaxBulk
	}
	left := info.Context - info.MaxOutput - o.usedTokens()
	return min(MaxBulk, max(0, left)*bytesPerToken)
}

// usedTokens is how long the next request is without further input: what the model
// counted last, and an estimate of what has come since.
func (o *owner) usedTokens() int {
	since := 0
	counted := func(m transcript.Message) bool {
		u := m.Usage
		total := u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens + u.OutputTokens
		if m.Role == transcript.Assistant && total > 0 {
			since += total
			return true
		}
		since += tokensOf(m.Content)
		return false
	}
	if o.turn != nil {
		for _, e := range slices.Backward(o.turn.entries) {
			if counted(e.Message) {
				return since
			}
		}
	}
	for _, m := range slices.Backward(o.conversation) {
		if counted(m) {
			return since
		}
	}
	for _, text := range o.cfg.System {
		since += len(text) / bytesPerToken
	}
	return since + toolTokens
}

// tokensOf is an estimate of the length of blocks.
func tokensOf(blocks []transcript.Block) (n int) {
	for _, b := range blocks {
		n += (len(b.Text)+len(b.Input))/bytesPerToken + tokensOf(b.Content)
		if b.Type == transcript.Image {
			n += imageTokens
		}
	}
	return n
}

// cut is input of which no more than room is shown, with a word about where the whole
// of it can be read.
func (in Input) cut(room int) Input {
	room = max(room, leastShown)
	if in.WholeAt == "" || in.size() <= room {
		return in
	}
	at := slices.IndexFunc(in.Content, func(b transcript.Block) bool { return len(b.Text) > room/2 })
	if at < 0 {
		return in
	}
	in.Content = slices.Clone(in.Content)
	text := in.Content[at].Text
	over := in.size() - room
	if over >= len(text) {
		over = len(text) - leastShown/2
	}
	head := (len(text) - over) * 3 / 4 // the rest is its end, where its wrapper is closed
	in.Content[at].Text = strings.ToValidUTF8(text[:head], "") + fmt.Sprintf("\n[… %d bytes are left out here …]\n", over) +
		strings.ToValidUTF8(text[head+over:], "")
	in.Content = append(in.Content, transcript.TextBlock(prompt.Reminder(
		"Your context window has no room for the whole message above. It stands in "+in.WholeAt+": read there what you need of it.")))
	return in
}
