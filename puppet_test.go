package cadre_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/transcript"
)

// order is what a test has an agent's model do. It travels as text, in a prompt or
// in mail, and so reaches the model in whatever process that is asked: what happens
// in a test stands in the test, and is the same wherever its agents run.
type order struct {
	ID    string          // another in each conversation: it is in the ids of the calls
	On    string          // carried out anew for each input that has this in it
	Calls []scripted.Call // one after the other, each once
	Say   string          // when all calls are made
	// Fault is what is wrong with the model from now on: see faults. It is over when
	// there is a file Until.
	Fault, Until string
}

const (
	orderMark = "ORDER "
	// In the input of a call: what its model was told.
	requestOf = "${request}" // the id in the request that the order is about
	planFile  = "${plan}"    // where the agent's plan belongs
)

// faults are the ways in which a model fails.
var faults = map[string]func() scripted.Fault{
	"down": func() scripted.Fault {
		return scripted.Fault{Err: &provider.Error{Class: provider.Server, Status: 500, Message: "the model is down"}}
	},
	"full": func() scripted.Fault {
		return scripted.Fault{Err: &provider.Error{Class: provider.TooLong, Status: 400, Message: "the context is full"}}
	},
	"silent": func() scripted.Fault { return scripted.Fault{Gate: make(chan struct{})} },
}

// text is the order as an agent is told it.
func (o order) text() string {
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return orderMark + string(encoded)
}

// callID is the id of an order's call, by which the test finds its result.
func callID(order string, n int) string { return "toolu_" + order + "_" + strconv.Itoa(n) }

// puppet is a model that does what it is ordered to, and nothing by itself. What it
// was shown last, it writes below root.
func puppet(root layout.Root) *scripted.Model {
	return scripted.Func(func(req provider.Request) scripted.Reply {
		shown := request{req.System, conversation(req.Messages)}
		shown.keep(root, req.Agent.Name)
		return shown.Messages.reply()
	})
}

// request is what a model was shown.
type request struct {
	System   []string
	Messages conversation
}

type conversation []transcript.Message

// shownFile is where a model leaves what it was shown.
func shownFile(root layout.Root, agent string) string {
	if agent == "" {
		agent = mailbox.LeadName // one that leads nobody yet
	}
	return filepath.Join(string(root), "shown", agent+".json")
}

func (r request) keep(root layout.Root, agent string) {
	encoded, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	path := shownFile(root, agent)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		panic(err)
	}
	temporary := path + "~"
	if err := os.WriteFile(temporary, encoded, 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		panic(err)
	}
}

// shown is what an agent's model was shown last; nothing before its first request.
func (w *world) shown(t *testing.T, agent string) conversation {
	t.Helper()
	return w.request(t, agent).Messages
}

// system is the system prompt in that.
func (w *world) system(t *testing.T, agent string) string {
	t.Helper()
	return strings.Join(w.request(t, agent).System, "\n")
}

func (w *world) request(t *testing.T, agent string) (r request) {
	t.Helper()
	encoded, err := os.ReadFile(shownFile(w.home, agent))
	if err == nil {
		err = json.Unmarshal(encoded, &r)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return r
}

// inputs are the pieces of text that came from others than the model: prompts, each
// message, each word of the runtime.
func (c conversation) inputs() []string {
	var all []string
	for _, m := range c {
		for _, b := range m.Content {
			if m.Role != transcript.User || b.Type != transcript.Text {
				continue
			}
			for i, piece := range strings.SplitAfter(b.Text, "<teammate-message") {
				piece = strings.TrimSuffix(piece, "<teammate-message")
				if i > 0 {
					piece = "<teammate-message" + piece
				}
				if strings.TrimSpace(piece) != "" {
					all = append(all, piece)
				}
			}
		}
	}
	return all
}

// times counts the inputs that have all of these in them. Orders do not count.
func (c conversation) times(texts ...string) (n int) {
	for _, in := range c.inputs() {
		has := func(text string) bool { return strings.Contains(in, text) }
		if !has(orderMark) && !slices.ContainsFunc(texts, func(text string) bool { return !has(text) }) {
			n++
		}
	}
	return n
}

// results are the tool results by the ids of their calls.
func (c conversation) results() map[string]transcript.Block {
	all := make(map[string]transcript.Block)
	for _, m := range c {
		for _, b := range m.Content {
			if b.Type == transcript.ToolResult {
				all[b.ToolUseID] = b
			}
		}
	}
	return all
}

// due is an order as it is to be carried out: a standing one is due for each input
// that it is about.
type due struct {
	order
	about string // the input
}

// dues are the orders in a conversation, the standing ones last. They hold for what
// came before them too: what is urgent overtakes.
func (c conversation) dues() []due {
	var once, again []due
	inputs := c.inputs()
	for i, in := range inputs {
		for _, o := range ordersIn(in) {
			if o.On == "" {
				once = append(once, due{o, strings.Join(inputs[:i], "\n")})
				continue
			}
			for n, other := range inputs {
				if strings.Contains(other, o.On) && !strings.Contains(other, orderMark) {
					o := o
					o.ID += "_" + strconv.Itoa(n)
					again = append(again, due{o, other})
				}
			}
		}
	}
	return append(once, again...)
}

// ordersIn reads the orders in a text; one that somebody tells of, shortened, is
// none.
func ordersIn(text string) (all []order) {
	for {
		_, part, found := strings.Cut(text, orderMark)
		if !found {
			return all
		}
		var o order
		decoder := json.NewDecoder(strings.NewReader(part))
		if decoder.Decode(&o) == nil {
			all = append(all, o)
		}
		text = part[decoder.InputOffset():] // an order may have another in it, for whom it has started
	}
}

// reply is the next call of the first order that is not carried out yet.
func (c conversation) reply() scripted.Reply {
	dues, done := c.dues(), c.results()
	for _, d := range dues {
		if fault, ok := faults[d.Fault]; ok && !exists(d.Until) {
			return scripted.Reply{Say: "never", Fault: fault()}
		}
	}
	words := "I wait."
	for _, d := range dues {
		for n, call := range d.Calls {
			call.ID = callID(d.ID, n)
			if _, made := done[call.ID]; !made {
				call.Input = c.filled(call.Input, d.about)
				return scripted.Reply{Calls: []scripted.Call{call}}
			}
		}
		if d.Say != "" {
			words = d.Say
		}
	}
	return scripted.Reply{Say: words}
}

var (
	requestID = regexp.MustCompile(`"request(?:Id|_id)":"([^"]+)"`)
	planPath  = regexp.MustCompile(`Write your plan to (\S+), the only file`)
)

// filled is the input of a call with what the model was told in it: the newest that
// fits.
func (c conversation) filled(input json.RawMessage, about string) json.RawMessage {
	text := string(input)
	if ids := requestID.FindAllStringSubmatch(about, -1); ids != nil {
		text = strings.ReplaceAll(text, requestOf, ids[len(ids)-1][1])
	}
	for _, in := range c.inputs() {
		if path := planPath.FindStringSubmatch(in); path != nil {
			text = strings.ReplaceAll(text, planFile, path[1])
		}
	}
	return json.RawMessage(text)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}
