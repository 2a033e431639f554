package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// idleKilobytes is what a lean session may hold at rest, stacks included.
const idleKilobytes = 100

// TestManySessionsAtRestAreSmall opens sessions with long histories, works with
// each, and weighs what they hold when they rest.
func TestManySessionsAtRestAreSmall(t *testing.T) {
	const sessions = 100
	state := layout.Root(t.TempDir())
	files := filestore.New(state)
	t.Cleanup(func() { _ = files.Close() })
	memory := memstore.New()
	for name, stores := range map[string]struct {
		transcripts transcript.Store
		asks        func(transcript.Ref) ask.Store
		history     int // bytes; what a store in memory keeps is its own
	}{
		"files":  {files.Transcripts(), files.Asks, 256 << 10},
		"memory": {memory.Transcripts(), memory.Asks, 1 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			tools := manyTools(25)
			tree := NewTree(TreeConfig{})
			tree.memory.most = 0 // a constant, however many sessions there are
			weigh := scales()
			before := openFiles(t)
			for i := range sessions {
				ref := transcript.Ref{Project: "/w", Session: "00000000-0000-4000-8000-000000000000", Agent: fmt.Sprint("t", i)}
				log, err := stores.transcripts.Open(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				s := open(t, nil, echoModel(), func(c *Config) {
					c.Ref, c.Log, c.Tree, c.Tools, c.Asks, c.Lean = ref, log, tree, tool.NewSet(tools...), stores.asks(ref), true
					c.Agent = event.Agent{Session: ref.Session, ID: ref.Agent}
					c.Sources = []Source{make(channelSource), make(channelSource)}
				})
				in := Text(LeadMail, strings.Repeat("x", stores.history))
				in.Receipts = []string{"mail"}
				if err := s.Send(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				for s.State().Busy {
					<-tree.IdleSignal()
				}
			}
			for range 2000 { // so that the stream keeps nothing of what was said
				tree.Stream.Publish(event.Agent{}, event.Noticed{})
			}
			each := weigh() / sessions
			t.Logf("%d KiB and %.1f files per session", each>>10, float64(openFiles(t)-before)/sessions)
			if each > idleKilobytes<<10 {
				t.Errorf("a session at rest holds %d KiB, more than %d", each>>10, idleKilobytes)
			}
			if n := openFiles(t) - before; n > sessions+10 {
				t.Errorf("%d sessions at rest hold %d files, more than their leases", sessions, n)
			}
		})
	}
}

func TestALeanSessionGoesOnInItsFileAfterARest(t *testing.T) {
	files := filestore.New(layout.Root(t.TempDir()))
	t.Cleanup(func() { _ = files.Close() })
	ref := transcript.Ref{Project: "/w", Session: "00000000-0000-4000-8000-000000000000"}
	for life := range 2 {
		log, err := files.Transcripts().Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, nil, echoModel(), func(c *Config) { c.Ref, c.Log, c.Asks, c.Lean, c.Tree.memory.most = ref, log, files.Asks(ref), true, 0 })
		for i := range 3 {
			in := Text(LeadMail, fmt.Sprint("mail ", life, i))
			in.Receipts = []string{fmt.Sprint("receipt ", life, i)}
			if err := s.Send(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			for s.State().Busy {
				<-s.tree.IdleSignal()
			}
		}
		if err := s.Close(nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := files.Transcripts().Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(entries); i += 2 {
		if text := transcript.JoinText(entries[i+1].Message.Content); !strings.HasPrefix(text, "you said: mail ") || len(entries[i].Receipts) != 1 {
			t.Errorf("entries %d: %+v, %+v", i, entries[i], entries[i+1])
		}
	}
	if messages := transcript.Conversation(entries); len(messages) != 12 || transcript.Check(messages) != nil {
		t.Errorf("%d messages", len(messages))
	}
}

// scales returns a function that weighs what was allocated since, in bytes.
func scales() func() int {
	held := func() int {
		var m runtime.MemStats
		for range 3 { // stacks shrink with a collection
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	before := held()
	return func() int { return held() - before }
}

// openFiles counts the process's open files, where the system lists them.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir(filepath.FromSlash("/proc/self/fd"))
	if err != nil {
		return 0
	}
	return len(list)
}

func manyTools(n int) []tool.Tool {
	tools := make([]tool.Tool, n)
	for i := range tools {
		tools[i] = funcTool{name: fmt.Sprint("Tool", i), run: func(context.Context, tool.Call) tool.Result { return tool.Text("") }}
	}
	return tools
}
