package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// Identify sets the ID of each message of a whole inbox, in its order.
func Identify(inbox []Message) {
	var ids Identities
	for i := range inbox {
		inbox[i].ID = ids.Next(inbox[i])
	}
}

// Identities gives IDs to the messages of one inbox one by one, in its order.
// The zero value is that of an empty inbox.
//
// An inbox may have a long history, so old messages are forgotten ([Identities.Forget]).
// That is possible because equal messages have equal timestamps, and timestamps nearly
// always grow along an inbox: a message that is newer than all the forgotten ones equals
// none of them. For one that is not newer, the whole inbox has to be read again; once such
// messages have come, nothing is forgotten any more.
type Identities struct {
	seen   map[digest]int32 // how often each was there
	recent []dated          // the newest that can be forgotten, the oldest first
	before string           // no message older than the recent ones has a later timestamp
	forgot bool             // something was forgotten
	late   bool             // a message came that was not newer than the forgotten ones
}

type digest [12]byte

type dated struct {
	digest
	at string
}

// remembered is how many messages are not forgotten. That many may come between a message
// and its place by timestamp, because its sender's clock is slow or the sender had to wait
// for the inbox.
const remembered = 4096

// Next returns the ID of the next message. After [Identities.Forget] it must be one
// that [Identities.CanIdentify] is true of.
func (s *Identities) Next(m Message) ID {
	if s.seen == nil {
		s.seen = make(map[digest]int32)
	}
	d := digestOf(m)
	s.seen[d]++
	s.late = s.late || isPlain(m.Timestamp) && m.Timestamp <= s.before
	if isPlain(m.Timestamp) && !s.late { // others are few, and never forgotten
		s.recent = append(s.recent, dated{d, m.Timestamp})
		if older := len(s.recent) - 1 - remembered; older >= 0 {
			s.before = max(s.before, s.recent[older].at)
		}
	}
	return d.id(s.seen[d])
}

// FirstID is the ID of a message that no equal one precedes in its inbox.
func FirstID(m Message) ID { return digestOf(m).id(1) }

func (d digest) id(occurrence int32) ID {
	return ID(hex.EncodeToString(d[:]) + "-" + strconv.Itoa(int(occurrence)))
}

// CanIdentify reports whether Next knows how many messages equal to m came before.
func (s *Identities) CanIdentify(m Message) bool {
	return !s.forgot || !isPlain(m.Timestamp) || m.Timestamp > s.before
}

// Forget drops old messages, from which later ones differ by their timestamps.
func (s *Identities) Forget() {
	if s.late {
		s.recent = nil
		return
	}
	if len(s.recent) < 2*remembered { // not one by one
		return
	}
	s.forgot = true
	old := s.recent[:len(s.recent)-remembered]
	s.recent = slices.Clone(s.recent[len(old):])
	for _, m := range old {
		delete(s.seen, m.digest)
	}
	s.seen = maps.Collect(maps.All(s.seen)) // a map keeps the room of what is deleted from it
}

// isPlain reports whether a timestamp has the one form in which the order of
// texts is that of times.
func isPlain(timestamp string) bool {
	const form = "0000-00-00T00:00:00.000Z"
	if len(timestamp) != len(form) {
		return false
	}
	for i := range len(form) {
		isDigit := timestamp[i] >= '0' && timestamp[i] <= '9'
		if form[i] == '0' && !isDigit || form[i] != '0' && timestamp[i] != form[i] {
			return false
		}
	}
	return true
}

func digestOf(m Message) digest {
	h := sha256.New()
	for _, part := range []string{m.From, m.Timestamp, m.Text} {
		h.Write([]byte(strconv.Itoa(len(part))))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return digest(h.Sum(nil)[:len(digest{})])
}
