//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/race"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

// dieNow is a kill -9 at this very point.
func dieNow() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// killAction is what a child does again and again until it is killed.
type killAction struct {
	setup func(ctx context.Context, s *filestore.Store) error
	// act does it for the i-th time and returns what the store acknowledged.
	act func(ctx context.Context, s *filestore.Store, i int) (string, error)
	// kept lists what is in the store, spelled like what act returns.
	kept func(ctx context.Context, s *filestore.Store) ([]string, error)
	// next is what the next writer does; it must not wait, and cleans up.
	next func(ctx context.Context, s *filestore.Store) error
	// untorn says that every write lies within a block: a kill comes before it
	// or after it.
	untorn bool
}

func postNext(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 9) }

func createNext(ctx context.Context, s *filestore.Store) error {
	_, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "next"})
	return err
}

func updateNext(ctx context.Context, s *filestore.Store) error {
	_, err := s.Teams().Update(ctx, "t", func(c *roster.Roster) error { c.Description = "next"; return nil })
	return err
}

var killActions = map[string]killAction{
	"post": {
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			return strconv.Itoa(i), postNumber(ctx, s, i)
		},
		kept: keptMail,
		next: postNext,
	},
	"mark": {
		setup: func(ctx context.Context, s *filestore.Store) error {
			for i := 1; i <= killRounds; i++ {
				if err := postNumber(ctx, s, i); err != nil {
					return err
				}
			}
			return nil
		},
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			unread, err := s.Mail().Unread(ctx, faultBox)
			if err != nil {
				return "", err
			}
			return strconv.Itoa(i), s.Mail().MarkRead(ctx, faultBox, []mailbox.ID{unread[0].ID})
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Mail().All(ctx, faultBox)
			var read []string
			for i, m := range all {
				if m.Read {
					read = append(read, strconv.Itoa(i+1))
				}
			}
			if err == nil && len(all) != killRounds {
				err = fmt.Errorf("%d messages are left", len(all))
			}
			return read, err
		},
		next: postNext,
	},
	"mark-in-place": {
		setup: func(ctx context.Context, s *filestore.Store) error {
			err := s.Mail().Post(ctx, faultBox, post("w2", strings.Repeat("long ", 20_000), "", "2026-11-21T03:18:57.981Z", ""))
			for i := 0; i < 2*killRounds && err == nil; i++ {
				err = postNumber(ctx, s, i)
			}
			return err
		},
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			unread, err := s.Mail().Unread(ctx, faultBox)
			if err != nil {
				return "", err
			}
			return strconv.Itoa(i), s.Mail().MarkRead(ctx, faultBox, ids(unread[1:3]))
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Mail().All(ctx, faultBox)
			if err != nil || len(all) != 1+2*killRounds {
				return nil, errors.Join(err, fmt.Errorf("%d messages are left", len(all)))
			}
			var read []string
			for i := 1; i <= killRounds; i++ {
				if all[2*i-1].Read && all[2*i].Read {
					read = append(read, strconv.Itoa(i))
				}
			}
			return read, nil
		},
		next:   postNext,
		untorn: true,
	},
	"create": {
		setup: makeTasks,
		act: func(ctx context.Context, s *filestore.Store, _ int) (string, error) {
			t, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new", BlockedBy: []string{"1"}, Blocks: []string{"3"}})
			return t.ID, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Tasks().List(ctx, "t")
			var ids []string
			for _, t := range all {
				if t.Subject == "new" && slices.Contains(t.BlockedBy, "1") {
					ids = append(ids, t.ID)
				}
			}
			return ids, err
		},
		next: createNext,
	},
	"claim": {
		setup: makeFreeTasks,
		act: func(ctx context.Context, s *filestore.Store, _ int) (string, error) {
			t, ok, err := s.Tasks().Claim(ctx, "t", "w9")
			if err == nil && !ok {
				err = errors.New("nothing to claim")
			}
			return t.ID, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Tasks().List(ctx, "t")
			var ids []string
			for _, t := range all {
				if t.Owner == "w9" {
					ids = append(ids, t.ID)
				}
			}
			if err == nil && len(all) != killRounds {
				err = fmt.Errorf("%d tasks are left", len(all))
			}
			return ids, err
		},
		next: createNext,
	},
	"update": {
		setup: makeFreeTasks,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			change := task.Change{Subject: ptr("done")}
			if i < killRounds {
				change.AddBlocks = []string{strconv.Itoa(i + 1)}
			}
			return strconv.Itoa(i), update(strconv.Itoa(i), change)(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Tasks().List(ctx, "t")
			var ids []string
			for _, t := range all {
				if t.Subject == "done" {
					ids = append(ids, t.ID)
				}
			}
			if err == nil && len(all) != killRounds {
				err = fmt.Errorf("%d tasks are left", len(all))
			}
			return ids, err
		},
		next: createNext,
	},
	"delete": {
		setup: makeFreeTasks,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			return strconv.Itoa(i), update(strconv.Itoa(i), task.Change{Status: ptr(task.Deleted)})(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			var ids []string
			for i := 1; i <= killRounds; i++ {
				if _, err := s.Tasks().Get(ctx, "t", strconv.Itoa(i)); errors.Is(err, task.ErrNotFound) {
					ids = append(ids, strconv.Itoa(i))
				} else if err != nil {
					return nil, err
				}
			}
			t, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "later"})
			if err == nil && t.ID != strconv.Itoa(killRounds+1) {
				err = fmt.Errorf("the next task is #%s", t.ID)
			}
			return ids, err
		},
		next: createNext,
	},
	"release": {
		setup: func(ctx context.Context, s *filestore.Store) error {
			var errs []error
			for i := range 2 * killRounds {
				_, err := s.Tasks().Create(ctx, "t", task.Task{Owner: fmt.Sprint("w", i%killRounds+1), Status: task.InProgress})
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			owner := fmt.Sprint("w", i)
			released, err := s.Tasks().Release(ctx, "t", owner)
			if err == nil && len(released) != 2 {
				err = fmt.Errorf("released %d tasks of %s", len(released), owner)
			}
			return owner, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Tasks().List(ctx, "t")
			if err == nil && len(all) != 2*killRounds {
				err = fmt.Errorf("%d tasks are left", len(all))
			}
			var freed []string
			for i := 1; i <= killRounds; i++ {
				owner := fmt.Sprint("w", i)
				if !slices.ContainsFunc(all, func(t task.Task) bool { return t.Owner == owner }) {
					freed = append(freed, owner)
				}
			}
			return freed, err
		},
		next: createNext,
	},
	"reset": {
		setup: makeFreeTasks,
		act: func(ctx context.Context, s *filestore.Store, _ int) (string, error) {
			if err := s.Tasks().Reset(ctx, "t"); err != nil {
				return "", err
			}
			t, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new"})
			return t.ID, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			all, err := s.Tasks().List(ctx, "t")
			if err != nil {
				return nil, err
			}
			if n := len(all); n > 1 && all[n-1].Subject == "new" {
				return nil, fmt.Errorf("#%s was made after a reset, and #%s is there too", all[n-1].ID, all[0].ID)
			}
			later, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "later"})
			var given []string // ids of new tasks that nobody gets again
			for id := killRounds + 1; id < task.Number(later.ID); id++ {
				given = append(given, strconv.Itoa(id))
			}
			return given, err
		},
		next: createNext,
	},
	"remove-member": {
		setup: func(ctx context.Context, s *filestore.Store) error {
			c := faultTeam
			c.Members = slices.Clone(c.Members)
			for i := 1; i <= killRounds; i++ {
				c.Members = append(c.Members, alphaMate(fmt.Sprint("w", i), "haiku", "p", "blue", 1))
			}
			return s.Teams().Create(ctx, c)
		},
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			name := fmt.Sprint("w", i)
			_, err := s.Teams().Update(ctx, "t", func(c *roster.Roster) error {
				c.Members = slices.DeleteFunc(c.Members, func(m roster.Member) bool { return m.Name == name })
				return nil
			})
			return name, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			c, err := s.Teams().Load(ctx, "t")
			var gone []string
			for i := 1; i <= killRounds; i++ {
				if name := fmt.Sprint("w", i); c.Find(name) == nil {
					gone = append(gone, name)
				}
			}
			return gone, err
		},
		next: updateNext,
	},
	"member": {
		setup: makeTeam,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			name := fmt.Sprint("w", i)
			_, err := s.Teams().Update(ctx, "t", func(c *roster.Roster) error {
				c.Members = append(c.Members, alphaMate(name, "haiku", "p", "blue", 1))
				return nil
			})
			return name, err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			c, err := s.Teams().Load(ctx, "t")
			var names []string
			for _, m := range c.Teammates() {
				if m.Name != "team-lead" {
					names = append(names, m.Name)
				}
			}
			return names, err
		},
		next: updateNext,
	},
	"append": {
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			return faultEntry(i).UUID, appendEntries(i, i)(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			// The next owner gets the lease at once, and appends on a fresh line.
			if err := appendEntries(9, 9)(ctx, s); err != nil {
				return nil, err
			}
			entries, err := s.Transcripts().Read(ctx, faultRef)
			var uuids []string
			for _, e := range entries {
				uuids = append(uuids, e.UUID)
				if len(e.Receipts) != 1 {
					err = fmt.Errorf("receipts %v of %s", e.Receipts, e.UUID)
				}
			}
			if err == nil && (len(uuids) == 0 || uuids[len(uuids)-1] != "u9") {
				err = fmt.Errorf("the last entry is not the last: %v", uuids)
			}
			return uuids[:len(uuids)-1], err
		},
		next: appendEntries(10, 10),
	},
	"ask": {
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("q", i)
			return id, s.Asks(faultRef).Put(ctx, ask.Ask{ID: id, Question: "?"})
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			pending, err := s.Asks(faultRef).Pending(ctx)
			var ids []string
			for _, a := range pending {
				ids = append(ids, a.ID)
			}
			return ids, err
		},
		next: func(ctx context.Context, s *filestore.Store) error {
			return s.Asks(faultRef).Put(ctx, ask.Ask{ID: "next"})
		},
	},
	"answer": {
		setup: func(ctx context.Context, s *filestore.Store) error {
			for i := 1; i <= killRounds; i++ {
				if err := s.Asks(faultRef).Put(ctx, ask.Ask{ID: fmt.Sprint("q", i)}); err != nil {
					return err
				}
			}
			return nil
		},
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("q", i)
			return id, s.Asks(faultRef).Resolve(ctx, id, ask.Answer{By: "person"})
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			pending, err := s.Asks(faultRef).Pending(ctx)
			var ids []string
			for i := 1; i <= killRounds; i++ {
				id := fmt.Sprint("q", i)
				if !slices.ContainsFunc(pending, func(a ask.Ask) bool { return a.ID == id }) {
					ids = append(ids, id)
				}
			}
			return ids, err
		},
		next: func(ctx context.Context, s *filestore.Store) error {
			return s.Asks(faultRef).Put(ctx, ask.Ask{ID: "next"})
		},
	},
}

