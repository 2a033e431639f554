package cadre_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/transcript"
)

// long is the n-th of many messages to an agent.
func long(n int) string { return fmt.Sprintf("news %d %s", n, strings.Repeat("and so on ", 400)) }

// portions are the sizes of the mail that each request brought to a model.
func (c conversation) portions() (sizes []int) {
	for _, m := range c {
		if m.Role != transcript.User {
			continue
		}
		size := 0
		for _, b := range m.Content {
			if b.Type == transcript.Text && strings.HasPrefix(b.Text, "<teammate-message") {
				size += len(b.Text)
			}
		}
		if size > 0 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// much has a person and a peer write many messages to an agent at once, and returns
// how many each has written.
func (w *teamWorld) much(t *testing.T, peer, to string, messages int) (persons, peers int) {
	t.Helper()
	var calls []scripted.Call
	for n := range messages / 20 {
		calls = append(calls, writing(to, "word of "+long(n), "a word"))
	}
	written := w.give(t, peer, order{Calls: calls})
	for n := range messages {
		if _, err := w.state.Teams().Say(t.Context(), alpha, to, long(n)); err != nil {
			t.Fatal(err)
		}
	}
	w.results(t, peer, written, len(calls))
	return messages, len(calls)
}

var (
	toldNews = regexp.MustCompile(`>\n(word of )?news (\d+) `)
	backNews = regexp.MustCompile(`"type":"mail_returned".*"text":"(word of )?news (\d+) `)
	moreNews = regexp.MustCompile(`\d+ more messages wait for you`)
)

// news are the numbers of the messages that a model was shown in this form, in order:
// those of the person, and those of the peer.
func (c conversation) news(form *regexp.Regexp) (persons, peers []int) {
	for _, in := range c.inputs() {
		for _, match := range form.FindAllStringSubmatch(in, -1) {
			n, _ := strconv.Atoi(match[2])
			if match[1] == "" {
				persons = append(persons, n)
			} else {
				peers = append(peers, n)
			}
		}
	}
	return persons, peers
}

// waits is how many messages of an agent's inbox are not marked read.
func (w *teamWorld) waits(t *testing.T, agent string) int {
	t.Helper()
	unread, err := w.state.Mail().Unread(t.Context(), at(agent))
	if err != nil {
		t.Fatal(err)
	}
	return len(unread)
}

// upTo are the numbers below n.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// However much mail waits for an agent, no request brings more of it than a bound:
// the rest stays unread, comes with the next rounds, each message once and each
// sender's in order, and before it is all there the agent is not idle.
func TestVeryMuchMailComesInPortions(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		w.idles(t, "bob", 1)
		busy := w.give(t, "bob", order{Calls: []scripted.Call{w.untilThere("go"), w.untilThere("go-on")}})
		w.isThere(t, "begun")
		persons, peers := w.much(t, "ann", "bob", 300)
		w.write(t, w.path("go"), "", 0o600)
		given := 0
		eventually(t, "bob was given a first portion, which is marked read", func() bool {
			one, other := w.shown(t, "bob").news(toldNews)
			given = len(one) + len(other)
			return given > 0 && w.waits(t, "bob")+given == persons+peers
		})
		told := moreNews.FindString(strings.Join(w.shown(t, "bob").inputs(), "\n"))
		if given > 60 || told == "" {
			t.Errorf("the first portion has %d messages, and bob was told %q", given, told)
		}
		w.write(t, w.path("go-on"), "", 0o600)
		w.results(t, "bob", busy, 2)
		w.settled(t)
		one, other := w.shown(t, "bob").news(toldNews)
		if !slices.Equal(one, upTo(persons)) || !slices.Equal(other, upTo(peers)) {
			t.Errorf("bob was shown, of the person, %v, and of the peer, %v", one, other)
		}
		if n := w.waits(t, "bob"); n != 0 {
			t.Errorf("%d messages are unread", n)
		}
		sizes := w.shown(t, "bob").portions()
		if largest := slices.Max(sizes); largest > session.MaxBulk || len(sizes) < 7 {
			t.Errorf("the portions have up to %d bytes: %v", largest, sizes)
		}
		if idle := len(w.idles(t, "bob", 2)); idle != 2 {
			t.Errorf("bob told %d times that it is idle", idle)
		}
	})
}

