package builtin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// similarFiles finds files that a path that does not exist may have meant: in
// its folder those with a name like it, and the same name in the working folder.
func similarFiles(path, cwd string) []string {
	const most = 3
	dir, name := filepath.Split(path)
	type candidate struct {
		path     string
		distance int
	}
	var found []candidate
	entries, _ := os.ReadDir(dir)
	for _, e := range entries[:min(len(entries), 5000)] {
		if d := nameDistance(name, e.Name()); d >= 0 {
			found = append(found, candidate{filepath.Join(dir, e.Name()), d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var paths []string
	if elsewhere := filepath.Join(cwd, name); elsewhere != filepath.Clean(path) {
		if _, err := os.Lstat(elsewhere); err == nil {
			paths = append(paths, elsewhere)
		}
	}
	for _, c := range found {
		paths = append(paths, c.path)
	}
	return paths[:min(len(paths), most)]
}

// nameDistance is how different two file names are: 0 when only their case differs,
// 1 for another extension, more for typing errors; -1 for unrelated names.
func nameDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return 0
	}
	stem := func(s string) string { return strings.TrimSuffix(s, filepath.Ext(s)) }
	if stem(a) != "" && stem(a) == stem(b) {
		return 1
	}
	far := max(1, len(a)/3)
	if len(a)-len(b) > far || len(b)-len(a) > far {
		return -1
	}
	if d := editDistance(a, b); d <= far {
		return 1 + d
	}
	return -1
}

// editDistance counts the letters to add, remove, change or swap with their
// neighbours to turn b into a. It works on bytes, which is enough for names.
func editDistance(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		table[i][0] = i
	}
	for j := range table[0] {
		table[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			changed := table[i-1][j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			table[i][j] = min(changed, table[i-1][j]+1, table[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				table[i][j] = min(table[i][j], table[i-2][j-2]+1)
			}
		}
	}
	return table[len(a)][len(b)]
}

// isMissing reports whether err says that there is no such file, also because part
// of its path is not a folder.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
