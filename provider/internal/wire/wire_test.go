package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

func TestAppendString(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes"))
		if rapid.Bool().Draw(rt, "text") {
			s = rapid.String().Draw(rt, "string")
		}
		got := AppendString([]byte("before"), s)
		var back string
		if err := json.Unmarshal(got[len("before"):], &back); err != nil {
			rt.Fatalf("%q became %s: %v", s, got, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); !sameRunes(back, want) {
			rt.Fatalf("%q became %q", s, back)
		}
	})
	if got := string(AppendString(nil, "<a> & \u2028 \x7f\x1f\"\\\n\r\t")); got != "\"<a> & \u2028 \x7f\\u001f\\\"\\\\\\n\\r\\t\"" {
		t.Errorf("got %s", got)
	}
}

// sameRunes: ToValidUTF8 makes one replacement of a run of bad bytes, we make
// one of each.
func sameRunes(a, b string) bool {
	squeeze := func(s string) string {
		for strings.Contains(s, "\ufffd\ufffd") {
			s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
		}
		return s
	}
	return squeeze(a) == squeeze(b)
}

func TestBodyReader(t *testing.T) {
	var b Body
	for _, piece := range []string{"ab", "", "c", "defg"} {
		b.Add([]byte(piece))
	}
	if b.Size() != 7 {
		t.Errorf("size %d", b.Size())
	}
	for range 2 { // each reader begins anew
		if err := iotest.TestReader(b.Reader(), []byte("abcdefg")); err != nil {
			t.Error(err)
		}
	}
	var empty Body
	if data, err := io.ReadAll(empty.Reader()); err != nil || len(data) != 0 {
		t.Errorf("empty body: %q, %v", data, err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after, ms, date string
		want            time.Duration
	}{
		{"", "", "", 0},
		{"2", "", "", 2 * time.Second},
		{"0.25", "", "", 250 * time.Millisecond},
		{"-3", "", "", 0},
		{"+Inf", "", "", math.MaxInt64 / 2},
		{"1e9", "", "", 1e9 * time.Second},
		{"1e99", "", "", math.MaxInt64 / 2},
		{"nan", "", "", 0},
		{"3", "1500", "", 1500 * time.Millisecond},
		{"3", "soon", "", 3 * time.Second},
		{"Sat, 21 Nov 2026 08:00:07 GMT", "", "", 7 * time.Second},
		{"Saturday, 21-Nov-26 08:00:07 GMT", "", "", 7 * time.Second},
		{"Sat, 21 Nov 2026 07:00:00 GMT", "", "", 0},
		{"Sat, 21 Nov 2026 08:00:07 GMT", "", "Sat, 21 Nov 2026 08:00:02 GMT", 5 * time.Second},
		{"tomorrow", "", "", 0},
	} {
		h := http.Header{"Retry-After": {c.after}, "Retry-After-Ms": {c.ms}, "Date": {c.date}}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q, ms %q, date %q: %s, want %s", c.after, c.ms, c.date, got, c.want)
		}
	}
}

func TestErrorBodies(t *testing.T) {
	for _, c := range []struct {
		status     int
		body       string
		class      provider.Class
		kind, said string
	}{
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, provider.TooLong, "invalid_request_error", "This model's maximum context length is 8192 tokens"},
		{400, `{"object":"error","message":"the prompt exceeds the available context size","type":"BadRequestError","code":400}`, provider.TooLong, "", "the prompt exceeds the available context size"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`, provider.TooLong, "exceed_context_size_error", ""},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, provider.Billing, "insufficient_quota", ""},
		{404, `{"error":"model 'x' not found, try pulling it first"}`, provider.ModelNotFound, "", "model 'x' not found, try pulling it first"},
		{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, provider.Invalid, "", `{"detail":[{"loc":["body"],"msg":"field required"}]}`},
		{500, `{"detail":"no workers"}`, provider.Server, "", "no workers"},
		{403, `null`, provider.Auth, "", "null"},
		{400, `[1`, provider.Invalid, "", "[1"},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}
		e := refusal(resp)
		if e.Class != c.class || e.Type != c.kind || (c.said != "" && e.Message != c.said) {
			t.Errorf("%d %s\nclass %s, type %q, message %q", c.status, c.body, e.Class, e.Type, e.Message)
		}
	}
	if e := StreamError([]byte(`{"error":{"code":429,"message":"upstream"}}`)); e.Class != provider.RateLimit {
		t.Errorf("a passed on status: %v", e)
	}
	if e := StreamError([]byte(`{"error":{"message":"?"}}`)); e.Class != provider.Server {
		t.Errorf("an unknown error in a stream: %v", e)
	}
}

// TestHistoriesForget: what is remembered stays within its bounds, and the
// newest conversation is among it.
func TestHistoriesForget(t *testing.T) {
	encodings := 0
	h := NewHistories(func(dst []byte, m transcript.Message, _ bool) []byte {
		encodings++
		return append(append(dst, ','), m.Content[0].Text...)
	})
	agent := func(i int) provider.Agent { return provider.Agent{ID: fmt.Sprint(i)} }
	for i := range 3 * maxHistories {
		h.Encode(agent(i), []transcript.Message{transcript.UserText("hello")})
	}
	if len(h.known) != maxHistories {
		t.Errorf("%d conversations are remembered", len(h.known))
	}
	huge := []transcript.Message{transcript.UserText(strings.Repeat("x", maxHistoryBytes))}
	for range 2 {
		before := encodings
		h.Encode(agent(-1), huge)
		h.Encode(agent(-1), huge)
		if encodings != before+1 {
			t.Errorf("encoded %d times in a row", encodings-before)
		}
		if len(h.known) != 1 {
			t.Errorf("%d conversations are remembered beside a huge one", len(h.known)-1)
		}
		h.Encode(agent(0), []transcript.Message{transcript.UserText("hello")})
	}
	total := 0
	for _, own := range h.known {
		total += cap(own.Bytes)
	}
	if total != h.bytes {
		t.Errorf("%d bytes are remembered, %d are counted", total, h.bytes)
	}
}

func TestListsAreEncodedOnce(t *testing.T) {
	encodings := 0
	sets := NewToolLists(func(tools []provider.Tool) []byte {
		encodings++
		return []byte(tools[0].Name)
	})
	for range 3 {
		for i := range maxLists {
			name := fmt.Sprint(i)
			if got := sets.Encode([]provider.Tool{{Name: name, Schema: json.RawMessage(`{}`)}}); string(got) != name {
				t.Errorf("tools %s are encoded as %s", name, got)
			}
		}
	}
	if encodings != maxLists {
		t.Errorf("%d encodings of %d lists", encodings, maxLists)
	}
	sets.Encode([]provider.Tool{{Name: "one more"}})
	if len(sets.known) != maxLists {
		t.Errorf("%d lists are remembered", len(sets.known))
	}
}
