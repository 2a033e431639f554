package filestore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// Whichever call fails while one sender posts message after message, again when it was
// refused, and their reader takes them in meanwhile: the messages stand in the inbox
// once each, in the order of sending, and are read in that order, none twice.
func TestMailStaysInOrderWhateverFails(t *testing.T) {
	const count = 4
	want := make([]string, count)
	for i := range want {
		want[i] = fmt.Sprint("message ", i+1)
	}
	for size, before := range map[string]string{"short": "short", "long": strings.Repeat("long ", 20_000)} {
		for name, fault := range faults {
			t.Run(size+"/"+name, func(t *testing.T) {
				t.Parallel()
				for n, calls := 1, 1; n <= calls; n++ {
					root := layout.Root(t.TempDir())
					check(t, open(t, root).Mail().Post(t.Context(), faultBox, post("w2", before, "", "2026-11-21T03:18:57.981Z", "")))
					failure := &nthFailure{n: n, faults: []fsx.Fault{fault}}
					faulty := &fsx.Faulty{FS: patient{fsx.OS}, Decide: failure.decide}
					s := open(t, root, filestore.WithFS(faulty))
					reader := &orderedReader{seen: make(map[mailbox.ID]bool)}
					for i := range count {
						if postNumber(t.Context(), s, i+1) != nil {
							check(t, postNumber(t.Context(), s, i+1))
						}
						reader.read(t, s)
					}
					calls = failure.calls
					reader.read(t, s)
					where := fmt.Sprintf("call %d of %d: (-want +got)\n", n, calls)
					if diff := cmp.Diff(append([]string{before}, want...), reader.texts); diff != "" {
						t.Errorf("read, %s%s", where, diff)
					}
					all, err := open(t, root).Mail().All(t.Context(), faultBox)
					check(t, err)
					stands := slices.DeleteFunc(textsOf(all), func(text string) bool { return text == before })
					if diff := cmp.Diff(want, stands); diff != "" {
						t.Errorf("in the inbox, %s%s", where, diff)
					}
					if !testWhole && n > 4 {
						n += 3
					}
				}
			})
		}
	}
}

// orderedReader reads an inbox as an agent does: what it has seen once it only marks.
type orderedReader struct {
	seen  map[mailbox.ID]bool
	texts []string
}

func (r *orderedReader) read(t *testing.T, s *filestore.Store) {
	unread, err := s.Mail().Unread(t.Context(), faultBox)
	if err != nil {
		unread, err = s.Mail().Unread(t.Context(), faultBox)
		check(t, err)
	}
	for _, m := range unread {
		if !r.seen[m.ID] {
			r.seen[m.ID] = true
			r.texts = append(r.texts, m.Text)
		}
	}
	_ = s.Mail().MarkRead(t.Context(), faultBox, ids(unread)) // else the next reading marks them
}

func textsOf(mails []mailbox.Message) []string {
	texts := make([]string, len(mails))
	for i, m := range mails {
		texts[i] = m.Text
	}
	return texts
}
