package permission

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxNesting is how deep scripts inside scripts are parsed.
const maxNesting = 5

// script is what can be known of a command line without running it: every simple
// command at any depth, also those handed to shells, sudo and the like. Deny and
// ask rules are compared with it; nothing is ever allowed because of it.
type script struct {
	readable bool // it could be parsed, all of it
	hidden   bool // it runs something that is known only when it runs
	commands []command
	outputs  []word // what is written by redirection
	inputs   []word // what is read by redirection
	shown    []word // the words of commands that only show what they are given
	given    []word // the words of all other commands

	paths map[bool][]string // see [review.commandPaths]
}

// command is a simple command: the program and its arguments.
type command []word

// word is what is known of a word before it is expanded.
type word struct {
	text  string
	fixed bool // text is all of it
}

// script parses the call's command line once.
func (r *review) script() *script {
	if r.seen == nil {
		r.seen = &script{readable: true}
		r.seen.read(r.Access.Command, 0)
	}
	return r.seen
}

// read adds what text runs. In text that is not a valid script, every piece that
// looks like a word counts as the start of a command.
func (s *script) read(text string, depth int) {
	if depth > maxNesting {
		s.hidden = true
		return
	}
	file, ok := parseScript(text)
	if !ok {
		s.readable = s.readable && depth > 0
		s.hidden = true
		s.readTokens(text)
		return
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			s.readRedirects(node, depth)
		case *syntax.CallExpr:
			s.readCall(wordsOf(node.Args), depth)
		case *syntax.DeclClause:
			s.readDeclaration(node, depth)
		}
		return true
	})
}

// parseScript refuses what this parser and a shell are known to read differently:
// carriage returns, NULs, and a comment that ends in a backslash.
func parseScript(text string) (*syntax.File, bool) {
	if len(text) > maxCommand || strings.ContainsAny(text, "\r\x00") || hasContinuedComment(text) {
		return nil, false
	}
	parser := parsers.Get().(*syntax.Parser)
	defer parsers.Put(parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	return file, err == nil
}

// parsers are used again: one is 5 KB, and each call of a shell needs it.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

func hasContinuedComment(text string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "#") && strings.HasSuffix(line, "\\\n") {
			return true
		}
	}
	return false
}

// readTokens splits text into words without a grammar. Quotes and backslashes are
// removed, so that they hide nothing.
func (s *script) readTokens(text string) {
	text = strings.NewReplacer(`\`, "", `"`, "", `'`, "").Replace(text)
	tokens := strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("()<>|&;`${}", r)
	})
	words := make(command, len(tokens))
	for i, token := range tokens {
		words[i] = word{text: token, fixed: true}
	}
	s.given = append(s.given, words...)
	s.addSuffixes(words)
}

// maxSuffixes bounds how many tails of one command are compared with rules.
const maxSuffixes = 200

// addSuffixes adds words and every tail of it as a command.
func (s *script) addSuffixes(words command) {
	s.hidden = s.hidden || len(words) > maxSuffixes
	for i := range min(len(words), maxSuffixes) {
		s.commands = append(s.commands, words[i:])
	}
}

func (s *script) readCall(words command, depth int) {
	if len(words) == 0 {
		return
	}
	if !words[0].fixed || strings.ContainsAny(words[0].text, "*?[") {
		s.hidden = true
	}
	program := words[0].program()
	if slices.Contains(viewers, program) {
		s.shown = append(s.shown, words...)
	} else {
		s.given = append(s.given, words...)
	}
	switch {
	case program == "which" || program == "type":
		s.addSuffixes(words)
	case !slices.Contains(carriers, program):
		s.commands = append(s.commands, words)
	default:
		s.addSuffixes(words)
		s.readCarried(words, depth)
	}
}

// readCarried examines the arguments of a program that runs them.
func (s *script) readCarried(words command, depth int) {
	var texts []string
	last := words[0]
	for _, arg := range words[1:] {
		texts = append(texts, arg.text)
		s.hidden = s.hidden || !arg.fixed
		if !arg.isOption() {
			last = arg
		}
		if arg.isScript() {
			_, value, _ := strings.Cut(arg.text, "=")
			s.read(arg.text, depth+1)
			s.read(value, depth+1)
		}
	}
	if words[0].program() == "eval" {
		s.read(strings.Join(texts, " "), depth+1)
	}
	if slices.Contains(shells, last.program()) {
		s.hidden = true // it reads its script from its input
	}
}

// isScript reports whether a shell would see more in the word than a name. The
// marks that end and fill the commands of find and xargs are no scripts.
func (w word) isScript() bool {
	return w.text != ";" && w.text != "{}" && strings.ContainsAny(w.text, " \t\n;|&(){}<>$`=")
}

// readDeclaration examines export, declare and the like, which name no program but
// can contain one.
func (s *script) readDeclaration(decl *syntax.DeclClause, depth int) {
	s.commands = append(s.commands, command{{text: decl.Variant.Value, fixed: true}})
	for _, assign := range decl.Args {
		if assign.Value != nil {
			s.readCall(command{wordOf(assign.Value)}, depth)
		}
	}
}

func (s *script) readRedirects(stmt *syntax.Stmt, depth int) {
	for _, redirect := range stmt.Redirs {
		target := wordOf(redirect.Word)
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			s.readInput(stmt, wordOf(redirect.Hdoc), depth)
		case syntax.WordHdoc:
			s.readInput(stmt, target, depth)
		case syntax.RdrIn:
			s.inputs = append(s.inputs, target)
		default:
			s.outputs = append(s.outputs, target)
		}
	}
}

// readInput examines text that a shell gets as its input.
func (s *script) readInput(stmt *syntax.Stmt, text word, depth int) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	if slices.Contains(carriers, wordOf(call.Args[0]).program()) {
		s.hidden = s.hidden || !text.fixed
		s.read(text.text, depth+1)
	}
}

func wordsOf(args []*syntax.Word) command {
	words := make(command, len(args))
	for i, arg := range args {
		words[i] = wordOf(arg)
	}
	return words
}

// wordOf is what a word says with its quotes removed. Of expansions only $HOME
// is known, as "~".
func wordOf(w *syntax.Word) word {
	known := word{fixed: true}
	if w != nil {
		known.add(w.Parts)
	}
	return known
}

func (w *word) add(parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			w.text += unescape(part.Value)
			w.fixed = w.fixed && !hasBraces(part.Value)
		case *syntax.SglQuoted:
			w.addQuoted(part)
		case *syntax.DblQuoted:
			w.add(part.Parts)
		case *syntax.ParamExp:
			w.fixed = false
			if part.Param != nil && part.Param.Value == "HOME" {
				w.text += "~"
			}
		default:
			w.fixed = false
		}
	}
}

// hasBraces reports whether a shell may expand text to several words.
func hasBraces(text string) bool {
	return strings.Contains(text, "{") && (strings.Contains(text, ",") || strings.Contains(text, ".."))
}

func (w *word) addQuoted(part *syntax.SglQuoted) {
	if !part.Dollar {
		w.text += part.Value
		return
	}
	text, _, err := expand.Format(nil, part.Value, nil)
	w.text += text
	w.fixed = w.fixed && err == nil
}

func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
