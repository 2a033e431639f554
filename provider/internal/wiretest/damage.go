package wiretest

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// Decode makes a reply of the bytes of a stream.
type Decode func(stream io.Reader) (provider.Reply, error)

// CheckDamaged gives the decoder streams that were made of one of these, with
// events moved, doubled or lost, and bytes changed; see [CheckAnyStream].
func CheckDamaged(t *testing.T, decode Decode, streams ...[][]byte) {
	rapid.Check(t, func(rt *rapid.T) {
		CheckAnyStream(rt, decode, damaged(rt, rapid.SampledFrom(streams).Draw(rt, "stream")))
	})
}

func damaged(t *rapid.T, events [][]byte) []byte {
	events = slices.Clone(events)
	at := func(label string) int { return rapid.IntRange(0, len(events)-1).Draw(t, label) }
	for range rapid.IntRange(0, 4).Draw(t, "events moved") {
		i, j := at("from"), at("to")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			events[i], events[j] = events[j], events[i]
		case 1:
			events = slices.Insert(events, j, events[i])
		case 2:
			events[i] = nil
		}
	}
	stream := bytes.Join(events, nil)
	for range rapid.IntRange(0, 4).Draw(t, "bytes changed") {
		i := rapid.IntRange(0, max(0, len(stream)-1)).Draw(t, "at")
		junk := rapid.SampledFrom([]string{"", "\n", "\r", "\n\n", "{", "}", "\"", "\x00", "\xff", "0", "-1", "null", "[]", "data:"}).Draw(t, "junk")
		stream = slices.Replace(stream, i, min(len(stream), i+rapid.IntRange(0, 9).Draw(t, "lost")), []byte(junk)...)
	}
	return stream
}

// CheckAnyStream holds that no stream makes the decoder panic, hang, or give a call whose
// input is not an object, and that it does not matter how its bytes arrive.
func CheckAnyStream(t rapid.TB, decode Decode, stream []byte) {
	t.Helper()
	got, err := decode(bytes.NewReader(stream))
	for _, b := range got.Message.Content {
		if b.Type == transcript.ToolUse && (!json.Valid(b.Input) || b.Input[0] != '{' || b.ID == "") {
			t.Errorf("call %+v of %q", b, stream)
		}
	}
	again, err2 := decode(iotest.OneByteReader(bytes.NewReader(stream)))
	if (err == nil) != (err2 == nil) || len(got.Message.Content) != len(again.Message.Content) {
		t.Errorf("%q in one piece: %v, %+v\nbyte by byte: %v, %+v", stream, err, got.Message, err2, again.Message)
	}
}
