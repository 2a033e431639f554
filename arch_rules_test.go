package cadre_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// rules are the checks over all files. Each returns one line per problem.
var rules = []struct {
	name  string
	check func([]file) []string
}{
	{"layers", checkLayers},
	{"rooms", checkRooms},
	{"dependencies", checkDependencies},
	{"size", checkSize},
	{"types", checkTypes},
	{"packages", checkPackages},
	{"users of team", checkTeamUsers},
	{"goroutines", checkGoroutines},
	{"files", checkFiles},
	{"background", checkBackground},
	{"sleep", checkSleep},
	{"names", checkNames},
	{"errors", checkErrors},
	{"docs", checkDocs},
	{"tool names", checkToolNames},
}

// file is one parsed Go file.
type file struct {
	path string // relative to the root of the module, with slashes
	*ast.File
	fset *token.FileSet
}

func parse(p, src string) (file, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, p, src, parser.ParseComments)
	return file{p, f, fset}, err
}

func (f file) dir() string  { return path.Dir(f.path) }
func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// forTests: test files, and suites that tests of several packages share.
func (f file) forTests() bool { return f.isTest() || f.packageName("testing") != "" }

func (f file) lines() int { return f.fset.File(f.FileStart).LineCount() }

func (f file) problem(at token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.path, f.fset.Position(at).Line, fmt.Sprintf(format, args...))
}

func checkSize(files []file) []string {
	var problems []string
	for _, f := range files {
		limit := maxLines
		if f.isTest() {
			limit = maxTestLines
		}
		if n := f.lines(); n > limit {
			problems = append(problems, f.problem(f.Package, "%d lines, the limit is %d", n, limit))
		}
	}
	return problems
}

// checkGoroutines: go statements, and Go calls of wait groups, are where the
// list says; and the list has nothing that is gone.
func checkGoroutines(files []file) []string {
	var problems []string
	found := make(map[string]bool)
	present := make(map[string]bool)
	for _, f := range files {
		present[f.dir()] = true
		if f.forTests() {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			if !startsGoroutine(n) {
				return true
			}
			found[f.dir()] = true
			if goroutines[f.dir()] == "" {
				problems = append(problems, f.problem(n.Pos(), "%s starts a goroutine: say in arch_test.go what for", f.dir()))
			}
			return true
		})
	}
	for _, dir := range slices.Sorted(maps.Keys(goroutines)) {
		if present[dir] && !found[dir] {
			problems = append(problems, "arch_test.go: "+dir+" starts no goroutine any more")
		}
	}
	return problems
}

func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// fileCalls are the functions of package os that touch files.
var fileCalls = regexp.MustCompile(`^(Open|Create|ReadFile|WriteFile|Mkdir|Rename|Remove|Stat|Lstat|ReadDir|Ch|Truncate|Link|Symlink|Readlink|Root)`)

// checkFiles: the rooms that keep state go through the file layer.
func checkFiles(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.isTest() || !within(f.dir(), stateRooms...) {
			continue
		}
		for _, pkg := range []string{"os", "io/ioutil"} {
			name := f.packageName(pkg)
			ast.Inspect(f.File, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if ok && name != "" && fileCalls.MatchString(sel.Sel.Name) && isName(sel, name, sel.Sel.Name) {
					problems = append(problems, f.problem(sel.Pos(), "%s.%s past the file layer: use internal/fsx", name, sel.Sel.Name))
				}
				return true
			})
		}
	}
	return problems
}

// checkBackground: a fresh context belongs to those who have no caller.
func checkBackground(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.forTests() || f.Name.Name == "main" {
			continue
		}
		for _, name := range []string{"Background", "TODO"} {
			for _, at := range f.uses("context", name) {
				problems = append(problems, f.problem(at, "context.%s outside main and tests: take the caller's", name))
			}
		}
	}
	return problems
}

// checkSleep: tests wait for what they wait for. Only in a synctest bubble may
// they sleep: that moves the bubble's clock and takes no time. Where the bubble
// is in another function, the line says so: "// synthetic time".
func checkSleep(files []file) []string {
	var problems []string
	for _, f := range files {
		if !f.forTests() {
			continue
		}
		bubbles := f.uses("testing/synctest", "Test")
		for _, at := range f.uses("time", "Sleep") {
			if !f.sameFunction(at, bubbles) && !strings.Contains(f.commentAfter(at), "synthetic time") {
				problems = append(problems, f.problem(at, "time.Sleep in a test: wait for the thing itself"))
			}
		}
	}
	return problems
}

// packageName is the name under which the file uses an import, "" for none.
func (f file) packageName(importPath string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses finds where a file mentions a name of an imported package.
func (f file) uses(importPath, name string) []token.Pos {
	var at []token.Pos
	pkg := f.packageName(importPath)
	ast.Inspect(f.File, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && pkg != "" && isName(sel, pkg, name) {
			at = append(at, sel.Pos())
		}
		return true
	})
	return at
}

