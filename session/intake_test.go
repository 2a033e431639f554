package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// bulk is the n-th of many messages, of so many bytes.
func bulk(n, size int) Input {
	text := fmt.Sprintf("message %d ", n)
	in := Text(PeerMail, text+strings.Repeat("x", size-len(text)))
	in.Bulk, in.Receipts = true, []string{fmt.Sprint(n)}
	return in
}

// crowd is a source that has all of its inputs at once.
type crowd []Input

func (c *crowd) Opened([]string) {}

func (c *crowd) Next(ctx context.Context) ([]Input, error) {
	if len(*c) == 0 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	all := *c
	*c = nil
	return all, nil
}

// reader is a model that notes what each request has over the one before: the words
// with which its pieces begin.
type reader struct {
	requests [][]string
	fails    error    // from now on
	calls    []string // to be made first
}

func (r *reader) model() scriptModel {
	return func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		var pieces []string
		for _, b := range req.Messages[len(req.Messages)-1].Content {
			if b.Type != transcript.Text {
				continue
			}
			piece, rest, _ := strings.Cut(b.Text, " x")
			if rest != "" && !strings.HasPrefix(b.Text, "message ") {
				piece = b.Text
			}
			pieces = append(pieces, piece)
		}
		r.requests = append(r.requests, pieces)
		switch {
		case r.fails != nil:
			yield(nil, r.fails)
		case len(r.calls) > 0:
			call := r.calls[0]
			r.calls = r.calls[1:]
			yield(reply(use(call, `{}`)), nil)
		default:
			yield(reply(transcript.TextBlock("read")), nil)
		}
	}
}

// bulkIn is how much of it is in a message.
func bulkIn(m transcript.Message) (size int) {
	for _, b := range m.Content {
		if b.Type == transcript.Text && strings.HasPrefix(b.Text, "message ") {
			size += len(b.Text)
		}
	}
	return size
}

// more is what a model is told of messages that wait.
func more(n int) string {
	if n == 1 {
		return prompt.Reminder("1 more message waits for you: it comes with your next rounds, or as soon as your turn ends.")
	}
	return prompt.Reminder(fmt.Sprintf("%d more messages wait for you: they come with your next rounds, or as soon as your turn ends.", n))
}

// numbered are the beginnings of bulk messages.
func numbered(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("message %d", n))
	}
	return all
}

// calm waits until a session has nothing to do.
func calm(s *Session) {
	for s.State().Busy {
		<-s.tree.IdleSignal()
	}
}

// However much waits, a model is given it in portions: between rounds, and in turns
// that follow each other without the agent ever being idle.
func TestBulkComesInPortions(t *testing.T) {
	var inputs crowd
	var kept []string
	for n := range 10 {
		in := bulk(n+1, MaxBulk/4)
		in.Kept = func(_ context.Context, err error) { kept = append(kept, fmt.Sprint(n+1, err)) }
		inputs = append(inputs, in)
	}
	r := &reader{calls: []string{"Look"}}
	var idle, busyAtLook []int
	log := &memLog{}
	var s *Session
	look := funcTool{name: "Look", run: func(context.Context, tool.Call) tool.Result {
		messages, _ := log.Entries(t.Context())
		busyAtLook = append(busyAtLook, len(messages))
		return tool.Text("looked")
	}}
	idled := make(chan struct{})
	s = open(t, log, r.model(), func(c *Config) {
		c.Sources = []Source{&inputs}
		c.Life = life{idle: func(context.Context, *event.Outcome) (*Input, error) {
			idle = append(idle, len(r.requests))
			close(idled)
			return nil, nil
		}}
	}, look)
	<-idled
	calm(s)
	want := [][]string{
		append(numbered(1, 4), more(6)),
		append(numbered(5, 8), more(2)), // after the call
		numbered(9, 10),                 // the next turn
	}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !slices.Equal(idle, []int{3}) {
		t.Errorf("idle after the requests %v, want only after the last", idle)
	}
	if len(busyAtLook) != 1 || busyAtLook[0] != 6 { // four messages, the note, the reply
		t.Errorf("at the call the transcript has %v entries", busyAtLook)
	}
	if err := s.Close(nil); err != nil {
		t.Fatal(err)
	}
	if len(kept) != 10 || slices.ContainsFunc(kept, func(k string) bool { return !strings.HasSuffix(k, "<nil>") }) {
		t.Errorf("kept %v", kept)
	}
}

