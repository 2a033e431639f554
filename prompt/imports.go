package prompt

import (
	"os"
	"path/filepath"
	"strings"
)

// maxImports is how deep imports may be nested.
const maxImports = 5

// withImports replaces each "@path" in text with the text of that file. A name that is
// not a file (a person, a package) and everything in code stays as it is; so does,
// with a warning, what must not be imported.
func (r *reader) withImports(path, text string, in reach, chain []string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		mark := fenceMark(line)
		switch {
		case mark != "" && fence == "":
			fence = mark
		case mark != "" && strings.HasPrefix(mark, fence):
			fence = ""
		case fence == "" && strings.Contains(line, "@"):
			line = r.importLine(path, line, in, chain)
		}
		b.WriteString(line)
	}
	return b.String()
}

// importLine replaces the imports outside of the code spans of a line.
func (r *reader) importLine(path, line string, in reach, chain []string) string {
	var b strings.Builder
	inCode, atStart := false, true
	for len(line) > 0 {
		end := strings.IndexAny(line, " \t\n`")
		switch {
		case end == 0:
			inCode = inCode != (line[0] == '`') && (inCode || strings.Contains(line[1:], "`"))
			atStart = line[0] != '`'
			b.WriteByte(line[0])
			line = line[1:]
			continue
		case end < 0:
			end = len(line)
		}
		word := line[:end]
		line = line[end:]
		if name, isImport := strings.CutPrefix(word, "@"); isImport && atStart && !inCode {
			word = r.importWord(path, name, in, chain)
		}
		atStart = false
		b.WriteString(word)
	}
	return b.String()
}

// importWord is the text that stands for "@name", or "@name" itself.
func (r *reader) importWord(path, name string, in reach, chain []string) string {
	asIs := "@" + name
	trimmed := strings.TrimRight(name, ".,;:!?)\"'")
	target := r.importTarget(filepath.Dir(chain[len(chain)-1]), trimmed)
	if trimmed == "" || target == "" {
		return asIs
	}
	if info, err := os.Stat(target); err != nil || info.IsDir() {
		if looksLikePath(trimmed) {
			r.warn(path, "imports @%s, which is not a file", trimmed)
		}
		return asIs
	}
	if len(chain) > maxImports {
		r.warn(path, "does not import @%s: more than %d nested imports", trimmed, maxImports)
		return asIs
	}
	text, err := r.read(target, in, chain)
	if err != nil {
		r.warn(path, "does not import @%s: %v", trimmed, err)
		return asIs
	}
	return text + name[len(trimmed):]
}

// importTarget is the path that an import names, or "".
func (r *reader) importTarget(dir, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if r.Home == "" {
			return ""
		}
		return filepath.Join(r.Home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// looksLikePath reports whether a name can only be meant as a file.
func looksLikePath(name string) bool {
	for _, prefix := range []string{"./", "../", "~/", "/"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".md")
}

// fenceMark is the run of backticks or tildes that a line of a code fence starts
// with, or "".
func fenceMark(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
