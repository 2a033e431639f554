package wire

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cadre-dev/cadre/provider"
)

// Limits of what is read and shown of a refusal: gateways send pages, and a
// broken one sends without end.
const (
	maxErrorBody    = 64 << 10 // bytes
	maxErrorMessage = 500      // runes
	errorBodyWithin = 5 * time.Second
)

// refusal is the error of a response that is not an answer.
func refusal(resp *http.Response) *provider.Error {
	body := errorBody(resp)
	said := readError(body)
	e := &provider.Error{
		Status:     resp.StatusCode,
		Type:       said.kind(),
		Message:    clean(said.Message),
		RequestID:  requestID(resp.Header, said.RequestID),
		RetryAfter: retryAfter(resp.Header, time.Now()),
	}
	e.Class = classOf(resp.StatusCode, said)
	switch {
	case resp.StatusCode/100 == 3:
		e.Class, e.Message = provider.Malformed, redirected(resp)
	case e.Message == "" && isHTML(resp.Header, body):
		e.Message = page(body)
	case e.Message == "":
		e.Message = cmp.Or(clean(string(body)), http.StatusText(resp.StatusCode), strings.ReplaceAll(string(e.Class), "_", " "))
	}
	if resp.StatusCode == http.StatusProxyAuthRequired {
		e.Final = true
		e.Message = proxy + " requires a user name and password: " + e.Message
	}
	if resp.Header.Get("X-Should-Retry") == "false" && resp.StatusCode != http.StatusTooManyRequests {
		e.Final = true
	}
	return e
}

// StreamError is the error that an event in the middle of an answer reports.
func StreamError(data []byte) *provider.Error {
	said := readError(data)
	status, err := strconv.Atoi(said.Code) // gateways pass on the status that they got
	if err != nil || status < 400 || status > 599 {
		status = 0
	}
	return &provider.Error{
		Class:     classOf(status, said),
		Type:      said.kind(),
		Message:   cmp.Or(clean(said.Message), clean(string(data))),
		RequestID: said.RequestID,
	}
}

// errorBody reads the beginning of a body. An error while reading hides nothing
// that matters: the status says enough.
func errorBody(resp *http.Response) []byte {
	body := io.Reader(resp.Body)
	if resp.Header.Get("Content-Encoding") == "gzip" { // the transport undoes only what it asked for
		if unzipped, err := gzip.NewReader(body); err == nil {
			body = unzipped
		}
	}
	data, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	return data
}

// saidError is what an error body says, in any of the forms that servers use:
// {"error":{"type","code","message"}}, {"error":"…"}, {"message":"…"},
// {"detail":"…"}.
type saidError struct {
	Type, Code, Message string
	RequestID           string
}

func (s saidError) kind() string { return cmp.Or(s.Type, s.Code) }

func readError(body []byte) saidError {
	var said saidError
	var outer struct {
		Error     json.RawMessage `json:"error"`
		Message   json.RawMessage `json:"message"`
		Detail    json.RawMessage `json:"detail"`
		RequestID json.RawMessage `json:"request_id"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return said
	}
	var inner struct{ Type, Code, Message json.RawMessage }
	if json.Unmarshal(outer.Error, &inner) == nil {
		said = saidError{Type: scalar(inner.Type), Code: scalar(inner.Code), Message: scalar(inner.Message)}
	}
	said.Message = cmp.Or(said.Message, scalar(outer.Error), scalar(outer.Message), scalar(outer.Detail))
	said.RequestID = scalar(outer.RequestID)
	return said
}

// scalar is the text of a JSON string or number; other values have none.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// classOf sorts a refusal by its status, and where that says little by what the
// server wrote. status 0 is an error inside a stream.
func classOf(status int, said saidError) provider.Class {
	if c, ok := classOfKind(said); ok && (status < 400 || c == provider.Billing || c == provider.TooLong) {
		return c
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return provider.Auth
	case status == http.StatusPaymentRequired:
		return provider.Billing
	case status == http.StatusNotFound:
		return provider.ModelNotFound
	case status == http.StatusProxyAuthRequired:
		return provider.Network
	case status == http.StatusTooManyRequests:
		return provider.RateLimit
	case status == http.StatusServiceUnavailable, status == 529:
		return provider.Overloaded
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return provider.Server
	case status >= 400:
		return provider.Invalid
	case status == 0:
		return provider.Server
	}
	return provider.Malformed
}

var kinds = map[string]provider.Class{
	"authentication_error":    provider.Auth,
	"permission_error":        provider.Auth,
	"invalid_api_key":         provider.Auth,
	"billing_error":           provider.Billing,
	"insufficient_quota":      provider.Billing,
	"rate_limit_error":        provider.RateLimit,
	"rate_limit_exceeded":     provider.RateLimit,
	"overloaded_error":        provider.Overloaded,
	"api_error":               provider.Server,
	"server_error":            provider.Server,
	"timeout_error":           provider.Server,
	"not_found_error":         provider.ModelNotFound,
	"model_not_found":         provider.ModelNotFound,
	"request_too_large":       provider.Invalid,
	"context_length_exceeded": provider.TooLong,
}

// tooLong is how servers word that a prompt does not fit, in small letters:
// Anthropic, OpenAI and vLLM, llama.cpp, LM Studio.
var tooLong = []string{
	"prompt is too long", "exceed context limit",
	"maximum context", "context length exceeded", "exceeds the model's context", "exceeds the context",
	"exceed_context_size", "exceeds the available context",
	"context the overflows",
}

func saysTooLong(said saidError) bool {
	text := strings.ToLower(said.Type + " " + said.Message)
	return slices.ContainsFunc(tooLong, func(words string) bool { return strings.Contains(text, words) })
}

func classOfKind(said saidError) (provider.Class, bool) {
	for _, k := range []string{said.Code, said.Type} {
		if c, ok := kinds[k]; ok {
			return c, true
		}
	}
	if saysTooLong(said) {
		return provider.TooLong, true
	}
	if strings.Contains(said.Message, "credit balance is too low") { // Anthropic, under status 400
		return provider.Billing, true
	}
	if said.Type == "invalid_request_error" {
		return provider.Invalid, true
	}
	return "", false
}

func requestID(h http.Header, said string) string {
	return cmp.Or(h.Get("Request-Id"), h.Get("X-Request-Id"), said)
}

func isHTML(h http.Header, body []byte) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "text/html" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// page names a web page that came in place of an answer.
func page(body []byte) string {
	_, rest, found := strings.Cut(string(body), "<title")
	_, rest, _ = strings.Cut(rest, ">")
	title, _, ended := strings.Cut(rest, "</title")
	if !found || !ended {
		return "a web page came back"
	}
	return fmt.Sprintf("a web page came back: %q", clean(html.UnescapeString(title)))
}

// redirected names where a redirect points. It is not followed: keys belong to
// the host that they were given for.
func redirected(resp *http.Response) string {
	target, err := url.Parse(resp.Header.Get("Location"))
	switch {
	case err != nil || target.Path == "" && target.Host == "":
		return "the server redirects elsewhere, and redirects are not followed: the base URL must be the address that it redirects to"
	case target.Host == "":
		return fmt.Sprintf("the server redirects to %s, and redirects are not followed: the base URL must be the address that it redirects to", clean(target.Path))
	}
	return fmt.Sprintf("the server redirects to %s://%s: make that the base URL if you trust it", target.Scheme, target.Host)
}

// clean makes one short line without control characters.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxErrorMessage {
		s = string(runes[:maxErrorMessage]) + "…"
	}
	return s
}
