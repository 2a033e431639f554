package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/job"
)

// writing runs a shell job that writes the chunks and then waits for release.
func writing(t *testing.T, spec job.Spec, release <-chan struct{}, chunks ...[]byte) (*job.Pool, *job.Job) {
	t.Helper()
	p := job.NewPool(nil)
	t.Cleanup(p.Close)
	spec.Kind, spec.Owner = job.Shell, "me"
	wrote := make(chan struct{})
	j := start(t, p, spec, func(ctx context.Context, j *job.Job) job.Result {
		for _, chunk := range chunks {
			if n, err := j.Output().Write(chunk); n != len(chunk) || err != nil {
				t.Errorf("Write gave %d, %v", n, err)
			}
		}
		close(wrote)
		if release != nil {
			<-release
		}
		return job.Result{}
	})
	<-wrote
	return p, j
}

func in(dir string) func(string) string {
	return func(id string) string { return filepath.Join(dir, "jobs", id+".output") }
}

func content(t *testing.T, j *job.Job) string {
	t.Helper()
	data, err := os.ReadFile(j.Info().OutputFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestShortOutputOfAWaitedJobMakesNoFile(t *testing.T) {
	dir := t.TempDir()
	_, j := writing(t, job.Spec{Waited: true, Output: in(dir)}, nil, []byte("hello "), []byte("world"))
	if _, err := j.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := j.Output().Snapshot(); string(s.Head) != "hello world" || s.Tail != nil || s.Total != 11 || s.Cut() != 0 {
		t.Errorf("snapshot is %+v", s)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the folder has %v", entries)
	}
	if err := j.Output().Persist(); err != nil || content(t, j) != "hello world" {
		t.Errorf("persisted after the end: %v, %q", err, content(t, j))
	}
}

func TestDetachPutsTheOutputIntoItsFile(t *testing.T) {
	release := make(chan struct{})
	_, j := writing(t, job.Spec{Waited: true, Output: in(t.TempDir())}, release, []byte("ready\n"))
	j.Detach()
	if got := content(t, j); got != "ready\n" {
		t.Errorf("while it runs the file has %q", got)
	}
	if _, err := j.Output().Write([]byte("more\n")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, j); got != "ready\nmore\n" {
		t.Errorf("then it has %q", got)
	}
	close(release)
	<-j.Done()
	if got := content(t, j); got != "ready\nmore\n" {
		t.Errorf("at the end it has %q", got)
	}
	info, err := os.Stat(j.Info().OutputFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestBackgroundJobHasItsFileFromTheStart(t *testing.T) {
	release := make(chan struct{})
	_, j := writing(t, job.Spec{Output: in(t.TempDir())}, release)
	if got := content(t, j); got != "" {
		t.Errorf("the file has %q", got)
	}
	close(release)
	<-j.Done()
}

// numbered is n bytes of numbered lines.
func numbered(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.Bytes()[:n]
}

func TestLongOutputKeepsHeadAndTailAndAFile(t *testing.T) {
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 200_000, 1_000_000} {
		for _, chunk := range []int{size, 32 << 10, 1000} {
			all := numbered(size)
			var chunks [][]byte
			for rest := all; len(rest) > 0; {
				n := min(chunk, len(rest))
				chunks, rest = append(chunks, rest[:n]), rest[n:]
			}
			_, j := writing(t, job.Spec{Waited: true, Output: in(t.TempDir())}, nil, chunks...)
			if _, err := j.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := j.Output().Snapshot()
			if s.Total != int64(size) || !bytes.HasPrefix(all, s.Head) || !bytes.HasSuffix(all, s.Tail) ||
				len(s.Head) > 64<<10 || len(s.Tail) > 64<<10 || s.Cut() < 0 {
				t.Fatalf("%d bytes: head %d, tail %d, total %d", size, len(s.Head), len(s.Tail), s.Total)
			}
			if s.Cut() == 0 && size > 64<<10 && string(s.Head)+string(s.Tail) != string(all) {
				t.Errorf("%d bytes: nothing is cut, but head and tail are not all", size)
			}
			if size > 64<<10 && content(t, j) != string(all) {
				t.Errorf("%d bytes by %d: the file differs", size, chunk)
			}
		}
	}
}

func TestFileHasALimit(t *testing.T) {
	chunk := numbered(1 << 20)
	var chunks [][]byte
	for range 70 {
		chunks = append(chunks, chunk)
	}
	_, j := writing(t, job.Spec{Waited: true, Output: in(t.TempDir())}, nil, chunks...)
	if _, err := j.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := content(t, j)
	if len(got) > 65<<20 || !strings.HasSuffix(got, string(chunk[len(chunk)-64<<10:])) ||
		!strings.Contains(got, "[73400320 bytes in all; those after the first 67108864 are missing here, but for the last 65536:]") {
		t.Errorf("the file has %d bytes and ends with %q", len(got), got[len(got)-200:])
	}
}

func TestUnwritableFileStopsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	p, j := writing(t, job.Spec{Output: in(dir)}, nil, []byte("kept in memory"))
	<-j.Done()
	if err := j.Output().Err(); err == nil || !strings.Contains(err.Error(), "keep output") {
		t.Errorf("error is %v", err)
	}
	if s := j.Output().Snapshot(); string(s.Head) != "kept in memory" {
		t.Errorf("memory has %q", s.Head)
	}
	if n, err := p.Next(t.Context(), "me"); err != nil || n.Result.Status != job.Completed {
		t.Errorf("%+v %v", n, err)
	}
	if err := j.Output().Persist(); !errors.Is(err, j.Output().Err()) {
		t.Errorf("Persist gave %v", err)
	}
}
