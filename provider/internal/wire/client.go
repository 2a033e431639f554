package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cadre-dev/cadre/provider"
)

// client returns a client that follows no redirect: Go would send the API key
// to another host. nil stands for one of our own, which honours
// the proxy variables of the environment.
func client(given *http.Client) *http.Client {
	own := &http.Client{}
	if given != nil {
		*own = *given
	} else {
		own.Transport = transport()
	}
	if own.CheckRedirect == nil {
		own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return own
}

// transport keeps more idle connections than the default, since the agents of a
// team talk to one host, and asks a silent HTTP/2 connection whether it is still
// there: a retry would be sent on the same dead one otherwise.
func transport() http.RoundTripper {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t := shared.Clone()
	t.MaxIdleConnsPerHost = 32
	if dial := t.DialContext; dial != nil {
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if tcp, ok := c.(*net.TCPConn); ok {
				return &conn{tcp}, err
			}
			return c, err
		}
	}
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// conn is a connection that copies what it is given to send through a buffer that is
// used again. Its own method makes one of 32 KiB for each request.
type conn struct{ *net.TCPConn }

// ReadFrom implements [io.ReaderFrom].
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	buf := sendBuffers.Get().(*[]byte)
	defer sendBuffers.Put(buf)
	return io.CopyBuffer(onlyWriter{c.TCPConn}, r, *buf)
}

// onlyWriter hides the methods that io.CopyBuffer would prefer to the buffer.
type onlyWriter struct{ io.Writer }

var sendBuffers = sync.Pool{New: func() any {
	buf := make([]byte, 64<<10)
	return &buf
}}

// baseURL parses the URL of an API, which stands in a variable.
func baseURL(base, variable string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		shown := base[strings.LastIndex(base, "@")+1:] // no password
		return nil, &provider.Error{Class: provider.Network, Final: true,
			Message: fmt.Sprintf("%q in %s is not an http:// or https:// URL", shown, variable)}
	}
	return u, nil
}

// Secret is a key without the white space that copying leaves around it.
func Secret(key string) string { return strings.TrimSpace(key) }

// checkSecrets refuses keys that no header can carry, so that no request could be made.
func checkSecrets(api API) error {
	for _, secret := range api.Secrets {
		if strings.ContainsFunc(secret, unicode.IsControl) {
			return &provider.Error{Class: provider.Auth, Message: fmt.Sprintf(
				"%s contains a line break or another control character: set it again, to the key alone", strings.Join(api.Variables.Keys, " or "),
			)}
		}
	}
	return nil
}

// Bearer is the value of an authorization header; "" without a token.
func Bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// redact replaces keys in a text for people: servers echo them.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	return text
}
