package permission

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// runs compares the content of a deny or ask rule for commands with everything
// that the script runs. What the script hides may match every rule.
func (s *script) runs(content string) verdict {
	pattern, isPrefix := rulePattern(content)
	worst := noMatch
	if s.hidden {
		worst = mayMatch
	}
	for _, c := range s.commands {
		worst = max(worst, c.matches(pattern, isPrefix))
		if worst == matches {
			break
		}
	}
	return worst
}

// rulePattern is the words of a deny or ask rule. A "*" inside a word stands
// for any text, as a word for any words.
func rulePattern(content string) (words []string, isPrefix bool) {
	literal, isPrefix := cutPrefixMark(content)
	if words, ok := simpleCommand(literal); ok {
		return words, isPrefix
	}
	return strings.Fields(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(literal)), isPrefix
}

// matches reports whether the words of the pattern stand in the command in
// their order, the program first, with nothing but options and their values
// between: so "git push" also covers "git -C dir push".
func (c command) matches(pattern []string, isPrefix bool) verdict {
	if len(pattern) == 0 {
		return noMatch
	}
	result := noMatch
	// ends are the places up to which the command matches the pattern so far, in
	// rising order; several, since an option may have a value or not.
	ends := []int{0}
	for i, want := range pattern {
		next := make([]int, 0, 1)
		for n := 0; n < len(ends); n++ {
			j := ends[n]
			if want == "*" {
				for k := j; k <= len(c); k++ {
					next = appendPlace(next, k)
				}
				break
			}
			if j == len(c) {
				continue
			}
			if c[j].matchesOne(want, i == 0) {
				next = appendPlace(next, j+1)
			} else if !c[j].fixed {
				result = mayMatch
			}
			if i > 0 && c[j].isOption() {
				ends = appendPlace(ends, j+1)
				if j+1 < len(c) && !c[j+1].isOption() {
					ends = appendPlace(ends, j+2)
				}
			}
		}
		ends = next
	}
	for _, j := range ends {
		if isPrefix || !slices.ContainsFunc(c[j:], func(w word) bool { return !w.isOption() }) {
			return matches
		}
	}
	return result
}

// appendPlace adds a place to a rising list, once.
func appendPlace(places []int, place int) []int {
	i, found := slices.BinarySearch(places, place)
	if found {
		return places
	}
	return slices.Insert(places, i, place)
}

func (w word) isOption() bool { return strings.HasPrefix(w.text, "-") }

// program is the name of the program that the word calls.
func (w word) program() string { return path.Base(strings.ReplaceAll(w.text, `\`, "/")) }

func (w word) matchesOne(want string, isProgram bool) bool {
	if wildcard(want, w.text) {
		return w.fixed || want != "*"
	}
	return isProgram && wildcard(path.Base(want), w.program())
}

// wildcard matches text against a pattern in which "*" stands for any text,
// without regard to case.
func wildcard(pattern, text string) bool {
	pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	head, rest, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	text = text[len(head):]
	for found {
		head, rest, found = strings.Cut(rest, "*")
		if !found {
			return strings.HasSuffix(text, head)
		}
		i := strings.Index(text, head)
		if i < 0 {
			return false
		}
		text = text[i+len(head):]
	}
	return true
}

// viewers show the files that their arguments name and cannot change them.
var viewers = []string{"cat", "ls", "head", "tail", "wc", "grep", "rg", "stat", "file", "diff", "cmp", "test", "[", "cd", "pwd", "echo", "du"}

// commandPaths are the paths that the command may touch, by its words and its
// redirections; with changed set, only those that it may change. Every word counts
// that could be a path, and so does what follows "=" or "@" in one.
func (r *review) commandPaths(changed bool) []string {
	s := r.script()
	if paths := s.paths[changed]; paths != nil {
		return paths
	}
	words := slices.Concat(s.outputs, s.given)
	if !changed {
		words = slices.Concat(words, s.inputs, s.shown)
	}
	bases := r.commandFolders(s)
	var paths []string
	for _, w := range words {
		for _, text := range w.pathTexts() {
			paths = r.appendPaths(paths, bases, text)
		}
	}
	if s.paths == nil {
		s.paths = make(map[bool][]string)
	}
	s.paths[changed] = paths
	return paths
}

// maxFolders bounds the work that a chain of cd commands can make.
const maxFolders = 8

// commandFolders are the folders that a relative path may be relative to.
func (r *review) commandFolders(s *script) []string {
	folders := slices.Clone(r.Folders)
	if r.Access.Dir != "" && !slices.Contains(folders, r.Access.Dir) {
		folders = append(folders, r.Access.Dir)
	}
	for _, c := range s.commands {
		if len(c) < 2 || len(folders) > maxFolders {
			continue
		}
		if program := c[0].program(); program == "cd" || program == "pushd" {
			folders = r.appendPaths(folders, slices.Clone(folders), c[len(c)-1].text)
		}
	}
	return folders
}

// pathTexts are the pieces of a word that a program may use as a path.
func (w word) pathTexts() []string {
	texts := []string{w.text}
	if _, value, ok := strings.Cut(w.text, "="); ok {
		texts = append(texts, value)
	}
	if i := strings.LastIndexByte(w.text, '@'); i >= 0 {
		texts = append(texts, w.text[i+1:])
	}
	if len(w.text) > 2 && w.text[0] == '-' && w.text[1] != '-' {
		texts = append(texts, w.text[2:])
	}
	return texts
}

func (r *review) appendPaths(paths, bases []string, text string) []string {
	if text == "" {
		return paths
	}
	if rest, ok := strings.CutPrefix(text, "~"); ok && r.Home != "" && (rest == "" || rest[0] == '/') {
		return r.appendNamed(paths, filepath.Join(r.Home, rest))
	}
	if filepath.IsAbs(text) {
		return r.appendNamed(paths, filepath.Clean(text))
	}
	for _, base := range bases {
		paths = r.appendNamed(paths, filepath.Join(base, text))
	}
	return paths
}

// appendNamed adds a path, and what it is when a folder in it goes by another name.
func (r *review) appendNamed(paths []string, path string) []string {
	paths = append(paths, path)
	for _, name := range slices.Sorted(maps.Keys(r.Names)) {
		if rel, ok := relative(name, path, exact); ok {
			paths = append(paths, filepath.Join(r.Names[name], filepath.FromSlash(rel)))
		}
	}
	return paths
}
