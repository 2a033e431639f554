package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// uniqueIDs gives calls whose id is empty or was used before a new one, since
// no model accepts the conversation otherwise.
func (r *run) uniqueIDs(m *transcript.Message) {
	if r.used == nil {
		r.used = make(map[string]bool)
		for _, old := range r.messages {
			for _, use := range old.ToolUses() {
				r.used[use.ID] = true
			}
		}
	}
	copied := false
	for i, b := range m.Content {
		if b.Type != transcript.ToolUse {
			continue
		}
		id := b.ID
		for n := 2; id == "" || r.used[id]; n++ {
			id = b.ID + "_" + strconv.Itoa(n)
		}
		r.used[id] = true
		if id != b.ID {
			if !copied {
				m.Content, copied = slices.Clone(m.Content), true
			}
			m.Content[i].ID = id
		}
	}
}

// runCalls runs the calls of a reply: neighbours that may run beside each other
// together, the others one by one in their order.
func (r *run) runCalls(ctx context.Context, uses []transcript.Block) (next, error) {
	calls := make([]tool.Call, len(uses))
	for i, use := range uses {
		calls[i] = tool.Call{ID: use.ID, Name: use.Name, Input: use.Input}
	}
	results := make([]Result, 0, len(calls))
	for len(calls) > 0 {
		n := r.groupLen(calls)
		group, ok := r.runGroup(ctx, calls[:n])
		if !ok {
			return finished, nil
		}
		results = append(results, group...)
		calls = calls[n:]
	}
	r.addResults(results)
	if !r.addNotes(results) {
		return finished, nil
	}
	if ctx.Err() != nil {
		return finished, context.Cause(ctx)
	}
	if goesOn, err := r.afterRepeats(results); err != nil || !goesOn {
		return finished, err
	}
	for _, res := range results {
		if res.Result.EndTurn {
			return finished, nil
		}
	}
	return goOn, nil
}

// groupLen is how many of the next calls run together.
func (r *run) groupLen(calls []tool.Call) int {
	n := 0
	for n < len(calls) && r.parallel(calls[n]) {
		n++
	}
	return max(n, 1)
}

func (r *run) parallel(call tool.Call) bool {
	t, ok := r.tools.Lookup(call.Name)
	return ok && t.Spec().Parallel
}

// runGroup runs calls beside each other and yields their results as they come.
// It returns them in the order of the calls; ok is false when the consumer
// broke off.
func (r *run) runGroup(ctx context.Context, calls []tool.Call) (results []Result, ok bool) {
	if len(calls) == 1 {
		return r.runAlone(ctx, calls[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	steps := make(chan indexed)
	var running sync.WaitGroup
	free := make(chan struct{}, maxParallel)
	line := r.lineUp(calls)
	running.Go(func() {
		var group sync.WaitGroup
		for i, call := range calls {
			free <- struct{}{}
			group.Go(func() {
				defer func() { <-free }()
				defer line[i].Leave()
				emit := func(s Step) {
					consumed := make(chan struct{})
					steps <- indexed{i, s, consumed}
					<-consumed // so that nothing of a call is yielded before its start
				}
				emit(r.runCall(tool.WithPlace(ctx, line[i]), call, emit))
			})
		}
		group.Wait()
		close(steps)
	})
	defer running.Wait()

	results = make([]Result, len(calls))
	for s := range steps {
		if r.broken {
			close(s.consumed)
			continue // drain: cancel ends the calls
		}
		if res, isResult := s.step.(Result); isResult {
			results[s.index] = res
		}
		if !r.yield(s.step) {
			cancel(errBrokenOff)
		}
		close(s.consumed)
	}
	return results, !r.broken
}

// runAlone is runGroup for one call: it needs no goroutine, and mostly it is one.
func (r *run) runAlone(ctx context.Context, call tool.Call) (results []Result, ok bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	place := tool.NewPlace(nil)
	defer place.Leave()
	emit := func(s Step) {
		if !r.broken && !r.yield(s) {
			cancel(errBrokenOff)
		}
	}
	res := r.runCall(tool.WithPlace(ctx, place), call, emit)
	emit(res)
	return []Result{res}, !r.broken
}

// lineUp gives each call its place behind the earlier ones of the same tool.
func (r *run) lineUp(calls []tool.Call) []*tool.Place {
	line := make([]*tool.Place, len(calls))
	byTool := make(map[string][]*tool.Place)
	for i, call := range calls {
		name := call.Name
		if t, ok := r.tools.Lookup(name); ok {
			name = t.Spec().Name
		}
		line[i] = tool.NewPlace(byTool[name])
		byTool[name] = append(byTool[name], line[i])
	}
	return line
}

type indexed struct {
	index    int
	step     Step
	consumed chan struct{} // closed when the consumer has it
}

var errBrokenOff = fmt.Errorf("the turn was broken off")

// runCall carries one call through its schema, the permission decision and the
// tool. It always returns a result.
func (r *run) runCall(ctx context.Context, call tool.Call, emit func(Step)) (res Result) {
	res = Result{Call: call}
	t, ok := r.tools.Lookup(call.Name)
	if !ok {
		res.Result = tool.UseError("No such tool available: " + call.Name)
		return res
	}
	res.Spec = t.Spec()
	if ctx.Err() != nil {
		res.Result = tool.Error(transcript.InterruptedForTool)
		return res
	}
	input, err := res.Spec.Schema.Normalize(res.Spec.Name, call.Input)
	if err != nil {
		res.Result = tool.UseError(err.Error())
		return res
	}
	call.Input = input
	verdict := r.Permit(ctx, t, call)
	if !verdict.Allow {
		res.Denied = true
		res.Result = tool.Error(verdict.Reason)
		res.Result.EndTurn = verdict.EndTurn
		return res
	}
	if verdict.Input != nil {
		call.Input = verdict.Input
	}
	res.Note = verdict.Note
	emit(Started{call, res.Spec.Name})
	start := time.Now() // not before: a person may have thought about it for long
	res.Result = runTool(ctx, t, call)
	res.Took = time.Since(start)
	return res
}

// runTool turns a panic of a tool into a result: one broken tool must not take
// the other agents of the process with it.
func runTool(ctx context.Context, t tool.Tool, call tool.Call) (res tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			res = tool.Error(fmt.Sprintf("The tool %s broke down (%v). This is a defect of cadre, not of your call; use another way.", call.Name, p))
		}
	}()
	return t.Run(ctx, call)
}

func (r *run) addResults(results []Result) {
	blocks := make([]transcript.Block, len(results))
	for i, res := range results {
		blocks[i] = res.Result.Block(res.Call)
	}
	r.add(transcript.Message{Role: transcript.User, Content: blocks})
}

// addNotes adds what came with the approvals of a round, for the model. It returns
// false when the consumer broke off.
func (r *run) addNotes(results []Result) bool {
	for _, res := range results {
		if res.Note == "" {
			continue
		}
		m := transcript.UserText(res.Note)
		if !r.yield(Note{m}) {
			return false
		}
		r.add(m)
	}
	return true
}

// offer describes the tools of this moment to the model.
func (r *run) offer() []provider.Tool {
	r.tools = r.Tools.Tools()
	tools := make([]provider.Tool, 0, len(r.tools.All()))
	for _, t := range r.tools.All() {
		spec := t.Spec()
		if r.Offered == nil || r.Offered(spec) {
			tools = append(tools, provider.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema.JSON()})
		}
	}
	return tools
}
