package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed all:project
var projectFiles embed.FS

// Project is the demo's project on disk.
type Project struct {
	Dir    string // absolute, symbolic links resolved
	Commit string // of the project as it was delivered
}

// Prepare writes the project into dir, which must be absent or empty, and puts
// it under git. Nothing of the user's git configuration is read.
func Prepare(ctx context.Context, dir string) (Project, error) {
	dir, err := freshDir(dir)
	if err != nil {
		return Project{}, err
	}
	if err := writeProject(dir); err != nil {
		return Project{}, err
	}
	commit, err := commitAll(ctx, dir)
	if err != nil {
		return Project{}, fmt.Errorf("put the demo project %s under git: %w", dir, err)
	}
	return Project{dir, commit}, nil
}

func freshDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the demo's folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the demo's folder: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("the folder %s is not empty: the demo writes into a fresh one", dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("find the demo's folder: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// delivered yields the files of the project as they were delivered, by their
// path inside it, with slashes.
func delivered(visit func(path string, data []byte) error) error {
	return fs.WalkDir(projectFiles, "project", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := projectFiles.ReadFile(p)
		if err != nil {
			return err
		}
		// A checkout may have changed line ends to CRLF, which sh does not understand.
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		return visit(strings.TrimPrefix(p, "project/"), data)
	})
}

func writeProject(dir string) error {
	return delivered(func(path string, data []byte) error {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fmt.Errorf("write the demo project: %w", err)
		}
		mode := os.FileMode(0o600)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o700
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			return fmt.Errorf("write the demo project: %w", err)
		}
		return nil
	})
}