// sameFunction reports whether one of others is in the function around at.
func (f file) sameFunction(at token.Pos, others []token.Pos) bool {
	return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
		inside := func(p token.Pos) bool { return d.Pos() <= p && p < d.End() }
		return inside(at) && slices.ContainsFunc(others, inside)
	})
}

// commentAfter is the comment that begins on the line of at.
func (f file) commentAfter(at token.Pos) string {
	line := f.fset.Position(at).Line
	for _, c := range f.Comments {
		if f.fset.Position(c.Pos()).Line == line {
			return c.Text()
		}
	}
	return ""
}

// calls finds the calls of a function of an imported package.
func (f file) calls(importPath, name string) []*ast.CallExpr {
	var calls []*ast.CallExpr
	pkg := f.packageName(importPath)
	ast.Inspect(f.File, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && pkg != "" {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && isName(sel, pkg, name) {
				calls = append(calls, call)
			}
		}
		return true
	})
	return calls
}

func isName(sel *ast.SelectorExpr, pkg, name string) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg && sel.Sel.Name == name
}

// checkNames: packages and exported types have names that say something.
func checkNames(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.isTest() {
			continue
		}
		if word := forbiddenIn(f.Name.Name); word != "" {
			problems = append(problems, f.problem(f.Name.Pos(), "package %s: %q says nothing", f.Name.Name, word))
		}
		for _, spec := range f.types() {
			if word := forbiddenIn(spec.Name.Name); word != "" && spec.Name.IsExported() {
				problems = append(problems, f.problem(spec.Pos(), "type %s: %q says nothing", spec.Name.Name, word))
			}
		}
	}
	return problems
}

// types lists the package-level types of a file.
func (f file) types() []*ast.TypeSpec {
	var types []*ast.TypeSpec
	for _, d := range f.Decls {
		if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			for _, spec := range gen.Specs {
				types = append(types, spec.(*ast.TypeSpec))
			}
		}
	}
	return types
}

// forbiddenIn returns the forbidden word in an identifier.
func forbiddenIn(name string) string {
	for _, word := range words(name) {
		for _, bad := range forbiddenWords {
			if strings.EqualFold(word, bad) {
				return bad
			}
		}
	}
	return ""
}

// words splits an identifier where a capital follows a small letter, or begins
// a word after an acronym.
func words(name string) []string {
	var out []string
	runes := []rune(name)
	start := 0
	for i := 1; i < len(runes); i++ {
		afterSmall := unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1])
		afterAcronym := unicode.IsUpper(runes[i-1]) && unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if runes[i] == '_' || afterSmall || afterAcronym {
			out = append(out, strings.Trim(string(runes[start:i]), "_"))
			start = i
		}
	}
	return append(out, strings.Trim(string(runes[start:]), "_"))
}

var lament = regexp.MustCompile(`(?i)\b(failed to|unable to|could not)\b`)

// checkErrors: an error names the operation and its object.
func checkErrors(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.forTests() {
			continue
		}
		for _, call := range append(f.calls("fmt", "Errorf"), f.calls("errors", "New")...) {
			ast.Inspect(call, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if ok && lit.Kind == token.STRING && lament.MatchString(lit.Value) {
					problems = append(problems, f.problem(lit.Pos(), "an error says the operation and its object, not %q", lament.FindString(lit.Value)))
				}
				return true
			})
		}
	}
	return problems
}

// spoken are methods whose contract the standard library gives.
var spoken = []string{"Error", "String", "Unwrap", "Is", "As", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// checkDocs: packages and what they export say what they promise.
func checkDocs(files []file) []string {
	var problems []string
	documented := make(map[string]bool)
	first := make(map[string]file)
	for _, f := range files {
		if f.isTest() {
			continue
		}
		if _, seen := first[f.dir()]; !seen {
			first[f.dir()] = f
		}
		documented[f.dir()] = documented[f.dir()] || f.Doc != nil
		if f.Name.Name == "main" {
			continue
		}
		for _, d := range f.Decls {
			problems = append(problems, f.undocumented(d)...)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(first)) {
		if f := first[dir]; !documented[dir] {
			problems = append(problems, f.problem(f.Package, "package %s has no comment", f.Name.Name))
		}
	}
	return problems
}

func (f file) undocumented(d ast.Decl) []string {
	var problems []string
	need := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		has := slices.ContainsFunc(docs, func(c *ast.CommentGroup) bool { return c != nil })
		if name.IsExported() && !has {
			problems = append(problems, f.problem(name.Pos(), "%s is exported and has no comment", name.Name))
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || receiver(d).IsExported() && !slices.Contains(spoken, d.Name.Name) {
			need(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				need(spec.Name, spec.Doc, spec.Comment, d.Doc)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					need(name, spec.Doc, spec.Comment, d.Doc)
				}
			}
		}
	}
	return problems
}

// receiver is the type name of a method's receiver.
func receiver(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x
		default:
			return ast.NewIdent("_")
		}
	}
}
