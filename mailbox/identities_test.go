package mailbox

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// stamped is the n-th message of an inbox that gets one every millisecond.
func stamped(n int) Message {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Millisecond)
	return Message{From: "w1", Text: strconv.Itoa(n), Timestamp: at.Format("2006-01-02T15:04:05.000Z")}
}

// follower gives IDs as a store does that reads the whole inbox only when it must.
type follower struct {
	ids   Identities
	whole int // how often it was read
}

func (f *follower) next(inbox []Message) ID {
	last := inbox[len(inbox)-1]
	if f.ids.CanIdentify(last) {
		id := f.ids.Next(last)
		f.ids.Forget()
		return id
	}
	f.whole++
	f.ids = Identities{}
	var id ID
	for _, m := range inbox {
		id = f.ids.Next(m)
	}
	f.ids.Forget()
	return id
}

func TestALongHistoryIsForgotten(t *testing.T) {
	var f follower
	var inbox []Message
	for n := range 100_000 {
		inbox = append(inbox, stamped(n))
		f.next(inbox)
	}
	if n := len(f.ids.seen); n > 2*remembered || len(f.ids.recent) > 2*remembered || f.whole > 0 {
		t.Errorf("%d messages are remembered, the inbox was read %d times", n, f.whole)
	}
}

// What is forgotten must not make two messages one, whatever comes in whatever
// order.
func TestIdentitiesAreThoseOfTheWholeInbox(t *testing.T) {
	for what, odd := range map[string]func(n int) Message{
		"copies of old ones":    func(n int) Message { return stamped(rand.IntN(n)) },
		"copies of new ones":    func(n int) Message { return stamped(n - rand.IntN(min(n, 50))) },
		"a clock ahead":         func(int) Message { return Message{From: "w2", Text: "x", Timestamp: "2999-01-01T00:00:00.000Z"} },
		"a clock of the past":   func(int) Message { return Message{From: "w2", Text: "x", Timestamp: "1970-01-01T00:00:00.000Z"} },
		"other spellings":       func(int) Message { return Message{From: "w2", Text: "x", Timestamp: "1970-01-01T00:00:00Z"} },
		"none":                  func(int) Message { return Message{From: "w2", Text: "x"} },
		"the clocks of senders": func(n int) Message { return stamped(n - min(n, 3000)) },
	} {
		t.Run(what, func(t *testing.T) {
			var f follower
			var all Identities
			var inbox []Message
			for n := range 4 * remembered {
				m := stamped(n)
				if n > 0 && rand.IntN(100) == 0 {
					m = odd(n)
				}
				inbox = append(inbox, m)
				if got, want := f.next(inbox), all.Next(m); got != want {
					t.Fatalf("message %d %+v: %s, want %s", n, m, got, want)
				}
			}
			if f.whole > 1 {
				t.Errorf("the inbox was read %d times", f.whole)
			}
		})
	}
}

func TestFirstID(t *testing.T) {
	var ids Identities
	if m := stamped(7); ids.Next(m) != FirstID(m) || ids.Next(m) == FirstID(m) {
		t.Error("the first of equal messages has another ID")
	}
}
