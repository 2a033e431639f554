//go:build unix

package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

func everyKillAction() map[string]killAction {
	all := maps.Clone(killActions)
	maps.Copy(all, ownKillActions)
	maps.Copy(all, jobKillActions)
	return all
}

// ownKillActions are those on what is ours alone.
var ownKillActions = map[string]killAction{
	"seal": { // the first one makes the key
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			return strconv.Itoa(i), sealNumber(i)(ctx, s)
		},
		kept: keptSeals,
		next: func(ctx context.Context, s *filestore.Store) error {
			err := sealNumber(9)(ctx, s)
			if ok, sealedErr := isSealed(ctx, s, 9); err == nil && !ok {
				err = errors.Join(errors.New("sealed, and no seal"), sealedErr)
			}
			return err
		},
	},
	"record": {
		setup: makeTeam,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			// Each time another one, and one that is replaced.
			err := errors.Join(putRecord("again", fmt.Sprintf(`"again %d"`, i))(ctx, s), putRecord(fmt.Sprint("w", i), strconv.Itoa(i))(ctx, s))
			return strconv.Itoa(i), err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			docs, err := s.Records().All(ctx, "t", roster.RecordAgent)
			var list []string
			for _, doc := range docs {
				if !strings.HasPrefix(string(doc), `"again `) {
					list = append(list, string(doc))
				}
			}
			return list, err
		},
		next: putRecord("next", `1`),
	},
	"drop": {
		setup: inOrder(makeTeam, putRecord("w1", `1`), putRecord("w2", `2`), putRecord("w3", `3`)),
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			return strconv.Itoa(i), s.Records().Drop(ctx, "t", roster.RecordAgent, fmt.Sprint("w", i))
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			var dropped []string
			for i := 1; i <= killRounds; i++ {
				_, err := s.Records().Get(ctx, "t", roster.RecordAgent, fmt.Sprint("w", i))
				if errors.Is(err, roster.ErrNoRecord) {
					dropped = append(dropped, strconv.Itoa(i))
				} else if err != nil {
					return nil, err
				}
			}
			return dropped, nil
		},
		next: putRecord("next", `1`),
	},
	"lay": {
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("q", i)
			return id, layAsk(id)(ctx, s)
		},
		kept: keptQuestions,
		next: layAsk("next"),
	},
	"leave": {
		setup: inOrder(layAsk("q1"), layAsk("q2"), layAsk("q3")),
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("q", i)
			return id, s.Desk().Leave(ctx, id, ask.Answer{Allow: true})
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			open, err := keptQuestions(ctx, s)
			var answered []string
			for _, id := range open {
				_, ok, leftErr := s.Desk().Left(ctx, deskAsk(id))
				if err = errors.Join(err, leftErr); ok {
					answered = append(answered, id)
				}
			}
			if len(open) != killRounds {
				err = errors.Join(err, fmt.Errorf("questions %v are left", open))
			}
			return answered, err
		},
		next: layAsk("next"),
	},
	"clear": {
		setup: inOrder(layAsk("q1"), layAsk("q2"), layAsk("q3"), leaveFor("q1"), leaveFor("q2"), leaveFor("q3")),
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("q", i)
			return id, clearAsk(id)(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			open, err := keptQuestions(ctx, s)
			var cleared []string
			for i := 1; i <= killRounds; i++ {
				if id := fmt.Sprint("q", i); !slices.Contains(open, id) {
					cleared = append(cleared, id)
				}
			}
			return cleared, err
		},
		next: func(ctx context.Context, s *filestore.Store) error {
			if err := layAsk("next")(ctx, s); err != nil {
				return err
			}
			return orphans(rootOf(s))
		},
	},
	"enter": { // what was left or lost with its process is free: there is nothing to keep
		setup: makeTeam,
		act: func(ctx context.Context, s *filestore.Store, _ int) (string, error) {
			leave, err := s.Presence().Enter(ctx, faultBox)
			if err == nil {
				err = leave()
			}
			return "-", err
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			p, ok, err := s.Presence().Find(ctx, faultBox)
			if ok {
				err = fmt.Errorf("the killed process is there: %+v", p)
			}
			return []string{"-"}, err
		},
		next: func(ctx context.Context, s *filestore.Store) error {
			leave, err := s.Presence().Enter(ctx, faultBox)
			if err != nil {
				return err
			}
			return leave()
		},
	},
}

func keptSeals(ctx context.Context, s *filestore.Store) ([]string, error) {
	var numbers []string
	for i := 1; i <= killRounds; i++ {
		ok, err := isSealed(ctx, s, i)
		if err != nil {
			return nil, err
		}
		if ok {
			numbers = append(numbers, strconv.Itoa(i))
		}
	}
	return numbers, nil
}

func keptQuestions(ctx context.Context, s *filestore.Store) ([]string, error) {
	asks, err := s.Desk().Open(ctx)
	var ids []string
	for _, a := range asks {
		ids = append(ids, a.ID)
	}
	return ids, err
}

// orphans finds answers without a question.
func orphans(root layout.Root) error {
	entries, err := os.ReadDir(root.AsksDir())
	var errs []error
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".answer.json"); ok {
			if _, err := os.Lstat(root.OpenAsk(id)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, err)...)
}

