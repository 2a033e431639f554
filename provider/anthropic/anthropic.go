// Package anthropic is the Messages API as a [provider.Model], over the
// official SDK.
//
// Of the SDK it uses the transport: base URL, headers, authentication, version.
// It does not use the SDK's types for the conversation, because building and
// encoding them anew for each request costs more, at a thousand rounds, than
// everything else that cadre does in a round: bodies are written by request.go
// from encodings that are kept, answers are read by answer.go. Tests hold both
// to the SDK's types.
package anthropic

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com/"

// Options configure a Model. Nothing is read from the environment.
type Options struct {
	BaseURL   string // "" is DefaultBaseURL; paths like v1/messages are added to it
	APIKey    string // sent as x-api-key; "" sends none
	AuthToken string // sent as a bearer token; "" sends none

	HTTPClient *http.Client // nil: one that honours the proxy variables; redirects are not followed unless it says so
	UserAgent  string       // "" leaves the SDK's

	Retry  provider.RetryPolicy
	Limits provider.Limits
}

// Model answers requests through the Messages API. It is safe for use by many
// goroutines, and should be shared by all agents that use one key: they share
// its connections, and its waiting when the API asks for less.
type Model struct {
	endpoint  wire.Endpoint
	retrier   *provider.Retrier
	histories *wire.Histories
	toolsets  *wire.Toolsets
}

// New makes a Model. The error is a [*provider.Error] about the base URL.
func New(o Options) (*Model, error) {
	base, host, err := wire.BaseURL(o.BaseURL, DefaultBaseURL)
	if err != nil {
		return nil, err
	}
	key, token := wire.Secret(o.APIKey), wire.Secret(o.AuthToken)
	client := sdk.NewClient(clientOptions(o, base, key, token)...)
	return &Model{
		endpoint: wire.Endpoint{
			Send:    sender(client),
			Host:    host,
			Secrets: []string{key, token},
			Limits:  o.Limits.WithDefaults(),
		},
		retrier:   provider.NewRetrier(o.Retry),
		histories: wire.NewHistories(appendMessage),
		toolsets:  wire.NewToolsets(encodeTools),
	}, nil
}

func clientOptions(o Options, base, key, token string) []option.RequestOption {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(), // spans of the SDK would carry what users did not ask to be told
		option.WithBaseURL(base),
		option.WithHTTPClient(wire.Client(o.HTTPClient)),
		option.WithMaxRetries(0), // provider.Retrier retries, visibly
		option.WithHeader("Accept", "text/event-stream"),
	}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	if token != "" {
		options = append(options, option.WithAuthToken(token))
	}
	if o.UserAgent != "" {
		options = append(options, option.WithHeader("User-Agent", o.UserAgent))
	}
	return slices.Clip(options)
}

// sender sends a body that is already encoded. NewStreaming is not used: it
// sets "stream" in the body by parsing and copying all of it.
func sender(client sdk.Client) func(context.Context, io.Reader, wire.Middleware) (*http.Response, error) {
	return func(ctx context.Context, body io.Reader, m wire.Middleware) (resp *http.Response, err error) {
		err = client.Execute(ctx, http.MethodPost, "v1/messages", body, &resp, option.WithMiddleware(m))
		return resp, err
	}
}

// Stream implements [provider.Model].
func (m *Model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return m.retrier.Stream(ctx, req.Outage, func(ctx context.Context, emit func(provider.Event) bool) error {
		err := m.attempt(ctx, req, emit)
		if !thoughtsRefused(err) {
			return err
		}
		m.histories.Strip(req.Agent, len(req.Messages))
		return m.attempt(ctx, req, emit)
	})
}

func (m *Model) attempt(ctx context.Context, req provider.Request, emit func(provider.Event) bool) error {
	return m.endpoint.Exchange(ctx, m.body(req), newAnswer(req.Model), emit)
}

// thoughtsRefused reports whether the API refuses thinking blocks because what
// stood before them has changed: newer models bind a thought to its prefix, and
// a resumed session has another system prompt than the one it thought under.
func thoughtsRefused(err error) bool {
	var e *provider.Error
	return errors.As(err, &e) && e.Class == provider.Invalid &&
		(strings.Contains(e.Message, "`signature` in `thinking`") || strings.Contains(e.Message, "`thinking` or `redacted_thinking` blocks"))
}
