package permission

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/shellword"
)

// maxCommand is the longest command line that is parsed, in bytes. A longer one is
// never allowed by a rule, and may match every deny and ask rule.
const maxCommand = 64 << 10

// simpleCommand splits a command line into its words when it is exactly one
// simple command of literal words: bare, or in quotes that keep everything as
// it stands. Anything a shell would act on makes it refuse: operators,
// expansions, globs, braces, tildes, assignments, redirections, comments,
// backslashes, line breaks, and invisible characters.
func simpleCommand(line string) ([]string, bool) {
	if len(line) > maxCommand || !isPrintable(line) {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil, false
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	switch {
	case !ok, len(call.Assigns) > 0, len(call.Args) == 0, len(stmt.Redirs) > 0, len(stmt.Comments) > 0:
		return nil, false
	case stmt.Negated, stmt.Background, stmt.Coprocess, stmt.Disown, stmt.Semicolon.IsValid():
		return nil, false
	}
	words := make([]string, len(call.Args))
	for i, arg := range call.Args {
		if words[i], ok = literalWord(arg); !ok {
			return nil, false
		}
	}
	return words, words[0] != ""
}

// isPrintable refuses line breaks and other controls, bytes that are not UTF-8,
// and characters that are invisible or look like a plain space.
func isPrintable(line string) bool {
	if !utf8.ValidString(line) {
		return false
	}
	for _, r := range line {
		if r != ' ' && r != '\t' && !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func literalWord(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if !isPlainText(part.Value) {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\$`") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// isPlainText reports whether an unquoted piece of a word stands for itself in
// every shell.
func isPlainText(text string) bool {
	if strings.ContainsAny(text, "\\$`*?[]{}()<>|&;!#\"'") {
		return false
	}
	return !strings.HasPrefix(text, "~") && !strings.Contains(text, "=~") && !strings.Contains(text, ":~")
}

// commandAllowed applies the first allow rule that covers the command.
func (r *review) commandAllowed() *Decision {
	words, simple := simpleCommand(r.Access.Command)
	for _, rule := range r.Policy.Allow {
		if !rule.names(r.Call) {
			continue
		}
		if rule.Content == "" && r.script().readable || simple && ruleCovers(rule.Content, words) {
			return allowedBy(rule)
		}
	}
	return nil
}

// ruleCovers reports whether the content of an allow rule covers the words of a
// simple command: the same words, or with "…:*" or "… *" these words first.
func ruleCovers(content string, words []string) bool {
	literal, isPrefix := cutPrefixMark(content)
	if content == "" || strings.Contains(literal, "*") {
		return false
	}
	want, ok := simpleCommand(literal)
	if !ok || len(want) > len(words) {
		return false
	}
	if !slices.Equal(want, words[:len(want)]) {
		return false
	}
	return len(want) == len(words) || isPrefix && areHarmless(words, len(want))
}

// cutPrefixMark removes the ":*" or " *" that makes a rule a prefix rule.
func cutPrefixMark(content string) (literal string, isPrefix bool) {
	if literal, ok := strings.CutSuffix(content, ":*"); ok {
		return literal, true
	}
	return strings.CutSuffix(content, " *")
}

// askCommand asks about a command that no rule covers, and suggests a rule that would.
func (r *review) askCommand() Decision {
	line := strings.TrimSpace(r.Access.Command)
	words, simple := simpleCommand(line)
	if !simple {
		return Decision{
			Behavior: Ask, Remedy: "--allowedTools " + r.Spec.Name,
			Reason: "This is not a single simple command with literal words, so only a person, or a rule that allows every command, can allow it.",
		}
	}
	rule := Rule{Tool: r.Spec.Name, Content: line}
	return Decision{
		Behavior:    Ask,
		Reason:      fmt.Sprintf("No rule allows running %s here%s.", words[0], r.whyPrefixFailed(words)),
		Remedy:      "--allowedTools " + shellword.Quote(rule.String()),
		Suggestions: suggestRule("allow", rule, ask.LocalSettings),
	}
}

// whyPrefixFailed explains a prefix rule that names the program and yet does
// not allow the call.
func (r *review) whyPrefixFailed(words []string) string {
	for _, rule := range r.Policy.Allow {
		literal, isPrefix := cutPrefixMark(rule.Content)
		want, ok := simpleCommand(literal)
		if rule.names(r.Call) && isPrefix && ok && len(want) < len(words) && slices.Equal(want, words[:len(want)]) {
			return fmt.Sprintf(": the rule %s does not cover these arguments, which could make %s run or write something else",
				rule.from(), words[0])
		}
	}
	return ""
}
