package provider

import (
	"math"
	"testing"

	"github.com/cadre-dev/cadre/transcript"
)

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		name, id string
		known    bool
		context  int
	}{
		{"sonnet", "claude-sonnet-5-5", true, 1_000_000},
		{"Opus", "claude-opus-4-6", true, 1_000_000},
		{"haiku", "claude-haiku-4-5-20251001", true, 200_000},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929", true, 200_000},
		{"claude-sonnet-4-5", "claude-sonnet-4-5", true, 200_000},
		{"claude-haiku-4-5-20991231", "claude-haiku-4-5-20991231", true, 200_000},
		{"claude-opus-4-6-20260205", "claude-opus-4-6-20260205", true, 1_000_000},
		{"claude-sonnet-4-5@20250929", "claude-sonnet-4-5@20250929", true, 200_000},
		{"gpt-5-mini-2025-08-07", "gpt-5-mini-2025-08-07", true, 400_000},
		{"gpt-5", "gpt-5", true, 400_000},
		{"gpt-5-nano", "gpt-5-nano", false, 0}, // no prefix of a name stands for another model
		{"claude-opus-4-6-fast", "claude-opus-4-6-fast", false, 0},
		{"llama3", "llama3", false, 0},
		{"", "", false, 0},
	} {
		info, known := Lookup(c.name)
		if known != c.known || info.ID != c.id || info.Context != c.context {
			t.Errorf("Lookup(%q) = %+v, %v", c.name, info, known)
		}
	}
}

func TestEveryModelIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range models {
		if seen[m.ID] {
			t.Errorf("%s stands twice", m.ID)
		}
		seen[m.ID] = true
		prices := []Price{m.Price}
		if m.LongPrompt > 0 {
			prices = append(prices, m.LongPrice)
		}
		for _, p := range prices {
			if p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead >= p.Input || p.CacheWrite < p.Input {
				t.Errorf("%s: prices %+v", m.ID, p)
			}
		}
		if m.MaxOutput <= 0 || m.Context <= m.MaxOutput || (m.API != Anthropic && m.API != OpenAI) {
			t.Errorf("%+v", m)
		}
	}
	for alias, id := range aliases {
		if !seen[id] {
			t.Errorf("%s stands for %s, which the table does not have", alias, id)
		}
	}
}

func TestCost(t *testing.T) {
	usage := transcript.Usage{InputTokens: 1000, OutputTokens: 2000, CacheCreationInputTokens: 3000, CacheReadInputTokens: 4000}
	for _, c := range []struct {
		model string
		usage transcript.Usage
		want  float64
		known bool
	}{
		{"claude-sonnet-4-5", usage, (1000*3 + 2000*15 + 3000*3.75 + 4000*0.3) / 1e6, true},
		{"claude-haiku-5-5", usage, (1000*0.1 + 2000*0.5 + 3000*0.125 + 4000*0.01) / 1e6, true},
		{"claude-haiku-5-5", transcript.Usage{InputTokens: 1, CacheReadInputTokens: 100_000, OutputTokens: 1}, (1*0.5 + 100_000*0.05 + 1*2.5) / 1e6, true},
		{"claude-haiku-5-5", transcript.Usage{CacheReadInputTokens: 100_000}, 100_000 * 0.01 / 1e6, true},
		{"gpt-5-2025-08-07", transcript.Usage{InputTokens: 1e6}, 1.25, true},
		{"llama3", usage, 0, false},
	} {
		if got, known := Cost(c.model, c.usage); math.Abs(got-c.want) > 1e-12 || known != c.known {
			t.Errorf("Cost(%s) = %v, %v; want %v, %v", c.model, got, known, c.want, c.known)
		}
	}
}
