package cadre_test

import (
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// importPaths lists the imports with their positions.
func (f file) importPaths() map[string]token.Pos {
	paths := make(map[string]token.Pos)
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			paths[p] = spec.Pos()
		}
	}
	return paths
}

// own turns an import path into a folder of this module.
func own(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// within reports whether a folder is one of the rooms or lies in one.
func within(dir string, rooms ...string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		return dir == room || strings.HasPrefix(dir, room+"/")
	})
}

// table gives rooms their layers.
type table []struct {
	room  string
	layer int
}

func (t table) find(dir string) (room string, layer int, ok bool) {
	for _, row := range t {
		if within(dir, row.room) && (!ok || len(row.room) > len(room)) {
			room, layer, ok = row.room, row.layer, true
		}
	}
	return room, layer, ok
}

// checkLayers: imports go down. Tests may look up.
func checkLayers(files []file) []string {
	var problems []string
	for _, f := range files {
		room, layer, ok := layers.find(f.dir())
		if !ok {
			problems = append(problems, f.problem(f.Package, "%s has no layer: give it one in arch_test.go", f.dir()))
			continue
		}
		if f.isTest() {
			continue
		}
		for p, at := range f.importPaths() {
			dir, ok := own(p)
			if !ok {
				continue
			}
			toRoom, toLayer, ok := layers.find(dir)
			if ok && toRoom != room && toLayer >= layer {
				problems = append(problems, f.problem(at, "%s (layer %d) imports %s (layer %d)", f.dir(), layer, dir, toLayer))
			}
		}
	}
	return problems
}

// checkRooms: the tables onlyFrom, onlyTo and without.
func checkRooms(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.isTest() {
			continue
		}
		for p, at := range f.importPaths() {
			target, ours := own(p)
			if !ours {
				target = p
			}
			for room, users := range onlyFrom {
				if within(target, room) && !within(f.dir(), append(users, room)...) {
					problems = append(problems, f.problem(at, "%s is not for %s", room, f.dir()))
				}
			}
			for room, targets := range onlyTo {
				if ours && within(f.dir(), room) && !within(target, append(targets, room)...) {
					problems = append(problems, f.problem(at, "%s has no business with %s", room, target))
				}
			}
			for room, packages := range without {
				if !ours && within(f.dir(), room) && within(target, packages...) {
					problems = append(problems, f.problem(at, "%s does without %s", room, target))
				}
			}
		}
	}
	return problems
}

// checkDependencies: a module is used where the table says.
func checkDependencies(files []file) []string {
	var problems []string
	for _, f := range files {
		if f.forTests() {
			continue
		}
		for p, at := range f.importPaths() {
			for module, rooms := range modules {
				if within(p, module) && !within(f.dir(), rooms...) {
					problems = append(problems, f.problem(at, "%s is not for %s", module, f.dir()))
				}
			}
		}
	}
	return problems
}

// checkModules: go.mod requires directly what the table allows, no more, no less.
func checkModules(mod string) []string {
	var problems []string
	seen := make(map[string]bool)
	required := regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+) v\S+(.*)$`)
	for _, m := range required.FindAllStringSubmatch(mod, -1) {
		if strings.Contains(m[2], "// indirect") {
			continue
		}
		seen[m[1]] = true
		if _, ok := modules[m[1]]; !ok {
			problems = append(problems, "go.mod: "+m[1]+" is not in the table of arch_test.go")
		}
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if !seen[module] {
			problems = append(problems, "arch_test.go: "+module+" is not required by go.mod")
		}
	}
	return problems
}
