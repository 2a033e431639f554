package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cadre-dev/cadre/roster"
)

// recordsSuite checks an implementation of [roster.Records].
func recordsSuite(t *testing.T, open Open[Stores]) {
	tests := map[string]func(*testing.T, Stores, Stores){
		"keep and drop":             keepRecords,
		"any name":                  recordNames,
		"what is no record":         refusedRecords,
		"the newest counts":         concurrentRecords,
		"removed with the team":     recordsOfRemovedTeam,
		"no team":                   recordsOfNoTeam,
		"cancelled":                 recordsCancelled,
		"documents are the store's": recordBytes,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			check(t, a.Teams().Create(t.Context(), newRoster("t")))
			test(t, a, b)
		})
	}
}

func putRecord(t *testing.T, s Stores, kind, name, doc string) {
	t.Helper()
	check(t, s.Records().Put(t.Context(), "t", kind, name, []byte(doc)))
}

func getRecord(t *testing.T, s Stores, kind, name string) string {
	t.Helper()
	doc, err := s.Records().Get(t.Context(), "t", kind, name)
	check(t, err)
	return string(doc)
}

func noRecord(t *testing.T, s Stores, kind, name string) {
	t.Helper()
	_, err := s.Records().Get(t.Context(), "t", kind, name)
	fails(t, "get "+kind+" "+name, err, roster.ErrNoRecord)
}

func allRecords(t *testing.T, s Stores, kind string) []string {
	t.Helper()
	docs, err := s.Records().All(t.Context(), "t", kind)
	check(t, err)
	list := []string{}
	for _, doc := range docs {
		list = append(list, string(doc))
	}
	return list
}

func keepRecords(t *testing.T, a, b Stores) {
	noRecord(t, a, roster.RecordAgent, "w1")
	equal(t, "none", allRecords(t, a, roster.RecordAgent), []string{})
	check(t, a.Records().Drop(t.Context(), "t", roster.RecordAgent, "w1"))
	putRecord(t, a, roster.RecordAgent, "w2", `{"name": "w2", "x": "<&>"}`)
	putRecord(t, b, roster.RecordAgent, "w1", `1`)
	putRecord(t, a, roster.RecordPane, "w1", `{"pane":"%3"}`)
	equal(t, "w2", getRecord(t, b, roster.RecordAgent, "w2"), `{"name": "w2", "x": "<&>"}`)
	equal(t, "w1", getRecord(t, a, roster.RecordAgent, "w1"), `1`)
	equal(t, "pane", getRecord(t, b, roster.RecordPane, "w1"), `{"pane":"%3"}`)
	putRecord(t, a, roster.RecordAgent, "w1", `2`)
	equal(t, "all", allRecords(t, b, roster.RecordAgent), []string{`2`, `{"name": "w2", "x": "<&>"}`})
	check(t, b.Records().Drop(t.Context(), "t", roster.RecordAgent, "w1"))
	check(t, a.Records().Drop(t.Context(), "t", roster.RecordAgent, "w1"))
	noRecord(t, a, roster.RecordAgent, "w1")
	equal(t, "panes", allRecords(t, a, roster.RecordPane), []string{`{"pane":"%3"}`})
}

func recordNames(t *testing.T, a, b Stores) {
	names := []string{"W1", "w1", "a b", "a-b", "../x", ".", "x.json", "日本", strings.Repeat("long", 100), strings.Repeat("long", 100) + "er", "con"}
	for i, name := range names {
		putRecord(t, a, roster.RecordAgent, name, fmt.Sprint(i))
	}
	for i, name := range names {
		equal(t, name, getRecord(t, b, roster.RecordAgent, name), fmt.Sprint(i))
	}
	equal(t, "number", len(allRecords(t, b, roster.RecordAgent)), len(names))
	for _, name := range names[8:] {
		check(t, b.Records().Drop(t.Context(), "t", roster.RecordAgent, name))
	}
	// By name: ".", "../x", "W1", "a b", "a-b", "w1", "x.json", "日本".
	equal(t, "by name", allRecords(t, a, roster.RecordAgent), []string{"5", "4", "0", "2", "3", "1", "6", "7"})
}

