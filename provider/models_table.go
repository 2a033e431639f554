package provider

// aliases are the short names of models. The ids are those that Claude Code's
// files show (facts: claude-code §2.1, §4), but for sonnet: what they show for it
// ends in November 2026, and the official SDK names this as its successor.
var aliases = map[string]string{
	"sonnet": "claude-sonnet-5-5",
	"opus":   "claude-opus-4-6",
	"haiku":  "claude-haiku-4-5-20251001",
}

// Sizes of context windows and answers, in tokens.
const (
	k64, k128, k200, k400 = 64_000, 128_000, 200_000, 400_000
	m1                    = 1_000_000
	m105                  = 1_050_000
)

// models is the one place for limits and prices, newest first: the price lists that Anthropic
// and OpenAI publish, as of November 2026. Cache writes of Anthropic's models
// are those that last five minutes, the only ones we ask for.
var models = []ModelInfo{
	{ID: "claude-fable-5-1", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{10, 50, 12.5, 0.25}},
	{ID: "claude-fable-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{10, 50, 12.5, 1}},
	{ID: "claude-opus-5-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{4, 20, 5, 0.2}},
	{ID: "claude-opus-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{5, 25, 6.25, 0.5}},
	{ID: "claude-opus-4-8", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{5, 25, 6.25, 0.5}},
	{ID: "claude-opus-4-7", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{5, 25, 6.25, 0.5}},
	{ID: "claude-opus-4-6", API: Anthropic, Context: m1, MaxOutput: k128, Price: Price{5, 25, 6.25, 0.5}},
	{ID: "claude-opus-4-5-20251101", API: Anthropic, Context: k200, MaxOutput: k64, Price: Price{5, 25, 6.25, 0.5}},
	{ID: "claude-sonnet-5-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{2, 10, 2.5, 0.1}},
	{ID: "claude-sonnet-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{2, 10, 2.5, 0.2}},
	{ID: "claude-sonnet-4-6", API: Anthropic, Context: m1, MaxOutput: k128, Price: Price{3, 15, 3.75, 0.3}},
	{ID: "claude-sonnet-4-5-20250929", API: Anthropic, Context: k200, MaxOutput: k64, Price: Price{3, 15, 3.75, 0.3}},
	{ID: "claude-haiku-5-5", API: Anthropic, Context: m1, MaxOutput: k128, Adaptive: true, Price: Price{0.1, 0.5, 0.125, 0.01},
		LongPrompt: 100_000, LongPrice: Price{0.5, 2.5, 0.625, 0.05}},
	{ID: "claude-haiku-4-5-20251001", API: Anthropic, Context: k200, MaxOutput: k64, Price: Price{1, 5, 1.25, 0.1}},

	{ID: "gpt-6.1-sol", API: OpenAI, Context: m105, MaxOutput: k128, Price: Price{2, 10, 2.5, 0.1},
		LongPrompt: 272_000, LongPrice: Price{4, 15, 5, 0.2}},
	{ID: "gpt-6-sol", API: OpenAI, Context: m105, MaxOutput: k128, Price: Price{2, 10, 2.5, 0.2},
		LongPrompt: 272_000, LongPrice: Price{4, 15, 5, 0.4}},
	{ID: "gpt-6-luna", API: OpenAI, Context: m105, MaxOutput: k128, Price: Price{0.1, 0.5, 0.125, 0.01},
		LongPrompt: 272_000, LongPrice: Price{0.2, 0.75, 0.25, 0.02}},
	{ID: "gpt-5.6-luna", API: OpenAI, Context: m105, MaxOutput: k128, Price: Price{0.2, 1.2, 0.25, 0.02},
		LongPrompt: 272_000, LongPrice: Price{0.4, 1.8, 0.5, 0.04}},
	{ID: "gpt-5.4", API: OpenAI, Context: m105, MaxOutput: k128, Price: Price{2.5, 15, 2.5, 0.25},
		LongPrompt: 272_000, LongPrice: Price{5, 22.5, 5, 0.5}},
	{ID: "gpt-5.4-mini", API: OpenAI, Context: k400, MaxOutput: k128, Price: Price{0.75, 4.5, 0.75, 0.075}},
	{ID: "gpt-5", API: OpenAI, Context: k400, MaxOutput: k128, Price: Price{1.25, 10, 1.25, 0.125}},
	{ID: "gpt-5-mini", API: OpenAI, Context: k400, MaxOutput: k128, Price: Price{0.25, 2, 0.25, 0.025}},
	{ID: "gpt-4.1", API: OpenAI, Context: 1_047_576, MaxOutput: 32_768, Price: Price{2, 8, 2, 0.5}},
	{ID: "gpt-4.1-mini", API: OpenAI, Context: 1_047_576, MaxOutput: 32_768, Price: Price{0.4, 1.6, 0.4, 0.1}},
	{ID: "gpt-4o", API: OpenAI, Context: k128, MaxOutput: 16_384, Price: Price{2.5, 10, 2.5, 1.25}},
	{ID: "gpt-4o-mini", API: OpenAI, Context: k128, MaxOutput: 16_384, Price: Price{0.15, 0.6, 0.15, 0.075}},
}
