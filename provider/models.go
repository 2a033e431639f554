package provider

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/transcript"
)

// The APIs that serve the models of the table.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// ModelInfo is what we know of a model.
type ModelInfo struct {
	ID        string // as the API knows it
	API       string // Anthropic or OpenAI
	Context   int    // tokens of prompt and answer together
	MaxOutput int    // tokens of an answer
	// Adaptive models decide themselves how long to think and refuse a budget.
	Adaptive bool
	Price    Price
	// LongPrice replaces Price, for the whole request, when the prompt is
	// longer than LongPrompt tokens; LongPrompt 0 means never.
	LongPrompt int
	LongPrice  Price
}

// Price is in US dollars per million tokens.
type Price struct {
	Input, Output         float64
	CacheWrite, CacheRead float64 // write: kept for five minutes
}

// Lookup finds a model by its id, by an alias (sonnet, opus, haiku, or an id
// without its date), or by an id that carries a date the table does not know.
// The ID of the result is what to send: for an alias of ours the id it stands
// for, else name itself. It reports whether the model is known.
func Lookup(name string) (ModelInfo, bool) {
	if id, ok := aliases[strings.ToLower(name)]; ok {
		name = id
	}
	info, ok := byID()[name]
	if !ok {
		info, ok = byID()[undated(name)]
	}
	info.ID = name
	return info, ok
}

// Names are the names of the models that we know something of: the aliases, then the
// ids, newest first.
func Names() []string {
	names := slices.Sorted(maps.Keys(aliases))
	for _, info := range models {
		names = append(names, info.ID)
	}
	return names
}

// byID finds a model by its id and by its id without the date.
var byID = sync.OnceValue(func() map[string]ModelInfo {
	index := make(map[string]ModelInfo, 2*len(models))
	for _, info := range models {
		index[info.ID], index[undated(info.ID)] = info, info
	}
	return index
})

// snapshots is how ids of dated versions end; 0 stands for a digit.
var snapshots = []string{"-00000000", "@00000000", "-0000-00-00", "-latest"}

func undated(id string) string {
	digits := strings.Map(func(r rune) rune {
		if r >= '1' && r <= '9' {
			return '0'
		}
		return r
	}, id)
	for _, ending := range snapshots {
		if strings.HasSuffix(digits, ending) {
			return id[:len(id)-len(ending)]
		}
	}
	return id
}

// Cost is what one request cost, in US dollars. Usages of several requests must
// be priced one by one: some models price by the length of the prompt. known is
// false when the table has no price for the model; then the cost is 0.
func Cost(model string, usage transcript.Usage) (usd float64, known bool) {
	info, ok := Lookup(model)
	if !ok {
		return 0, false
	}
	price := info.Price
	if prompt := usage.InputTokens + usage.CacheCreationInputTokens + usage.CacheReadInputTokens; info.LongPrompt > 0 && prompt > info.LongPrompt {
		price = info.LongPrice
	}
	return (float64(usage.InputTokens)*price.Input +
		float64(usage.OutputTokens)*price.Output +
		float64(usage.CacheCreationInputTokens)*price.CacheWrite +
		float64(usage.CacheReadInputTokens)*price.CacheRead) / 1e6, true
}