func refusedRecords(t *testing.T, a, b Stores) {
	putRecord(t, a, roster.RecordAgent, "w1", `1`)
	for what, r := range map[string]struct{ team, kind, name, doc string }{
		"no name": {"t", roster.RecordAgent, "", `1`}, "no kind": {"t", "", "w1", `1`}, "a kind that is a path": {"t", "../x", "w1", `1`},
		"no team": {"", roster.RecordAgent, "w1", `1`}, "no JSON": {"t", roster.RecordAgent, "w1", `{"torn`},
	} {
		if err := a.Records().Put(t.Context(), r.team, r.kind, r.name, []byte(r.doc)); err == nil {
			t.Errorf("%s: kept", what)
		}
		if what == "no JSON" {
			continue
		}
		if _, err := a.Records().Get(t.Context(), r.team, r.kind, r.name); err == nil {
			t.Errorf("%s: got", what)
		}
		if err := a.Records().Drop(t.Context(), r.team, r.kind, r.name); err == nil {
			t.Errorf("%s: dropped", what)
		}
		if _, err := a.Records().All(t.Context(), r.team, r.kind); err == nil && r.name != "" {
			t.Errorf("%s: listed", what)
		}
	}
	equal(t, "kept", getRecord(t, b, roster.RecordAgent, "w1"), `1`)
}

func concurrentRecords(t *testing.T, a, b Stores) {
	putRecord(t, a, roster.RecordAgent, "w1", `0`)
	var wg sync.WaitGroup
	for n := range 4 {
		s := []Stores{a, b}[n%2]
		wg.Go(func() {
			for range 10 {
				if err := s.Records().Put(t.Context(), "t", roster.RecordAgent, "w1", fmt.Appendf(nil, `%d`, n+1)); err != nil {
					t.Error(err)
				}
				doc, err := s.Records().Get(t.Context(), "t", roster.RecordAgent, "w1")
				if err != nil || len(doc) != 1 || doc[0] < '1' || doc[0] > '4' {
					t.Errorf("read %q, %v", doc, err)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "both see", getRecord(t, a, roster.RecordAgent, "w1"), getRecord(t, b, roster.RecordAgent, "w1"))
}

func recordsOfRemovedTeam(t *testing.T, a, b Stores) {
	check(t, a.Teams().Create(t.Context(), newRoster("t2")))
	putRecord(t, a, roster.RecordTeam, "t", `1`)
	check(t, a.Records().Put(t.Context(), "t2", roster.RecordTeam, "t2", []byte(`2`)))
	check(t, b.Teams().Remove(t.Context(), "t"))
	noRecord(t, a, roster.RecordTeam, "t")
	fails(t, "put", a.Records().Put(t.Context(), "t", roster.RecordTeam, "t", []byte(`1`)), roster.ErrNotFound)
	check(t, a.Teams().Create(t.Context(), newRoster("t")))
	noRecord(t, a, roster.RecordTeam, "t")
	putRecord(t, b, roster.RecordTeam, "t", `3`)
	equal(t, "made anew", getRecord(t, a, roster.RecordTeam, "t"), `3`)
	doc, err := a.Records().Get(t.Context(), "t2", roster.RecordTeam, "t2")
	check(t, err)
	equal(t, "other", string(doc), `2`)
}

func recordsOfNoTeam(t *testing.T, a, _ Stores) {
	r := a.Records()
	fails(t, "put", r.Put(t.Context(), "missing", roster.RecordAgent, "w1", []byte(`1`)), roster.ErrNotFound)
	_, err := r.Get(t.Context(), "missing", roster.RecordAgent, "w1")
	fails(t, "get", err, roster.ErrNoRecord)
	docs, err := r.All(t.Context(), "missing", roster.RecordAgent)
	check(t, err)
	equal(t, "all", len(docs), 0)
	check(t, r.Drop(t.Context(), "missing", roster.RecordAgent, "w1"))
	check(t, a.Teams().Create(t.Context(), newRoster("missing"))) // nothing of it was made
}

func recordsCancelled(t *testing.T, a, b Stores) {
	putRecord(t, a, roster.RecordAgent, "w1", `1`)
	if err := a.Records().Put(ended(), "t", roster.RecordAgent, "w1", []byte(`2`)); err == nil {
		t.Error("kept under a cancelled context")
	}
	if err := a.Records().Drop(ended(), "t", roster.RecordAgent, "w1"); err == nil {
		t.Error("dropped under a cancelled context")
	}
	if _, err := a.Records().All(ended(), "t", roster.RecordAgent); err == nil {
		t.Error("listed under a cancelled context")
	}
	equal(t, "kept", getRecord(t, b, roster.RecordAgent, "w1"), `1`)
}

// What a caller does with its bytes changes nothing that is kept.
func recordBytes(t *testing.T, a, b Stores) {
	doc := []byte(`"1"`)
	check(t, a.Records().Put(t.Context(), "t", roster.RecordAgent, "w1", doc))
	doc[1] = '2'
	got, err := b.Records().Get(t.Context(), "t", roster.RecordAgent, "w1")
	check(t, err)
	got[1] = '3'
	equal(t, "kept", getRecord(t, b, roster.RecordAgent, "w1"), `"1"`)
}
