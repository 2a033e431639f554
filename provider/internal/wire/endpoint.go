package wire

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cadre-dev/cadre/provider"
)

// API says where an API is and what each request to it carries.
type API struct {
	BaseURL string // what the user set
	Default string // stands in for an empty BaseURL
	Path    string // below the base URL, where requests are posted

	Header  http.Header // of each request, besides its content type
	Secrets []string    // which stand in Header, and are never shown

	Variables Variables

	Client *http.Client // nil: one that honours the proxy variables
	Limits provider.Limits
}

// Endpoint is where requests are posted. It is safe for use by many goroutines.
type Endpoint struct {
	client  *http.Client
	url     string
	host    string
	header  http.Header
	secrets []string
	limits  provider.Limits

	// For error texts.
	variables Variables
	ownURL    bool        // the base URL is the user's
	shownURL  string      // url without a password
	responds  atomic.Bool // something at url has responded

	// slow is what this server is given to begin a response, when that has
	// turned out to be more than limits.FirstByte.
	slow atomic.Int64
}

// NewEndpoint makes the endpoint of an API. The error is a [*provider.Error]
// about the base URL or a key.
func NewEndpoint(api API) (*Endpoint, error) {
	own := strings.TrimSpace(api.BaseURL)
	u, err := baseURL(cmp.Or(own, api.Default), api.Variables.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(api); err != nil {
		return nil, err
	}
	u = u.JoinPath(api.Path)
	e := &Endpoint{
		client: client(api.Client), url: u.String(), host: u.Host,
		header: make(http.Header), secrets: api.Secrets, limits: api.Limits.WithDefaults(),
		variables: api.Variables, ownURL: own != "", shownURL: u.Redacted(),
	}
	e.header.Set("Content-Type", "application/json")
	e.header.Set("Accept", "text/event-stream")
	for name, values := range api.Header {
		if values[0] != "" {
			e.header[name] = values
		}
	}
	return e, nil
}

// Host is that of the base URL, with its port.
func (e *Endpoint) Host() string { return e.host }

// request makes a request with a body that is already encoded.
func (e *Endpoint) request(ctx context.Context, body *Body) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, body.Reader())
	if err != nil {
		return nil, err
	}
	req.Header = e.header.Clone()
	req.ContentLength = body.Size()
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	return req, nil
}

// firstByte is how long the next response may take to begin.
func (e *Endpoint) firstByte() time.Duration {
	return max(e.limits.FirstByte, time.Duration(e.slow.Load()))
}

// tooSlow gives the server twice as long as the request that was just given up,
// up to the patience: a server at home that reads a long prompt first is slow
// each time.
func (e *Endpoint) tooSlow(limit time.Duration) {
	for {
		before := e.slow.Load()
		now := int64(min(2*limit, max(e.limits.Patience, limit)))
		if now <= before || e.slow.CompareAndSwap(before, now) {
			return
		}
	}
}