func keptMail(ctx context.Context, s *filestore.Store) ([]string, error) {
	all, err := s.Mail().Unread(ctx, faultBox)
	var numbers []string
	for _, m := range all {
		if n, ok := strings.CutPrefix(m.Text, "message "); ok {
			numbers = append(numbers, n)
		}
	}
	if err == nil && !slices.IsSorted(numbers) {
		err = fmt.Errorf("messages are out of order: %v", numbers)
	}
	return numbers, err
}

// A process may be killed at any point: what was acknowledged is there, once;
// whoever comes next does not wait.
func TestKilledAtEveryPoint(t *testing.T) {
	for name, action := range everyKillAction() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := killPoints(t, name, action)
			if !testWhole {
				rand.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
				points = points[:min(sampledPoints(), len(points))]
			}
			for _, p := range points {
				killOnce(t, name, action, p)
			}
		})
	}
}

// sampledPoints is how many points of each action are tried where not all are. A child with
// the race detector takes a third of a second to start, and has one goroutine.
func sampledPoints() int {
	if race.Enabled {
		return 2
	}
	return 8
}

// killPoint is where a child is killed: before its n-th change of what is stored, or
// with half of it written. Kills between two changes leave the same files, so one of
// them is enough, the last; it is held to what the child would have acknowledged by the
// first and by the last.
type killPoint struct {
	change      int // counted from 1
	half        bool
	least, most int // how many acknowledgements are printed before
}

