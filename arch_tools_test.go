package cadre_test

import (
	"go/ast"
	"strconv"

	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// namesOfTools are the rooms that may list tools by their names: the tools
// themselves, the rules that people write, and those who word calls for people.
var namesOfTools = []string{"tool/builtin", "permission", "tui", "control", "cmd/cadre/internal/demo"}

// maxToolNames is how many names of tools may stand in one literal or case.
const maxToolNames = 2

// checkToolNames: what a tool is stands at its tool.Spec. A list of names elsewhere
// says it a second time, and nobody thinks of it who adds a tool.
func checkToolNames(files []file) []string {
	known := make(map[string]bool)
	for _, spec := range builtin.Specs() {
		known[spec.Name] = true
		for _, alias := range spec.Aliases {
			known[alias] = true
		}
	}
	isTool := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok {
			return false
		}
		name, err := strconv.Unquote(lit.Value)
		return err == nil && (known[name] || permission.IsForeign(name))
	}
	var problems []string
	for _, f := range files {
		if f.forTests() || within(f.dir(), namesOfTools...) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			var listed []ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						listed = append(listed, pair.Key, pair.Value)
					} else {
						listed = append(listed, e)
					}
				}
			case *ast.CaseClause:
				listed = n.List
			default:
				return true
			}
			found := 0
			for _, e := range listed {
				if isTool(e) {
					found++
				}
			}
			if found > maxToolNames {
				problems = append(problems, f.problem(n.Pos(), "a list of %d tool names: say at their tool.Spec what they have in common", found))
			}
			return true
		})
	}
	return problems
}
