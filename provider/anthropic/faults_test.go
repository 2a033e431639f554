package anthropic

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

// refuse makes a reply with an error body as the API writes it.
func refuse(status int, kind, message string) fakeapi.Reply {
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
	if err != nil {
		panic(err)
	}
	return fakeapi.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: bytes.NewReader(body)}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reply   fakeapi.Reply
		want    provider.Class
		message string
	}{
		{refuse(400, "invalid_request_error", "messages.1: tool_use without tool_result"), provider.Invalid, "messages.1: tool_use without tool_result"},
		{refuse(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), provider.TooLong, "prompt is too long: 210000 tokens > 200000 maximum"},
		{refuse(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"), provider.TooLong, ""},
		{refuse(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), provider.Billing, ""},
		{refuse(401, "authentication_error", "invalid x-api-key: "+canary), provider.Auth, "invalid x-api-key: [key] (check ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)"},
		{refuse(402, "billing_error", "pay"), provider.Billing, "pay"},
		{refuse(403, "permission_error", "no"), provider.Auth, "no (check ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)"},
		{refuse(404, "not_found_error", "model: nope"), provider.ModelNotFound, `model: nope (check --model, ANTHROPIC_MODEL, "model" in the settings or ANTHROPIC_BASE_URL, which leads to URL/v1/messages)`},
		{refuse(408, "timeout_error", "late"), provider.Server, "late"},
		{refuse(409, "conflict", "again"), provider.Server, "again"},
		{refuse(413, "request_too_large", "Request exceeds the maximum size"), provider.Invalid, "Request exceeds the maximum size"},
		{refuse(422, "", "what"), provider.Invalid, "what"},
		{refuse(429, "rate_limit_error", "slow down"), provider.RateLimit, "slow down"},
		{refuse(500, "api_error", "Internal\n\x1b[31mserver\terror"), provider.Server, "Internal [31mserver error"},
		{fakeapi.Reply{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: strings.NewReader("<html><head><title>502 Bad &amp; Gateway</title></head>")}, provider.Server, `a web page came back: "502 Bad & Gateway"`},
		{fakeapi.Reply{Status: 503}, provider.Overloaded, "Service Unavailable"},
		{fakeapi.Reply{Status: 504, Body: strings.NewReader("upstream timed out")}, provider.Server, "upstream timed out"},
		{refuse(529, "overloaded_error", "Overloaded"), provider.Overloaded, "Overloaded"},
		{fakeapi.Reply{Status: 407}, provider.Network, "the proxy requires a user name and password: Proxy Authentication Required (check HTTPS_PROXY)"},
		{fakeapi.Reply{Status: 307, Header: http.Header{"Location": {"https://login.example/?token=x"}}}, provider.Malformed, "the server redirects to https://login.example: make that the base URL if you trust it (check ANTHROPIC_BASE_URL)"},
		{fakeapi.Reply{Status: 302, Header: http.Header{"Location": {"/login?token=x"}}}, provider.Malformed, "the server redirects to /login, and redirects are not followed: the base URL must be the address that it redirects to (check ANTHROPIC_BASE_URL)"},
		{fakeapi.Reply{Status: 302, Header: http.Header{"Location": {"/"}}, Body: strings.NewReader(`{"error":{"type":"overloaded_error","message":"busy"}}`)}, provider.Malformed, ""},
		{fakeapi.Reply{Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: strings.NewReader("\n <!doctype html><title>Welcome to the hotel</title>")}, provider.Malformed, `not an event stream: a web page came back: "Welcome to the hotel" (check ANTHROPIC_BASE_URL)`},
		{fakeapi.Reply{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: strings.NewReader(`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)}, provider.Overloaded, "busy"},
		{fakeapi.Reply{Status: 204}, provider.Malformed, ""},
		{fakeapi.Reply{Status: 500, Body: strings.NewReader(strings.Repeat("é", 1<<20))}, provider.Server, strings.Repeat("é", 500) + "…"},
	} {
		t.Run(fmt.Sprint(c.reply.Status, " ", c.want), func(t *testing.T) {
			server := wiretest.Start(t, wiretest.Always(c.reply))
			e := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Failure(t)
			if e.Class != c.want || (c.message != "" && strings.ReplaceAll(e.Message, server.URL, "URL") != c.message) || e.Message == "" {
				t.Errorf("class %s, message %q\nwant  %s, %q", e.Class, e.Message, c.want, c.message)
			}
			if c.reply.Status != 200 && e.Status != c.reply.Status {
				t.Errorf("status %d, want %d", e.Status, c.reply.Status)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), canary) {
				t.Errorf("the key is in %+v", e)
			}
		})
	}
}

// TestAnswersUnderOtherTypes: servers and gateways label streams in many ways.
func TestAnswersUnderOtherTypes(t *testing.T) {
	for _, mediaType := range []string{"text/plain", "application/octet-stream", "application/json", "nonsense"} {
		reply := fakeapi.Answer(fakeapi.Text("hello"))
		reply.Header = http.Header{"Content-Type": {mediaType}}
		server := wiretest.Start(t, wiretest.Always(reply))
		if got := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Whole(t); got.Message.Content[0].Text != "hello" {
			t.Errorf("%s: message %+v", mediaType, got.Message)
		}
	}
}

// TestHugeErrorBodies are not read to their end.
func TestHugeErrorBodies(t *testing.T) {
	counted := &countingReader{r: io.LimitReader(zeros{}, 1<<30)}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := io.Copy(zip, io.LimitReader(zeros{}, 16<<20)); err != nil {
		t.Fatal(err)
	}
	zip.Close()
	gzipped := http.Header{"Content-Encoding": {"gzip"}}
	for name, reply := range map[string]fakeapi.Reply{
		"1 GB":      {Status: 400, Body: counted},
		"gzip bomb": {Status: 400, Header: gzipped, Body: &bomb},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.Start(wiretest.Always(reply))
			e := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Failure(t)
			server.Close() // the handler has returned
			if e.Class != provider.Invalid || len(e.Message) > 4000 {
				t.Errorf("error %v", e)
			}
		})
	}
	if counted.n > 32<<20 {
		t.Errorf("%d bytes were sent before the client hung up", counted.n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestGzippedError(t *testing.T) {
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	fmt.Fprint(zip, `{"error":{"type":"invalid_request_error","message":"zipped"}}`)
	zip.Close()
	data := body.Bytes()
	for _, asked := range []bool{true, false} { // by the transport, or sent unasked
		server := wiretest.Start(t, func(*fakeapi.Request) fakeapi.Reply {
			return fakeapi.Reply{Status: 400, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: bytes.NewReader(data)}
		})
		client := server.Client()
		client.Transport.(*http.Transport).DisableCompression = !asked
		if e := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Failure(t); e.Message != "zipped" {
			t.Errorf("message %q", e.Message)
		}
	}
}

// TestWaits: the server's wishes, between our bounds.
func TestWaits(t *testing.T) {
	const base = 500 * time.Millisecond
	for _, c := range []struct {
		name     string
		header   http.Header
		from, to time.Duration
	}{
		{"seconds", http.Header{"Retry-After": {"2"}}, 2 * time.Second, 3 * time.Second},
		{"fraction", http.Header{"Retry-After": {"1.5"}}, 1500 * time.Millisecond, 2500 * time.Millisecond},
		{"milliseconds", http.Header{"Retry-After-Ms": {"700"}, "Retry-After": {"9"}}, 700 * time.Millisecond, 1700 * time.Millisecond},
		{"a date", http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:01:10 GMT"}, "Date": {"Sat, 01 Jan 2000 00:01:00 GMT"}}, 10 * time.Second, 11 * time.Second},
		{"a past date", http.Header{"Retry-After": {"Sat, 01 Jan 1999 00:01:10 GMT"}}, 0, base},
		{"none", nil, 0, base},
		{"0", http.Header{"Retry-After": {"0"}}, 0, base},
		{"negative", http.Header{"Retry-After": {"-5"}}, 0, base},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, 0, base},
		{"NaN", http.Header{"Retry-After": {"NaN"}}, 0, base},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(r *fakeapi.Request) fakeapi.Reply {
				if r.Seq == 1 {
					reply := refuse(429, "rate_limit_error", "slow down")
					for k, v := range c.header {
						reply.Header[k] = v
					}
					return reply
				}
				return fakeapi.Answer(fakeapi.Text("fine"))
			}, func(t *testing.T, m *Model, server *fakeapi.Server) {
				h := wiretest.Collect(t.Context(), m, ask("hi"))
				h.Whole(t)
				if len(h.Retries) != 1 {
					t.Fatalf("retries %+v", h.Retries)
				}
				retry, requests := h.Retries[0], server.Requests()
				if retry.Attempt != 2 || retry.Err.Class != provider.RateLimit {
					t.Errorf("retry %+v", retry)
				}
				waited := requests[1].At.Sub(requests[0].At)
				if waited != retry.Wait || waited < c.from || waited > c.to {
					t.Errorf("waited %s, retry %s, want %s to %s", waited, retry.Wait, c.from, c.to)
				}
				if !bytes.Equal(requests[0].Raw, requests[1].Raw) {
					t.Error("the second request differs from the first")
				}
			}, retrying)
		})
	}
}

// TestStorm: a hundred agents with one key come through a storm of 429 without
// all coming back at once.
func TestStorm(t *testing.T) {
	const agents = 100
	inBubble(t, func(r *fakeapi.Request) fakeapi.Reply {
		if r.Seq <= 2*agents {
			reply := refuse(429, "rate_limit_error", "slow down")
			reply.Header.Set("Retry-After", "5")
			return reply
		}
		return fakeapi.Answer(fakeapi.Text("fine"))
	}, func(t *testing.T, m *Model, server *fakeapi.Server) {
		var all sync.WaitGroup
		for i := range agents {
			all.Go(func() {
				req := ask("hi")
				req.Agent.Name = fmt.Sprint(i)
				if h := wiretest.Collect(t.Context(), m, req); h.Err != nil {
					t.Error(h.Err)
				}
			})
		}
		synctest.Wait()
		late := ask("me too")
		late.Agent.Name = "late"
		began := time.Now()
		if h := wiretest.Collect(t.Context(), m, late); len(h.Retries) == 0 || h.Retries[0].Attempt != 1 || h.Retries[0].Wait < 4*time.Second {
			t.Errorf("a newcomer is not held back: %+v", h.Retries)
		}
		all.Wait()
		perTenth := map[time.Duration]int{}
		for _, r := range server.Requests()[agents:] {
			tenth := r.At.Sub(began) / (100 * time.Millisecond)
			if perTenth[tenth]++; perTenth[tenth] > agents/3 {
				t.Fatalf("%d requests within a tenth of a second", perTenth[tenth])
			}
		}
	}, retrying)
}

func TestNoRetryWhereNoneHelps(t *testing.T) {
	for _, reply := range []fakeapi.Reply{
		refuse(400, "invalid_request_error", "x"), refuse(401, "authentication_error", "x"), refuse(404, "not_found_error", "x"),
		{Status: 407}, {Status: 302}, {Status: 500, Header: http.Header{"X-Should-Retry": {"false"}}},
	} {
		server := wiretest.Start(t, wiretest.Always(reply))
		wiretest.Collect(t.Context(), newModel(t, server, retrying), ask("hi")).Failure(t)
		if n := len(server.Requests()); n != 1 {
			t.Errorf("status %d: %d requests", reply.Status, n)
		}
	}
}

// TestAbsurdWaits are not waited for by a run on its own.
func TestAbsurdWaits(t *testing.T) {
	for _, asked := range []string{"1000000000", "1e300"} {
		reply := refuse(429, "rate_limit_error", "slow down")
		reply.Header.Set("Retry-After", asked)
		server := wiretest.Start(t, wiretest.Always(reply))
		h := wiretest.Collect(t.Context(), newModel(t, server, retrying), ask("hi"))
		if e := h.Failure(t); !strings.Contains(e.Message, "the server asks to wait") || len(server.Requests()) != 1 {
			t.Errorf("%s: error %v after %d requests", asked, e, len(server.Requests()))
		}
	}
}

func TestGivesUp(t *testing.T) {
	inBubble(t, wiretest.Always(refuse(529, "overloaded_error", "Overloaded")), func(t *testing.T, m *Model, server *fakeapi.Server) {
		h := wiretest.Collect(t.Context(), m, ask("hi"))
		requests := server.Requests()
		if e := h.Failure(t); e.Class != provider.Overloaded || e.Status != 529 || len(h.Retries) != len(requests)-1 {
			t.Errorf("error %v, %d retries, %d requests", e, len(h.Retries), len(requests))
		}
		if took := requests[len(requests)-1].At.Sub(requests[0].At); took != provider.DefaultRetryFor {
			t.Errorf("gave up after %s", took)
		}
		var most time.Duration
		for _, r := range h.Retries {
			most = max(most, r.Wait)
		}
		if most > 30*time.Second {
			t.Errorf("waited %s", most)
		}
	}, retrying)
}

// TestHTTP2 is how the API itself is reached.
func TestHTTP2(t *testing.T) {
	whole := fakeapi.Answer(fakeapi.Text("hello"), fakeapi.ToolUse("toolu_1", "Read", "{}"))
	server := fakeapi.StartTLS(func(r *fakeapi.Request) fakeapi.Reply {
		reply := whole
		reply.Faults = fakeapi.Faults{Cut: r.Seq == 2, CutAfter: 4}
		return reply
	})
	defer server.Close()
	m := newModel(t, server)
	wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
	h := wiretest.Collect(t.Context(), m, ask("hi"))
	var e *provider.Error
	if h.Reply == nil || !errors.As(h.Reply.Broken, &e) || e.Class != provider.Network || len(h.Reply.Message.Content) != 1 {
		t.Errorf("a stream that was reset: error %v, reply %+v", h.Err, h.Reply)
	}
	wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
	for _, r := range server.Requests() {
		if r.Proto != "HTTP/2.0" || r.Remote != server.Requests()[0].Remote || r.Length != int64(len(r.Raw)) {
			t.Errorf("request %d came over %s from %s, %d bytes", r.Seq, r.Proto, r.Remote, r.Length)
		}
	}
}

// TestNetworkFailures name their cause.
func TestNetworkFailures(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	secure := fakeapi.StartTLS(wiretest.Always(fakeapi.Reply{}))
	defer secure.Close()
	plain := wiretest.Start(t, wiretest.Always(fakeapi.Reply{}))
	cut := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Faults: fakeapi.Faults{CutHeaders: true}}))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	noSuch := &http.Transport{DialContext: (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: nil}}).DialContext}
	for _, c := range []struct {
		name, base string
		transport  *http.Transport
		want       string
		final      bool
	}{
		{"refused", "http://" + closed.Addr().String(), &http.Transport{}, "connect to " + closed.Addr().String(), false},
		{"unknown host", "http://no-such-host.invalid", noSuch, "look up no-such-host.invalid", false},
		{"untrusted certificate", secure.URL, &http.Transport{}, "TLS with 127.0.0.1", true},
		{"TLS with a plain server", strings.Replace(plain.URL, "http:", "https:", 1), &http.Transport{}, "the server does not speak it", true},
		{"old TLS", secure.URL, &http.Transport{TLSClientConfig: &tls.Config{MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}}, "TLS with 127.0.0.1", true},
		{"cut before the headers", cut.URL, &http.Transport{}, "closed the connection", false},
		{"proxy wants a password", "https://model.example", &http.Transport{Proxy: http.ProxyURL(proxyURL)}, "the proxy requires a user name and password", true},
		{"no proxy there", "http://model.example", &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: closed.Addr().String()})}, "connect to the proxy", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer c.transport.CloseIdleConnections()
			m, err := New(Options{BaseURL: c.base, APIKey: canary, HTTPClient: &http.Client{Transport: c.transport}, Retry: provider.RetryPolicy{For: -1}})
			if err != nil {
				t.Fatal(err)
			}
			e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t)
			if e.Class != provider.Network || !strings.Contains(e.Message, c.want) {
				t.Errorf("error %v, want %q in it", e, c.want)
			}
			if c.final && e.Passing() {
				t.Errorf("%v counts as a passing error", e)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", e, errors.Unwrap(e)), canary) {
				t.Errorf("the key is in %+v", e)
			}
		})
	}
}

func TestBaseURLs(t *testing.T) {
	for _, bad := range []string{"api.anthropic.com", "ftp://x", "http://", "::"} {
		var e *provider.Error
		if _, err := New(Options{BaseURL: bad}); !errors.As(err, &e) || !strings.Contains(e.Message, bad) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
	server := wiretest.Start(t, wiretest.Always(fakeapi.Answer(fakeapi.Text("x"))))
	for _, path := range []string{"", "/", "/gateway", "/gateway/"} {
		m := newModel(t, server, func(o *Options) { o.BaseURL = " " + server.URL + path + "\n" })
		wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
	}
	for i, want := range []string{"/v1/messages", "/v1/messages", "/gateway/v1/messages", "/gateway/v1/messages"} {
		if got := server.Requests()[i].Path; got != want {
			t.Errorf("request %d went to %s, want %s", i, got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: from-the-environment")
	server := wiretest.Start(t, wiretest.Always(fakeapi.Answer(fakeapi.Text("x"))))
	for _, c := range []struct {
		change func(*Options)
		want   map[string]string
	}{
		{func(o *Options) {}, map[string]string{"X-Api-Key": canary, "Authorization": ""}},
		{func(o *Options) { o.APIKey, o.AuthToken = "", " token\n" }, map[string]string{"X-Api-Key": "", "Authorization": "Bearer token"}},
		{func(o *Options) { o.APIKey = "" }, map[string]string{"X-Api-Key": "", "Authorization": ""}},
		{func(o *Options) { o.UserAgent = "cadre/9" }, map[string]string{"User-Agent": "cadre/9"}},
	} {
		wiretest.Collect(t.Context(), newModel(t, server, c.change), ask("hi")).Whole(t)
		requests := server.Requests()
		got := requests[len(requests)-1].Header
		c.want["Anthropic-Version"] = "2023-06-01"
		c.want["Content-Type"] = "application/json"
		c.want["Accept"] = "text/event-stream"
		c.want["Traceparent"] = ""
		c.want["Content-Length"] = fmt.Sprint(len(requests[len(requests)-1].Raw))
		for name, want := range c.want {
			if got.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, got.Get(name), want)
			}
		}
		if strings.Contains(fmt.Sprint(got), "from-the-environment") {
			t.Errorf("the environment shows in %v", got)
		}
	}
}

// TestKeysThatNoHeaderCarries are refused before any request.
func TestKeysThatNoHeaderCarries(t *testing.T) {
	for _, o := range []Options{{APIKey: canary + "\nmore"}, {AuthToken: "one\r\ntwo\x00"}} {
		_, err := New(o)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Class != provider.Auth || e.Passing() || strings.Contains(e.Error(), canary) {
			t.Fatalf("error %v", err)
		}
		if name := map[bool]string{true: "ANTHROPIC_API_KEY", false: "ANTHROPIC_AUTH_TOKEN"}[o.APIKey != ""]; !strings.HasPrefix(e.Message, name+" contains a line break") {
			t.Errorf("message %q", e.Message)
		}
	}
}

// TestABadLocationIsNotRetried: the client reports it like a broken connection.
func TestABadLocationIsNotRetried(t *testing.T) {
	reply := fakeapi.Reply{Status: 302, Header: http.Header{"Location": {"http://bad host:x%zz/"}}}
	server := wiretest.Start(t, wiretest.Always(reply))
	if e := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Failure(t); e.Passing() || !strings.Contains(e.Message, "ANTHROPIC_BASE_URL") {
		t.Errorf("%+v", e)
	}
}

// TestErrorsNameWhatToLookAt of what the user has set, and no more.
func TestErrorsNameWhatToLookAt(t *testing.T) {
	for _, c := range []struct {
		status  int
		options Options
		want    string
	}{
		{401, Options{APIKey: "k"}, "401 authentication_failed: x (check ANTHROPIC_API_KEY)"},
		{401, Options{AuthToken: "t"}, "401 authentication_failed: x (check ANTHROPIC_AUTH_TOKEN)"},
		{403, Options{APIKey: "k", AuthToken: "t"}, "403 authentication_failed: x (check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN)"},
		{401, Options{}, "401 authentication_failed: x (set ANTHROPIC_API_KEY)"},
		{404, Options{APIKey: "k"}, `404 model_not_found: x (check --model, ANTHROPIC_MODEL or "model" in the settings)`},
		{404, Options{BaseURL: "https://user:secret@gate.example/api"}, `404 model_not_found: x (check --model, ANTHROPIC_MODEL, "model" in the settings or ANTHROPIC_BASE_URL, which leads to https://user:xxxxx@gate.example/api/v1/messages)`},
		{400, Options{APIKey: "k"}, "400 invalid_request: x"},
		{500, Options{APIKey: "k"}, "500 server_error: x"},
	} {
		c.options.Retry.For = -1
		c.options.HTTPClient = &http.Client{Transport: answering(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"x"}}`))}, nil
		})}
		m, err := New(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t); e.Error() != c.want {
			t.Errorf("error %q\n want %q", e, c.want)
		}
	}
	m, err := New(Options{Retry: provider.RetryPolicy{For: -1}, HTTPClient: &http.Client{Transport: answering(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	if e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t); e.Message != "connect to api.anthropic.com: connection refused" {
		t.Errorf("error %q names what nobody has set", e)
	}
}

// TestAnAddressThatHasProvedRight is not named any more.
func TestAnAddressThatHasProvedRight(t *testing.T) {
	server := wiretest.Start(t, func(r *fakeapi.Request) fakeapi.Reply {
		reply := fakeapi.Answer(fakeapi.Text("x"))
		reply.Faults.CutHeaders = r.Seq != 2
		return reply
	})
	m := newModel(t, server)
	if e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t); !strings.HasSuffix(e.Message, "(check ANTHROPIC_BASE_URL)") {
		t.Errorf("error %q", e)
	}
	wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
	if e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t); strings.Contains(e.Message, "check") {
		t.Errorf("error %q", e)
	}
}

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestThoughtsOfAnotherPrefix: a model that refuses the thoughts of a resumed
// session gets the conversation without them, once and for all.
func TestThoughtsOfAnotherPrefix(t *testing.T) {
	server := wiretest.Start(t, func(r *fakeapi.Request) fakeapi.Reply {
		if bytes.Contains(r.Raw, []byte("old")) {
			return refuse(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set …")
		}
		return fakeapi.Answer(fakeapi.Thought("", "new"), fakeapi.Text("fine"))
	})
	m := newModel(t, server)
	req := ask("hi")
	req.Model = "claude-opus-5-5"
	req.Messages = append(req.Messages,
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.Thinking, Signature: "old"}, transcript.TextBlock("ok")}},
		transcript.UserText("go on"))
	for range 2 {
		reply := wiretest.Collect(t.Context(), m, req).Whole(t)
		req.Messages = append(req.Messages, reply.Message, transcript.UserText("and on"))
	}
	requests := server.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests, want one refused and two answered", len(requests))
	}
	if !bytes.Contains(requests[2].Raw, []byte(`"signature":"new"`)) {
		t.Errorf("the new thought is not sent back: %s", requests[2].Raw)
	}
}
