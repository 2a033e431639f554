// Package anthropic is the Messages API as a [provider.Model].
//
// The official SDK is not part of the program, only of the tests, which hold
// bodies and answers to its types. Building the conversation from its types for
// each request costs more, at a thousand rounds, than everything else that cadre
// does in a round, so bodies are written by request.go from encodings that are
// kept, and answers are read by answer.go. What would be left of the SDK is one
// POST, for which its start-up costs every run of the program 1 ms.
package anthropic

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com/"

// apiVersion is the version of the API that bodies and answers are written for.
const apiVersion = "2023-06-01"

// Options configure a Model. Nothing is read from the environment; errors name
// the variables that users set these things by.
type Options struct {
	BaseURL   string // "" is DefaultBaseURL; paths like v1/messages are added to it
	APIKey    string // sent as x-api-key; "" sends none
	AuthToken string // sent as a bearer token; "" sends none

	HTTPClient *http.Client // nil: one that honours the proxy variables; redirects are not followed unless it says so
	UserAgent  string       // "" leaves Go's

	Retry  provider.RetryPolicy
	Limits provider.Limits
}

// Model answers requests through the Messages API. It is safe for use by many
// goroutines, and should be shared by all agents that use one key: they share
// its connections, and its waiting when the API asks for less.
type Model struct {
	endpoint  *wire.Endpoint
	retrier   *provider.Retrier
	histories *wire.Histories
	tools     *wire.Lists[provider.Tool]
	systems   *wire.Lists[string]
}

// New makes a Model. The error is a [*provider.Error] about the base URL or a key.
func New(o Options) (*Model, error) {
	key, token := wire.Secret(o.APIKey), wire.Secret(o.AuthToken)
	endpoint, err := wire.NewEndpoint(wire.API{
		BaseURL: o.BaseURL, Default: DefaultBaseURL, Path: "v1/messages",
		Header: http.Header{
			"Anthropic-Version": {apiVersion}, "X-Api-Key": {key}, "Authorization": {wire.Bearer(token)}, "User-Agent": {o.UserAgent},
		},
		Secrets: []string{key, token}, Variables: variables(key, token),
		Client: o.HTTPClient, Limits: o.Limits,
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
	}, nil
}

func variables(key, token string) wire.Variables {
	v := wire.Variables{BaseURL: "ANTHROPIC_BASE_URL", Model: "ANTHROPIC_MODEL", NoKey: key == "" && token == ""}
	if key != "" || token == "" {
		v.Keys = append(v.Keys, "ANTHROPIC_API_KEY")
	}
	if token != "" {
		v.Keys = append(v.Keys, "ANTHROPIC_AUTH_TOKEN")
	}
	return v
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
