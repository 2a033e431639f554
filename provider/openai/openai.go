// Package openai is the Chat Completions API as a [provider.Model]: OpenAI's
// own, and the many servers that speak its dialect (Ollama, vLLM, llama.cpp, LM
// Studio, gateways), with their liberties.
//
// Bodies and answers are handled here, because servers differ in ways that the
// official SDK's types do not allow: arguments that are an object, calls without
// an index, no usage, no [DONE]. What would be left of the SDK is one POST, and
// for that its start-up costs every run of the program 1.2 ms, more than all of
// ours. So it is linked into the tests only, which hold bodies to its types.
// What goes over HTTP is the same as in package anthropic: internal/wire.
package openai

import (
	"context"
	"iter"
	"net/http"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1/"

// Options configure a Model. Nothing is read from the environment; errors name
// the variables that users set these things by.
type Options struct {
	BaseURL string // "" is DefaultBaseURL; chat/completions is added to it
	APIKey  string // sent as a bearer token; "" sends none, for local servers

	HTTPClient *http.Client // nil: one that honours the proxy variables; redirects are not followed unless it says so
	UserAgent  string       // "" leaves Go's

	Retry  provider.RetryPolicy
	Limits provider.Limits
}

// Model answers requests through Chat Completions. Thinking budgets are not
// sent: the API knows none. It is safe for use by many goroutines, and should be
// shared by all agents that use one key.
type Model struct {
	endpoint  *wire.Endpoint
	retrier   *provider.Retrier
	histories *wire.Histories
	tools     *wire.Lists[provider.Tool]
	systems   *wire.Lists[string]
	ownAPI    bool // OpenAI's, which has replaced max_tokens
}

// New makes a Model. The error is a [*provider.Error] about the base URL or a key.
func New(o Options) (*Model, error) {
	key := wire.Secret(o.APIKey)
	endpoint, err := wire.NewEndpoint(wire.API{
		BaseURL: o.BaseURL, Default: DefaultBaseURL, Path: "chat/completions",
		Header:    http.Header{"Authorization": {wire.Bearer(key)}, "User-Agent": {o.UserAgent}},
		Secrets:   []string{key},
		Variables: wire.Variables{BaseURL: "OPENAI_BASE_URL", Keys: []string{"OPENAI_API_KEY"}, NoKey: key == ""},
		Client:    o.HTTPClient, Limits: o.Limits,
	})
	if err != nil {
		return nil, err
	}
	return &Model{
		endpoint:  endpoint,
		retrier:   provider.NewRetrier(o.Retry),
		histories: wire.NewHistories(appendMessage),
		tools:     wire.NewToolLists(encodeTools),
		systems:   wire.NewTextLists(encodeSystem),
		ownAPI:    endpoint.Host() == "api.openai.com",
	}, nil
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return m.retrier.Stream(ctx, req.Outage, func(ctx context.Context, emit func(provider.Event) bool) error {
		return m.endpoint.Exchange(ctx, m.body(req), newAnswer(req.Model), emit)
	})
}