// killPoints lists the points that differ, and tries what happens when nobody is killed.
func killPoints(t *testing.T, name string, action killAction) []killPoint {
	t.Helper()
	lines := killOnce(t, name, action, killPoint{least: killRounds, most: killRounds})
	var points []killPoint
	changes, least, acked := 0, 0, 0
	for _, line := range lines {
		op, isChange := strings.CutPrefix(line, "change ")
		if !isChange {
			acked++
			continue
		}
		changes++
		p := killPoint{change: changes, least: least, most: acked}
		points = append(points, p)
		if strings.HasPrefix(op, "write") && !action.untorn {
			p.half, p.least = true, acked
			points = append(points, p)
		}
		least = acked
	}
	if acked != killRounds || len(points) == 0 {
		t.Fatalf("child said %q", lines)
	}
	return points
}

// killOnce kills a child at a point, or at none, and returns what it said until then.
func killOnce(t *testing.T, name string, action killAction, p killPoint) (lines []string) {
	t.Helper()
	where := fmt.Sprintf("killed at change %d (half of it written: %v)", p.change, p.half)
	root := layout.Root(t.TempDir())
	check(t, action.setup(t.Context(), open(t, root)))
	lines = runChild(t, childEnv(string(root), "repeat", name, strconv.Itoa(p.change), strconv.FormatBool(p.half)))
	// The dead one's locks are taken over: nobody waits until they are stale.
	ctx, cancel := context.WithTimeout(t.Context(), dirlock.Stale/2)
	defer cancel()
	kept, err := action.kept(ctx, open(t, root))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return lines
	}
	acked := 0
	for _, line := range lines {
		ack, ok := strings.CutPrefix(line, "ack ")
		if !ok {
			continue
		}
		if acked++; !slices.Contains(kept, ack) {
			t.Errorf("%s: %s was acknowledged and is lost; kept %v", where, ack, kept)
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(kept))); len(unique) != len(kept) {
		t.Errorf("%s: something is there twice: %v", where, kept)
	}
	if acked != p.most {
		t.Errorf("%s: the child said %q, want %d acknowledgements", where, lines, p.most)
	}
	if len(kept) > p.least+1 {
		t.Errorf("%s: %v is there, and only %d may have been acknowledged", where, kept, p.least)
	}
	if err := action.next(ctx, open(t, root)); err != nil {
		t.Errorf("%s: the next writer: %v", where, err)
	}
	noLeftovers(t, root, where)
	return lines
}

// runChild runs the test binary as a child and returns what it printed. It may
// die by a kill, not by anything else.
func runChild(t *testing.T, env []string) []string {
	t.Helper()
	return runChildWith(t, nil, env)
}

// runChildWith is runChild for a child that reads its standard input.
func runChildWith(t *testing.T, stdin *os.File, env []string) []string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = env
	if stdin != nil {
		child.Stdin = stdin
	}
	var failure strings.Builder
	child.Stderr = &failure
	out, err := child.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		err = nil
	}
	if err != nil {
		t.Errorf("child: %v: %s", err, failure.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// noLeftovers checks that the next writer cleaned up, where there was one.
func noLeftovers(t *testing.T, root layout.Root, where string) {
	t.Helper()
	noLitter(t, root, where)
	for _, dir := range []string{root.AsksDir(), root.TeamSide("t", roster.RecordAgent)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".tmp") || e.IsDir() && strings.HasSuffix(e.Name(), ".lock") {
				t.Errorf("%s: %s is left behind", where, e.Name())
			}
		}
	}
}
