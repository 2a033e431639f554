package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/transcript"
)

// jobSuite checks an implementation of [job.Store]. The second way to open is used
// when the first is not any more, as after a restart.
func jobSuite(t *testing.T, open Open[Stores]) {
	tests := map[string]func(t *testing.T, first, second func(transcript.Ref) job.Store){
		"begin and end":     endJobs,
		"end unfinished":    endUnfinishedJobs,
		"many end at once":  endAtOnce,
		"nothing cancelled": jobsCancelled,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a.Jobs, b.Jobs)
		})
	}
}

var (
	mainJobs  = transcript.Ref{Project: "/p", Session: session1}
	agentJobs = transcript.Ref{Project: "/p", Session: session1, Agent: "a1b2c3d"}
)

func begun(id string) job.Record {
	return job.Record{
		ID: id, Kind: job.Agent, Title: "look <there> & there", Call: "toolu_" + id, Agent: id,
		OutputFile: "/out/" + id, Started: time.UnixMilli(1795231010482).UTC(),
	}
}

func endOf(text string) job.End {
	return job.End{
		Status: job.Failed, At: time.UnixMilli(1795231020482).UTC(), Unwaited: true, ExitCode: 3, Text: text,
		Tokens: 30, ToolUses: 2, Error: "no more",
	}
}

// with is a record that has an end.
func with(r job.Record, e job.End) job.Record {
	r.End = &e
	return r
}

func allJobs(t *testing.T, s job.Store, what string, want ...job.Record) {
	t.Helper()
	got, err := s.All(t.Context())
	check(t, err)
	equal(t, what, got, want, cmpopts.EquateEmpty())
}

func endJobs(t *testing.T, first, second func(transcript.Ref) job.Store) {
	s := first(mainJobs)
	allJobs(t, s, "none")
	check(t, s.Begin(t.Context(), begun("a2")))
	check(t, s.Begin(t.Context(), with(begun("a1"), endOf("is not heard"))))
	check(t, s.Begin(t.Context(), begun("a3")))
	allJobs(t, s, "begun", begun("a2"), begun("a1"), begun("a3"))
	check(t, s.End(t.Context(), "a1", endOf("first")))
	check(t, s.End(t.Context(), "a1", endOf("second")))
	check(t, s.End(t.Context(), "a9", endOf("of nothing")))
	check(t, s.Begin(t.Context(), begun("a1")))
	want := []job.Record{begun("a2"), with(begun("a1"), endOf("first")), begun("a3")}
	allJobs(t, s, "one has ended", want...)
	allJobs(t, second(mainJobs), "after a restart", want...)
	allJobs(t, second(agentJobs), "of an agent")
}

func endUnfinishedJobs(t *testing.T, first, second func(transcript.Ref) job.Store) {
	other := transcript.Ref{Project: "/p", Session: "another"}
	for _, ref := range []transcript.Ref{mainJobs, agentJobs, other} {
		s := first(ref)
		check(t, s.Begin(t.Context(), begun("a1")))
		check(t, s.Begin(t.Context(), begun("a2")))
		check(t, s.End(t.Context(), "a1", endOf("its own")))
	}
	check(t, second(agentJobs).EndUnfinished(t.Context(), endOf("by the agent")))
	check(t, second(mainJobs).EndUnfinished(t.Context(), endOf("by the session")))
	check(t, second(mainJobs).EndUnfinished(t.Context(), endOf("again")))
	ended := with(begun("a1"), endOf("its own"))
	allJobs(t, second(mainJobs), "of the session", ended, with(begun("a2"), endOf("by the session")))
	allJobs(t, second(agentJobs), "of its agent", ended, with(begun("a2"), endOf("by the agent")))
	check(t, first(agentJobs).Begin(t.Context(), begun("a3")))
	check(t, second(mainJobs).EndUnfinished(t.Context(), endOf("by the session")))
	allJobs(t, second(agentJobs), "of its agent, later", ended, with(begun("a2"), endOf("by the agent")),
		with(begun("a3"), endOf("by the session")))
	allJobs(t, second(other), "of another session", ended, begun("a2"))
}

func endAtOnce(t *testing.T, first, second func(transcript.Ref) job.Store) {
	s := first(mainJobs)
	const many = 50
	var want []job.Record
	for i := range many {
		r := begun(fmt.Sprint("a", i))
		check(t, s.Begin(t.Context(), r))
		want = append(want, with(r, endOf(r.ID)))
	}
	var ending sync.WaitGroup
	for _, r := range want {
		ending.Go(func() {
			if err := s.End(t.Context(), r.ID, *r.End); err != nil {
				t.Error(err)
			}
		})
	}
	ending.Wait()
	allJobs(t, second(mainJobs), "ended", want...)
}

func jobsCancelled(t *testing.T, first, second func(transcript.Ref) job.Store) {
	s := first(mainJobs)
	check(t, s.Begin(t.Context(), begun("a1")))
	for what, err := range map[string]error{
		"begin": s.Begin(ended(), begun("a2")), "end": s.End(ended(), "a1", endOf("x")), "end unfinished": s.EndUnfinished(ended(), endOf("x")),
	} {
		if err == nil {
			t.Errorf("%s under a cancelled context", what)
		}
	}
	if _, err := s.All(ended()); err == nil {
		t.Error("listed under a cancelled context")
	}
	allJobs(t, second(mainJobs), "kept", begun("a1"))
}
