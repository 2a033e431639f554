// Package openai is the Chat Completions API as a [provider.Model], over the
// official SDK: OpenAI's own, and the many servers that speak its dialect
// (Ollama, vLLM, llama.cpp, LM Studio, gateways), with their liberties.
//
// As in package anthropic, the SDK is the transport; bodies and answers are
// handled here, because servers differ in ways that the SDK's types do not take:
// arguments that are an object, calls without an index, no usage, no [DONE].
package openai

import (
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1/"

// Options configure a Model. Nothing is read from the environment.
type Options struct {
	BaseURL string // "" is DefaultBaseURL; chat/completions is added to it
	APIKey  string // sent as a bearer token; "" sends none, for local servers

	HTTPClient *http.Client // nil: one that honours the proxy variables; redirects are not followed unless it says so
	UserAgent  string       // "" leaves the SDK's

	Retry    provider.RetryPolicy
	Idle     time.Duration // longest gap within an answer; 0 is provider.DefaultIdle
	Patience time.Duration // longest wait for its beginning; 0 is provider.DefaultPatience
}

// Model answers requests through Chat Completions. Thinking budgets are not
// sent: the API knows none. It is safe for use by many goroutines, and should be
// shared by all agents that use one key.
type Model struct {
	endpoint  wire.Endpoint
	retrier   *provider.Retrier
	histories *wire.Histories
	toolsets  *wire.Toolsets
	ownAPI    bool // OpenAI's, which has replaced max_tokens
}

// New makes a Model. The error is a [*provider.Error] about the base URL.
func New(o Options) (*Model, error) {
	base, host, err := wire.BaseURL(o.BaseURL, DefaultBaseURL)
	if err != nil {
		return nil, err
	}
	key := wire.Secret(o.APIKey)
	// Not NewClient, which reads a dozen variables of the environment.
	client := &sdk.Client{Options: clientOptions(o, base, key)}
	return &Model{
		endpoint: wire.Endpoint{
			Send:    sender(client),
			Host:    host,
			Secrets: []string{key},
			Limits:  wire.Limits{Idle: o.Idle, Patience: o.Patience}.WithDefaults(),
		},
		retrier:   provider.NewRetrier(o.Retry),
		histories: wire.NewHistories(appendMessage),
		toolsets:  wire.NewToolsets(encodeTools),
		ownAPI:    host == "api.openai.com",
	}, nil
}

func clientOptions(o Options, base, key string) []option.RequestOption {
	options := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(wire.Client(o.HTTPClient)),
		option.WithMaxRetries(0), // provider.Retrier retries, visibly
		option.WithHeader("Accept", "text/event-stream"),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	if o.UserAgent != "" {
		options = append(options, option.WithHeader("User-Agent", o.UserAgent))
	}
	return slices.Clip(options)
}

// sender sends a body that is already encoded.
func sender(client *sdk.Client) func(context.Context, io.Reader, wire.Middleware) (*http.Response, error) {
	return func(ctx context.Context, body io.Reader, m wire.Middleware) (resp *http.Response, err error) {
		err = client.Execute(ctx, http.MethodPost, "chat/completions", body, &resp, option.WithMiddleware(m))
		return resp, err
	}
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return m.retrier.Stream(ctx, func(ctx context.Context, emit func(provider.Event) bool) error {
		return m.endpoint.Exchange(ctx, m.body(req), newAnswer(req.Model), emit)
	})
}