// What is not bulk is taken at once, whatever waits; a piece that is larger than a
// portion comes alone.
func TestWhatDoesNotWaitForItsPortion(t *testing.T) {
	shutdown, answer := Text(Shutdown, "please end"), Text(LeadMail, "your plan is good")
	inputs := crowd{bulk(1, MaxBulk+1), bulk(2, 100), bulk(3, MaxBulk), bulk(4, 100), answer, shutdown}
	r := &reader{}
	s := open(t, &memLog{}, r.model(), func(c *Config) { c.Sources = []Source{&inputs} })
	until(t, s, func(event.Idle) bool { return true })
	want := [][]string{
		{"please end", "your plan is good", "message 1", more(3)},
		{"message 2", more(2)},
		{"message 3", more(1)},
		{"message 4"},
	}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A tool that waits for mail does not wait while there is some left.
func TestAWaitEndsWhileBulkIsLeft(t *testing.T) {
	wait := funcTool{name: "Wait", run: func(ctx context.Context, _ tool.Call) tool.Result {
		select {
		case <-tool.Arrived(ctx):
			return tool.Text("something arrived")
		case <-t.Context().Done():
			return tool.Error("waited in vain")
		}
	}}
	inputs := crowd{bulk(1, MaxBulk), bulk(2, MaxBulk)}
	r := &reader{calls: []string{"Wait"}}
	s := open(t, &memLog{}, r.model(), func(c *Config) { c.Sources = []Source{&inputs} }, wait)
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Rounds != 2 || len(r.requests) != 2 {
		t.Errorf("outcome %+v, requests %v", end.Outcome, r.requests)
	}
}

// What a model that fails was not given stays where it is, and comes after something
// new; what it was given and has not answered counts.
func TestBulkIsNotPouredIntoAModelThatFails(t *testing.T) {
	inputs := crowd{bulk(1, MaxBulk/2), bulk(2, MaxBulk/2), bulk(3, MaxBulk/2), bulk(4, MaxBulk/2), bulk(5, MaxBulk/2)}
	r := &reader{fails: &provider.Error{Class: provider.Server, Message: "down"}}
	told := make(chan int, 10)
	s := open(t, &memLog{}, r.model(), func(c *Config) {
		c.Sources = []Source{&inputs}
		c.Life = life{idle: func(_ context.Context, last *event.Outcome) (*Input, error) {
			told <- last.Stalled
			return nil, nil
		}}
	})
	stalls := func(left int) {
		t.Helper()
		if n := <-told; n != left {
			t.Errorf("%d messages are left for later, want %d", n, left)
		}
		calm(s)
		if st := s.State(); st.Stalled != left {
			t.Errorf("state %+v, want %d messages left", st, left)
		}
	}
	stalls(3)
	if err := s.Send(t.Context(), bulk(6, 100)); err != nil { // the model is asked again, and given nothing
		t.Fatal(err)
	}
	stalls(4)
	_ = s.Prompt(t.Context(), "try again")
	stalls(4)
	r.fails = nil
	_ = s.Prompt(t.Context(), "it works now")
	stalls(0)
	want := [][]string{
		append(numbered(1, 2), more(3)),
		append(numbered(1, 2), more(3)),
		append(numbered(1, 2), more(3), "try again", more(4)),
		append(numbered(1, 2), more(3), "try again", more(4), "it works now", more(4)),
		append(numbered(3, 4), more(2)),
		numbered(5, 6),
	}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// An interruption is no failure: the model is asked again at once, and then given what
// is left.
func TestBulkComesAfterAnInterruption(t *testing.T) {
	inputs := crowd{bulk(1, MaxBulk), bulk(2, 100), bulk(3, 100)}
	r := &reader{}
	reads, first := r.model(), make(chan struct{})
	var model scriptModel = func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		if len(r.requests) == 0 {
			r.requests = append(r.requests, nil)
			close(first)
			<-ctx.Done()
			return
		}
		reads(ctx, req, yield)
	}
	s := open(t, &memLog{}, model, func(c *Config) { c.Sources = []Source{&inputs} })
	<-first
	_ = s.Interrupt(t.Context(), ErrInterrupt)
	until(t, s, func(event.Idle) bool { return true })
	want := [][]string{
		nil,
		{"message 1", more(2), transcript.Interrupted},
		numbered(2, 3),
	}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// After a kill, what the transcript shows and nobody has answered counts.
func TestUnansweredBulkCountsAfterAKill(t *testing.T) {
	log := &memLog{}
	for n := range 2 {
		in := bulk(n+1, MaxBulk/2)
		log.entries = append(log.entries, transcript.Entry{
			UUID: fmt.Sprint(n), Kind: transcript.KindUser, Receipts: in.Receipts,
			Message: transcript.Message{Role: transcript.User, Content: in.Content},
		})
	}
	inputs := crowd{bulk(3, 100), bulk(4, 100)}
	r := &reader{}
	s := open(t, log, r.model(), func(c *Config) { c.Sources = []Source{&inputs} })
	until(t, s, func(event.Idle) bool { return true })
	want := [][]string{numbered(1, 2), numbered(3, 4)}
	if diff := cmp.Diff(want, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A turn that begins without input, since the model has first to answer what it was
// given before a kill, adds nothing to the conversation but its own steps: the requests
// after it are those that another restart would make.
func TestATurnWithoutInputAddsNothingToTheHistory(t *testing.T) {
	given := bulk(1, MaxBulk)
	log := &memLog{entries: []transcript.Entry{{
		UUID: "1", Kind: transcript.KindUser, Receipts: given.Receipts,
		Message: transcript.Message{Role: transcript.User, Content: given.Content},
	}}}
	var last []transcript.Message
	model := func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		last = req.Messages
		echoModel()(ctx, req, yield)
	}
	inputs := crowd{bulk(2, MaxBulk), bulk(3, MaxBulk)}
	s := open(t, log, scriptModel(model), func(c *Config) { c.Sources = []Source{&inputs} })
	until(t, s, func(event.Idle) bool { return true })
	stored := kept(t, log)
	if diff := cmp.Diff(stored[:len(stored)-1], last); diff != "" {
		t.Errorf("the last request is not what was stored before its reply (-stored +requested):\n%.2000s", diff)
	}
}

// When one of many cannot be kept, those behind it are refused as well, so that they
// come again in their order; what is not bulk is tried.
func TestBulkThatCannotBeKeptLetsNothingPass(t *testing.T) {
	appends := 0
	log := &memLog{fail: func() error {
		if appends++; appends == 2 {
			return errDisk
		}
		return nil
	}}
	var told []string
	tells := func(in Input) Input {
		name, _, _ := strings.Cut(in.Content[0].Text, " x")
		in.Kept = func(_ context.Context, err error) {
			told = append(told, fmt.Sprint(name, ": ", errors.Is(err, errDisk)))
		}
		return in
	}
	inputs := crowd{tells(bulk(1, 100)), tells(bulk(2, 100)), tells(bulk(3, MaxBulk)), tells(bulk(4, MaxBulk)), tells(Text(TaskToTake, "task"))}
	r := &reader{}
	s := open(t, log, r.model(), func(c *Config) { c.Sources = []Source{&inputs} })
	until(t, s, func(event.Idle) bool { return true })
	_ = s.Close(nil)
	if diff := cmp.Diff([][]string{{"message 1", "task"}}, r.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want := []string{"message 1: false", "message 2: true", "task: false", "message 3: true", "message 4: true"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A portion fits the context window beside the conversation, as the model has counted
// it. A message that does not is cut, and says where the whole of it can be read.
func TestAPortionFitsTheContextWindow(t *testing.T) {
	info, _ := provider.Lookup("gpt-4o")
	const room = 20_000
	usage := transcript.Usage{InputTokens: info.Context - info.MaxOutput - room/bytesPerToken}
	var requests [][]transcript.Block
	model := func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		requests = append(requests, req.Messages[len(req.Messages)-1].Content)
		answer := reply(transcript.TextBlock("read"))
		answer.Message.Usage = usage
		yield(answer, nil)
	}
	log := &memLog{entries: []transcript.Entry{
		{UUID: "1", Kind: transcript.KindUser, Message: transcript.UserText("hello")},
		{UUID: "2", Kind: transcript.KindAssistant, Message: transcript.Message{
			Role: transcript.Assistant, Content: []transcript.Block{transcript.TextBlock("yes")}, Usage: usage,
		}},
	}}
	large := bulk(4, 60_000)
	large.WholeAt = "/state/mail/4.txt"
	inputs := crowd{bulk(1, 9_000), bulk(2, 9_000), bulk(3, 9_000), large, bulk(5, 60_000)}
	s := open(t, log, scriptModel(model), func(c *Config) { c.ModelName, c.Sources = "gpt-4o", []Source{&inputs} })
	until(t, s, func(event.Idle) bool { return true })
	var got []string
	for _, blocks := range requests {
		var pieces []string
		for _, b := range blocks {
			if name, _, ok := strings.Cut(b.Text, " x"); ok && strings.HasPrefix(name, "message ") {
				pieces = append(pieces, fmt.Sprintf("%s (%d kB)", name, len(b.Text)/1000))
			}
			if strings.Contains(b.Text, large.WholeAt) {
				pieces = append(pieces, "its place")
			}
		}
		got = append(got, strings.Join(pieces, ", "))
	}
	want := []string{
		"message 1 (9 kB), message 2 (9 kB)", "message 3 (9 kB)", "message 4 (20 kB), its place",
		"message 5 (60 kB)", // nobody else has it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// inbox is a source that offers input again that was refused, in the order of its
// receipts.
type inbox struct {
	mu      sync.Mutex
	waiting []Input
	changed chan struct{}
}

func (b *inbox) offer(in Input) {
	in.Kept = func(_ context.Context, err error) {
		if err != nil {
			b.offer(in)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, in)
	slices.SortFunc(b.waiting, func(x, y Input) int { return inNumbers(x.Receipts[0], y.Receipts[0]) })
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *inbox) Opened([]string) {}

func (b *inbox) Next(ctx context.Context) ([]Input, error) {
	select {
	case <-b.changed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.waiting
	b.waiting = nil
	return all, nil
}

// When a message cannot be stored, one behind it that is on its way to the owner already
// is not stored before it, and nothing that comes while the first is still being given
// back.
func TestAMessageOnItsWayWaitsForTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &inbox{changed: make(chan struct{}, 1)}
		storing, fail := make(chan bool, 1), make(chan error, 1)
		storing <- true
		log := &memLog{fail: func() error {
			select {
			case <-storing:
				return <-fail
			default:
				return nil
			}
		}}
		s := open(t, log, echoModel(), func(c *Config) { c.Sources = []Source{source} })
		source.offer(bulk(1, 100))
		synctest.Wait()
		source.offer(bulk(2, 100))
		synctest.Wait() // it is on its way
		fail <- errDisk
		synctest.Wait()
		source.offer(bulk(3, 100))
		synctest.Wait()
		_ = s.Close(nil)
		if diff := cmp.Diff([]string{"1", "2", "3"}, mailIn(log.entries)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// When nothing can be kept, nothing waits in a session that nothing would wake.
func TestBulkIsRefusedWhenNothingCanBeKept(t *testing.T) {
	inputs := crowd{Text(TaskToTake, "task"), bulk(2, MaxBulk)}
	refused := make(chan error, 1)
	inputs[1].Kept = func(_ context.Context, err error) { refused <- err }
	log := &memLog{entries: []transcript.Entry{{UUID: "1", Kind: transcript.KindUser, Receipts: []string{"1"}, Message: transcript.Message{
		Role: transcript.User, Content: bulk(1, MaxBulk).Content,
	}}}}
	log.breakWith(errDisk)
	s := open(t, log, (&reader{}).model(), func(c *Config) { c.Sources = []Source{&inputs} })
	if err := <-refused; !errors.Is(err, errDisk) {
		t.Errorf("refused with %v", err)
	}
	calm(s)
}