// awaitStart returns when the test lets all children go.
func awaitStart() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func sealTogether(ctx context.Context, root layout.Root, n int) error {
	s := filestore.New(root)
	if err := errors.Join(awaitStart(), sealNumber(n)(ctx, s)); err != nil {
		return err
	}
	fmt.Println("sealed", n)
	return nil
}

func leaveTogether(ctx context.Context, root layout.Root, n int) error {
	s := filestore.New(root)
	if err := awaitStart(); err != nil {
		return err
	}
	err := s.Desk().Leave(ctx, "q1", ask.Answer{Allow: true, Message: strconv.Itoa(n)})
	switch {
	case err == nil:
		fmt.Println("first", n)
	case errors.Is(err, ask.ErrAnswered):
		fmt.Println("late", n)
		err = nil
	}
	return err
}

// enterTogether stays in its place until it is killed.
func enterTogether(ctx context.Context, root layout.Root) error {
	s := filestore.New(root)
	if err := awaitStart(); err != nil {
		return err
	}
	_, err := s.Presence().Enter(ctx, faultBox)
	var present *roster.PresentError
	if errors.As(err, &present) {
		fmt.Println("out")
		return nil
	}
	if err == nil {
		fmt.Println("in")
		<-time.After(time.Hour)
	}
	return err
}

// startLine is children that start their work at the same moment.
type startLine struct {
	children []*exec.Cmd
	lines    chan string // what they print: one line each
}

// letGo starts children with these arguments, and then lets all of them go.
func letGo(t *testing.T, environments ...[]string) *startLine {
	t.Helper()
	read, write, err := os.Pipe()
	check(t, err)
	c := &startLine{lines: make(chan string, len(environments))}
	for _, env := range environments {
		child := exec.Command(os.Args[0])
		child.Env, child.Stdin, child.Stderr = env, read, os.Stderr
		out, err := child.StdoutPipe()
		check(t, err)
		check(t, child.Start())
		c.children = append(c.children, child)
		done := make(chan struct{})
		go func() {
			defer close(done)
			line, _ := bufio.NewReader(out).ReadString('\n')
			c.lines <- strings.TrimSpace(line)
		}()
		t.Cleanup(func() {
			_ = child.Process.Kill()
			<-done
			_ = child.Wait() // it was killed, or is done
		})
	}
	check(t, errors.Join(read.Close(), write.Close()))
	return c
}

// count counts what the children say.
func (c *startLine) count() map[string]int {
	said := make(map[string]int)
	for range c.children {
		said[<-c.lines]++
	}
	return said
}

func TestFirstUsersAgreeOnOneKey(t *testing.T) {
	root := layout.Root(t.TempDir())
	const processes = 16
	var environments [][]string
	for n := range processes {
		environments = append(environments, childEnv(string(root), "seal", strconv.Itoa(n)))
	}
	said := letGo(t, environments...).count()
	s := open(t, root)
	for n := range processes {
		ok, err := isSealed(t.Context(), s, n)
		if err != nil || !ok || said[fmt.Sprint("sealed ", n)] != 1 {
			t.Errorf("process %d: sealed %v, %v; all said %v", n, ok, err, said)
		}
	}
}

func TestOneOfManyProcessesAnswers(t *testing.T) {
	for range 3 {
		root := layout.Root(t.TempDir())
		s := open(t, root)
		check(t, layAsk("q1")(t.Context(), s))
		var environments [][]string
		for n := range 4 {
			environments = append(environments, childEnv(string(root), "leave", strconv.Itoa(n)))
		}
		said := letGo(t, environments...).count()
		answer, ok, err := s.Desk().Left(t.Context(), deskAsk("q1"))
		if err != nil || !ok || said["first "+answer.Message] != 1 || len(said) != 4 {
			t.Fatalf("answer %+v, %v, %v; all said %v", answer, ok, err, said)
		}
		for line := range said {
			if line != "first "+answer.Message && !strings.HasPrefix(line, "late ") {
				t.Errorf("a process said %q", line)
			}
		}
	}
}

func TestPlaceIsFreedByAKill(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	check(t, makeTeam(t.Context(), s))
	for range 3 {
		enter := childEnv(string(root), "enter")
		c := letGo(t, enter, enter, enter)
		said := c.count()
		if said["in"] != 1 || said["out"] != 2 {
			t.Fatalf("processes said %v", said)
		}
		p, ok, err := s.Presence().Find(t.Context(), faultBox)
		at := slices.IndexFunc(c.children, func(child *exec.Cmd) bool { return child.Process.Pid == p.PID })
		if err != nil || !ok || at < 0 {
			t.Fatalf("found %+v, %v, %v", p, ok, err)
		}
		_, err = s.Presence().Enter(t.Context(), faultBox)
		var present *roster.PresentError
		if !errors.As(err, &present) || present.By.PID != p.PID || present.Who != faultBox {
			t.Errorf("entered beside it: %v", err)
		}
		check(t, c.children[at].Process.Kill())
		_ = c.children[at].Wait() // it was killed
		if p, ok, err := s.Presence().Find(t.Context(), faultBox); err != nil || ok {
			t.Errorf("after the kill: found %+v, %v", p, err)
		}
		leave, err := s.Presence().Enter(t.Context(), faultBox)
		check(t, err)
		check(t, leave())
	}
}
