package filestore_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/task"
)

var modelOptions = []cmp.Option{
	cmpopts.EquateEmpty(),
	cmp.Transformer("object", func(o jsonx.Object) string { return string(jsonx.MustMarshal(o)) }),
}

// tempRoot is a state root for one run of a property.
func tempRoot(t *rapid.T) layout.Root {
	dir, err := os.MkdirTemp("", "cadre-model-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return layout.Root(dir)
}

// Two processes working on one list do what one in memory does.
func TestTasksLikeInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := tempRoot(t)
		stores := []task.Store{filestore.New(root).Tasks(), filestore.New(root).Tasks()}
		model := memstore.New().Tasks()
		id := rapid.Map(rapid.IntRange(1, 6), strconv.Itoa)
		owner := rapid.SampledFrom([]string{"", "w1", "w2"})
		ctx := t.Context()
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				one := task.Task{Subject: "s", BlockedBy: rapid.SliceOfN(id, 0, 2).Draw(t, "blockedBy"), Owner: owner.Draw(t, "owner")}
				got, err := rapid.SampledFrom(stores).Draw(t, "store").Create(ctx, "l", one)
				want, wantErr := model.Create(ctx, "l", one)
				compare(t, got, want, err, wantErr)
			},
			"update": func(t *rapid.T) {
				which, change := id.Draw(t, "id"), drawChange(t)
				got, err := rapid.SampledFrom(stores).Draw(t, "store").Update(ctx, "l", which, change)
				want, wantErr := model.Update(ctx, "l", which, change)
				compare(t, got, want, err, wantErr)
			},
			"claim": func(t *rapid.T) {
				got, ok, err := rapid.SampledFrom(stores).Draw(t, "store").Claim(ctx, "l", "w3")
				want, wantOK, wantErr := model.Claim(ctx, "l", "w3")
				compare(t, got, want, err, wantErr)
				compare(t, ok, wantOK, nil, nil)
			},
			"release": func(t *rapid.T) {
				who := owner.Draw(t, "owner")
				got, err := rapid.SampledFrom(stores).Draw(t, "store").Release(ctx, "l", who)
				want, wantErr := model.Release(ctx, "l", who)
				compare(t, got, want, err, wantErr)
			},
			"reset": func(t *rapid.T) {
				err := rapid.SampledFrom(stores).Draw(t, "store").Reset(ctx, "l")
				compare(t, 0, 0, err, model.Reset(ctx, "l"))
			},
			"": func(t *rapid.T) {
				want, wantErr := model.List(ctx, "l")
				for _, s := range stores {
					got, err := s.List(ctx, "l")
					compare(t, got, want, err, wantErr)
				}
			},
		})
	})
}

// drawChange is a change with any of its fields.
func drawChange(t *rapid.T) (c task.Change) {
	with := func(field string) bool { return rapid.IntRange(0, 2).Draw(t, "with "+field) == 2 }
	ids := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 6), strconv.Itoa), 1, 2)
	text := func(field string, to **string) {
		if with(field) {
			*to = ptr(rapid.SampledFrom([]string{"", "s", "other"}).Draw(t, field))
		}
	}
	text("subject", &c.Subject)
	text("description", &c.Description)
	text("activeForm", &c.ActiveForm)
	if with("owner") {
		c.Owner = ptr(rapid.SampledFrom([]string{"", "w1", "w2"}).Draw(t, "owner"))
	} else if with("take") {
		c.ClaimFor = rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "take")
	}
	if with("status") {
		c.Status = ptr(rapid.SampledFrom([]task.Status{task.Pending, task.InProgress, task.Completed, task.Deleted}).Draw(t, "status"))
	}
	if with("blocks") {
		c.AddBlocks = ids.Draw(t, "blocks")
	}
	if with("blockedBy") {
		c.AddBlockedBy = ids.Draw(t, "blockedBy")
	}
	if with("metadata") {
		c.Metadata.Set("check", rapid.SampledFrom([]any{"true", nil, 1.5}).Draw(t, "check"))
	}
	return c
}

func compare[T any](t *rapid.T, got, want T, err, wantErr error) {
	for _, kind := range []error{task.ErrNotFound, task.ErrCycle, task.ErrOwned, task.ErrBlocked} {
		if errors.Is(err, kind) != errors.Is(wantErr, kind) {
			t.Fatalf("error %v, in memory %v", err, wantErr)
		}
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, in memory %v", err, wantErr)
	}
	if diff := cmp.Diff(want, got, modelOptions...); diff != "" {
		t.Fatalf("(-memory +files)\n%s", diff)
	}
}

// Two processes working on one inbox do what one in memory does.
func TestMailLikeInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := tempRoot(t)
		stores := []mailbox.Store{filestore.New(root).Mail(), filestore.New(root).Mail()}
		model := memstore.New().Mail()
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "x", "\n]", "\n  }\n]", `",\n"`}), rapid.StringN(0, 300, -1))
		ctx := t.Context()
		if rapid.IntRange(0, 4).Draw(t, "long") == 0 { // long enough to be marked in place
			m := mailbox.Message{From: "a", Text: strings.Repeat("x", 70_000)}
			compare(t, 0, 0, stores[0].Post(ctx, faultBox, m), model.Post(ctx, faultBox, m))
		}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				m := mailbox.Message{From: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "from"), Text: text.Draw(t, "text"),
					Summary: text.Draw(t, "summary"), Timestamp: "2026-11-21T03:18:57.981Z"}
				err := rapid.SampledFrom(stores).Draw(t, "store").Post(ctx, faultBox, m)
				compare(t, 0, 0, err, model.Post(ctx, faultBox, m))
			},
			"mark": func(t *rapid.T) {
				unread, err := model.Unread(ctx, faultBox)
				if err != nil || len(unread) == 0 {
					return
				}
				ids := []mailbox.ID{"unknown"}
				for _, m := range unread {
					if rapid.Bool().Draw(t, "mark") {
						ids = append(ids, m.ID)
					}
				}
				err = rapid.SampledFrom(stores).Draw(t, "store").MarkRead(ctx, faultBox, ids)
				compare(t, 0, 0, err, model.MarkRead(ctx, faultBox, ids))
			},
			"": func(t *rapid.T) {
				s := rapid.SampledFrom(stores).Draw(t, "reader")
				got, err := s.Unread(ctx, faultBox)
				want, wantErr := model.Unread(ctx, faultBox)
				compare(t, got, want, err, wantErr)
				got, err = s.All(ctx, faultBox)
				want, wantErr = model.All(ctx, faultBox)
				compare(t, got, want, err, wantErr)
			},
		})
	})
}