// A lead that comes back to very much mail is given it in portions too; when it is
// killed with the first one unanswered, that is all that it is asked about at first.
func TestALeadComesBackToVeryMuchMail(t *testing.T) {
	w := newTeamWorld(t, inProcess)
	w.form(t)
	id := w.Info().SessionID
	resume := func(c *cadre.Config) { c.Resume = id }
	w.Kill()
	silent := order{ID: "silent", Fault: "silent", Until: w.path("go")}
	const messages = 200
	texts := []string{silent.text()}
	for n := range messages {
		texts = append(texts, long(n))
	}
	for _, text := range texts {
		if _, err := w.state.Teams().Say(t.Context(), alpha, mailbox.LeadName, text); err != nil {
			t.Fatal(err)
		}
	}
	w.open(t, resume)
	eventually(t, "the lead was given a portion, which is marked read", func() bool {
		given, _ := w.shown(t, mailbox.LeadName).news(toldNews)
		return len(given) > 0 && w.waits(t, mailbox.LeadName)+len(given) == messages
	})
	w.Kill()
	w.write(t, w.path("go"), "", 0o600)
	w.open(t, resume)
	w.settled(t)
	seen := w.shown(t, mailbox.LeadName)
	if given, _ := seen.news(toldNews); !slices.Equal(given, upTo(messages)) {
		t.Errorf("the lead was shown %v", given)
	}
	if sizes := seen.portions(); slices.Max(sizes) > session.MaxBulk || len(sizes) < 5 {
		t.Errorf("the portions have %v bytes", sizes)
	}
}

// An agent whose model fails is not given what is left: its lead is told, nobody
// waits for that any more, and what was never shown goes back when the agent is stopped.
func TestWhatAFailingModelWasNotGivenComesBack(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann", "bob")
		w.idles(t, "bob", 1)
		w.give(t, "bob", order{Calls: []scripted.Call{w.untilThere("go")}})
		w.isThere(t, "begun")
		w.give(t, "bob", order{Fault: "full"})
		persons, peers := w.much(t, "ann", "bob", 100)
		w.write(t, w.path("go"), "", 0o600)
		w.idles(t, "bob", 2)
		w.settled(t)
		notes, left := w.idles(t, "bob", 2), w.waits(t, "bob")
		if note := notes[len(notes)-1]; note.IdleReason != protocol.IdleFailed || note.Unread != left || left < 30 {
			t.Errorf("the lead was told %+v; %d messages are unread", note, left)
		}
		w.stop(t, "bob", true)
		w.leaves(t, "bob")
		given, givenOfPeer := w.shown(t, "bob").news(toldNews)
		eventually(t, "the person's messages were each shown, or came back", func() bool {
			back, _ := w.shown(t, mailbox.LeadName).news(backNews)
			return slices.Equal(slices.Concat(given, back), upTo(persons))
		})
		eventually(t, "the peer's were each shown, or came back", func() bool {
			_, back := w.shown(t, "ann").news(backNews)
			return slices.Equal(slices.Concat(givenOfPeer, back), upTo(peers))
		})
	})
}

// The same holds for a lead: the run ends.
func TestNobodyWaitsForWhatAFailingLeadWasNotGiven(t *testing.T) {
	w := newTeamWorld(t, inProcess)
	w.form(t, "ann")
	w.give(t, mailbox.LeadName, order{Calls: []scripted.Call{w.untilThere("go")}})
	w.isThere(t, "begun")
	fault := session.Text(session.Prompt, order{ID: "fault", Fault: "full"}.text())
	if err := w.Session().Send(t.Context(), fault); err != nil { // a busy lead takes it in between two rounds
		t.Fatal(err)
	}
	w.much(t, "ann", mailbox.LeadName, 100)
	w.write(t, w.path("go"), "", 0o600)
	w.settled(t)
	if n := w.waits(t, mailbox.LeadName); n < 30 {
		t.Errorf("%d messages are unread", n)
	}
}

// The largest message that there can be fits into a portion.
func TestNoMessageIsLargerThanAPortion(t *testing.T) {
	// What grows most when it is shown: the tags and quotes that are escaped.
	m := mailbox.Message{
		From: strings.Repeat(`"`, 4<<10), Color: strings.Repeat(`"`, 4<<10), Summary: strings.Repeat(`"`, 4<<10),
		Text: strings.Repeat("<system-reminder", 8<<10),
	}
	if n := len(protocol.Wrap(m)); len(m.Text) != 128<<10 || n > session.MaxBulk {
		t.Errorf("a message of %d bytes is shown in %d, a portion has %d", len(m.Text), n, session.MaxBulk)
	}
}

// What is left out of a message that is too large to be shown stands in a file, which
// the agent may read without asking.
func TestTheWholeOfALargeMessageCanBeRead(t *testing.T) {
	w := newTeamWorld(t, inProcess)
	w.form(t)
	text := strings.Repeat("All of it counts.\n", 12<<10) + "The last word."
	large := mailbox.Message{From: "stranger", Text: text, Timestamp: protocol.Stamp(time.Now())}
	if err := w.state.Mail().Post(t.Context(), at(mailbox.LeadName), large); err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile("The whole message above stands in (.+): read there")
	var path string
	eventually(t, "the lead was shown where the whole message stands", func() bool {
		if found := place.FindStringSubmatch(strings.Join(w.shown(t, mailbox.LeadName).inputs(), "\n")); found != nil {
			path = found[1]
		}
		return path != ""
	})
	if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
		t.Errorf("%d bytes are kept of %d, %v", len(kept), len(text), err)
	}
	lines := strings.Count(text, "\n")
	contains(t, w.leads(t, scripted.Use("Read", fields{"file_path": path, "offset": lines, "limit": 5}))[0], "The last word.")
}
