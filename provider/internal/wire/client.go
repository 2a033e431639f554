package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/provider"
)

// Middleware has the type of both SDKs' middleware.
type Middleware = func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Client returns a client that follows no redirect: Go would take the API key
// along to another host. A nil client stands for one of our own, which honours
// the proxy variables of the environment.
func Client(client *http.Client) *http.Client {
	own := &http.Client{}
	if client != nil {
		*own = *client
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
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// BaseURL checks the URL of an API and returns its host. fallback stands in for
// an empty one.
func BaseURL(base, fallback string) (checked, host string, err error) {
	checked = strings.TrimSpace(base)
	if checked == "" {
		checked = fallback
	}
	u, err := url.Parse(checked)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		shown := checked[strings.LastIndex(checked, "@")+1:] // no password
		return "", "", &provider.Error{Class: provider.Network, Final: true,
			Message: fmt.Sprintf("base URL %q is no http:// or https:// URL", shown)}
	}
	return checked, u.Host, nil
}

// Secret is a key without the white space that copying leaves around it.
func Secret(key string) string { return strings.TrimSpace(key) }

// redact replaces keys in a text for people: servers echo them.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	return text
}
