package cadre_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// checkTypes: no type has more methods or fields than one idea needs, but those
// on the list; and the list has nothing that is gone.
func checkTypes(files []file) []string {
	methods, fields := make(map[string]int), make(map[string]int)
	packages := make(map[string]bool)
	for _, f := range files {
		if f.forTests() {
			continue
		}
		packages[f.Name.Name] = true
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[f.Name.Name+"."+receiver(fn).Name]++
			}
		}
		for _, spec := range f.types() {
			if st, ok := spec.Type.(*ast.StructType); ok {
				fields[f.Name.Name+"."+spec.Name.Name] = st.Fields.NumFields()
			}
		}
	}
	var problems []string
	large := make(map[string]bool)
	report := func(what string, counts map[string]int, limit int) {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if counts[name] <= limit {
				continue
			}
			large[name] = true
			if largeTypes[name] == "" {
				problems = append(problems, fmt.Sprintf("%s has %d %s, the limit is %d", name, counts[name], what, limit))
			}
		}
	}
	report("methods", methods, maxMethods)
	report("fields", fields, maxFields)
	for _, name := range slices.Sorted(maps.Keys(largeTypes)) {
		if packages[packageOf(name)] && !large[name] {
			problems = append(problems, "arch_test.go: "+name+" is not a large type any more")
		}
	}
	return problems
}

func packageOf(typeName string) string {
	name, _, _ := strings.Cut(typeName, ".")
	return name
}

// checkPackages: no package has more files than a reader can survey, but those
// on the list; and the list has nothing that is gone.
func checkPackages(files []file) []string {
	counts := make(map[string]int)
	for _, f := range files {
		if !f.isTest() {
			counts[f.dir()]++
		}
	}
	var problems []string
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		switch large, listed := counts[dir] > maxFiles, largePackages[dir] != ""; {
		case large && !listed:
			problems = append(problems, fmt.Sprintf("%s has %d files, the limit is %d", dir, counts[dir], maxFiles))
		case listed && !large:
			problems = append(problems, "arch_test.go: "+dir+" is not a large package any more")
		}
	}
	return problems
}

// checkTeamUsers: below cmd, only those on the list import team; and all of
// them do.
func checkTeamUsers(files []file) []string {
	var problems []string
	present, users := make(map[string]bool), make(map[string]bool)
	for _, f := range files {
		present[f.dir()] = true
		if f.isTest() || within(f.dir(), "cmd", "bench") {
			continue
		}
		at, imports := f.importPaths()[module+"/team"]
		if !imports || f.dir() == "team" {
			continue
		}
		users[f.dir()] = true
		if teamUsers[f.dir()] == "" {
			problems = append(problems, f.problem(at, "%s imports team: say in arch_test.go why a lower room does not serve", f.dir()))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(teamUsers)) {
		if present[dir] && !users[dir] {
			problems = append(problems, "arch_test.go: "+dir+" does not import team any more")
		}
	}
	return problems
}
