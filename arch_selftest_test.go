package cadre_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRulesCanFail shows for each rule of the architecture a file that breaks
// it and one that does not.
func TestRulesCanFail(t *testing.T) {
	long := "package x\n" + strings.Repeat("\n", maxLines)
	tests := []struct {
		name  string
		check func([]file) []string
		path  string
		src   string
		want  string // part of the problem; "" for none
	}{
		{"up", checkLayers, "task/a.go", `package task; import "github.com/cadre-dev/cadre/session"`, "task (layer 1) imports session (layer 4)"},
		{"sideways", checkLayers, "task/a.go", `package task; import "github.com/cadre-dev/cadre/mailbox"`, "imports mailbox"},
		{"builtin to session", checkLayers, "tool/builtin/a.go", `package builtin; import "github.com/cadre-dev/cadre/session"`, "imports session"},
		{"session to builtin", checkLayers, "session/a.go", `package session; import "github.com/cadre-dev/cadre/tool/builtin"`, "imports tool/builtin"},
		{"front end to root", checkLayers, "tui/a.go", `package tui; import "github.com/cadre-dev/cadre"`, "imports ."},
		{"internal up", checkLayers, "internal/x/a.go", `package x; import "github.com/cadre-dev/cadre/task"`, "imports task"},
		{"down", checkLayers, "session/a.go", `package session; import "github.com/cadre-dev/cadre/task"`, ""},
		{"in one room", checkLayers, "internal/x/a.go", `package x; import "github.com/cadre-dev/cadre/internal/y"`, ""},
		{"contract below its adapter", checkLayers, "provider/openai/a.go", `package openai; import "github.com/cadre-dev/cadre/provider"`, ""},
		{"adapter above its contract", checkLayers, "provider/a.go", `package provider; import "github.com/cadre-dev/cadre/provider/openai"`, "imports provider/openai"},
		{"test up", checkLayers, "task/a_test.go", `package task; import "github.com/cadre-dev/cadre/session"`, ""},
		{"no room", checkLayers, "gadget/a.go", `package gadget`, "gadget has no layer"},

		{"store in a command", checkRooms, "cmd/cadre/a.go", `package main; import "github.com/cadre-dev/cadre/filestore"`, "filestore is not for cmd/cadre"},
		{"store in the root", checkRooms, "a.go", `package cadre; import "github.com/cadre-dev/cadre/filestore"`, ""},
		{"suite outside tests", checkRooms, "filestore/a.go", `package filestore; import "github.com/cadre-dev/cadre/internal/storetest"`, "storetest is not for filestore"},
		{"suite in a test", checkRooms, "filestore/a_test.go", `package filestore; import "github.com/cadre-dev/cadre/internal/storetest"`, ""},
		{"testing in a library", checkRooms, "task/a.go", `package task; import "testing"`, "testing is not for task"},
		{"suite too curious", checkRooms, "internal/storetest/a.go", `package storetest; import ("testing"; "github.com/cadre-dev/cadre/provider")`, "no business with provider"},
		{"impure decision", checkRooms, "permission/a.go", `package permission; import "net/http"`, "permission does without net/http"},
		{"pure decision", checkRooms, "permission/a.go", `package permission; import "path/filepath"`, ""},

		{"cobra in a library", checkDependencies, "session/a.go", `package session; import "github.com/spf13/cobra"`, "cobra is not for session"},
		{"cobra in a command", checkDependencies, "cmd/cadre/a.go", `package main; import "github.com/spf13/cobra"`, ""},
		{"test library outside tests", checkDependencies, "task/a.go", `package task; import "github.com/google/go-cmp/cmp"`, "go-cmp is not for task"},

		{"long", checkSize, "x/a.go", long, "801 lines, the limit is 800"},
		{"long test", checkSize, "x/a_test.go", long, ""},

		{"many methods", checkTypes, "task/a.go", "package task; type t int\n" + methods(46), "task.t has 46 methods, the limit is 45"},
		{"enough methods", checkTypes, "task/a.go", "package task; type t int\n" + methods(45), ""},
		{"many fields", checkTypes, "task/a.go", "package task; type t struct {" + names(19) + " int }", "task.t has 19 fields, the limit is 18"},
		{"enough fields", checkTypes, "task/a.go", "package task; type t struct { int; " + names(17) + " int }", ""},
		{"large type on the list", checkTypes, "session/a.go", "package session; type owner struct{" + names(19) + " int }", ""},
		{"large type gone", checkTypes, "session/a.go", "package session; type owner struct{}", "session.owner is not a large type any more"},
		{"large package gone", checkPackages, "cmd/cadre/a.go", "package main", "cmd/cadre is not a large package any more"},
		{"team for a helper", checkTeamUsers, "session/a.go", `package session; import "github.com/cadre-dev/cadre/team"`, "session imports team"},
		{"team in a command", checkTeamUsers, "cmd/cadre/a.go", `package main; import "github.com/cadre-dev/cadre/team"`, ""},
		{"team where teams are formed", checkTeamUsers, "a.go", `package cadre; import "github.com/cadre-dev/cadre/team"`, ""},
		{"team no more", checkTeamUsers, "tool/builtin/a.go", `package builtin`, "tool/builtin does not import team any more"},

		{"go", checkGoroutines, "task/a.go", `package task; func f() { go f() }`, "task starts a goroutine"},
		{"wait group", checkGoroutines, "task/a.go", `package task; func f(g interface{ Go(func()) }) { g.Go(func() {}) }`, "task starts a goroutine"},
		{"go on the list", checkGoroutines, "session/a.go", `package session; func f() { go f() }`, ""},
		{"go in a suite", checkGoroutines, "internal/storetest/a.go", `package storetest; import "testing"; func f(t *testing.T) { go f(t) }`, ""},
		{"go in a test", checkGoroutines, "task/a_test.go", `package task; func f() { go f() }`, ""},
		{"none any more", checkGoroutines, "session/a.go", `package session; func f() { f() }`, "session starts no goroutine any more"},

		{"file past the layer", checkFiles, "filestore/a.go", `package filestore; import "os"; var _, err = os.ReadFile("x")`, "os.ReadFile past the file layer"},
		{"file through the layer", checkFiles, "filestore/a.go", `package filestore; import "os"; var x, err = fsys.OpenFile("x", os.O_RDWR, 0)`, ""},
		{"file of a tool", checkFiles, "tool/builtin/a.go", `package builtin; import "os"; var _, err = os.ReadFile("x")`, ""},

		{"background", checkBackground, "task/a.go", `package task; import "context"; var x = context.Background()`, "context.Background outside"},
		{"todo, renamed", checkBackground, "task/a.go", `package task; import c "context"; var x = c.TODO()`, "context.TODO outside"},
		{"background in main", checkBackground, "cmd/cadre/a.go", `package main; import "context"; var x = context.Background()`, ""},

		{"sleep", checkSleep, "task/a_test.go", `package task; import "time"; func f() { time.Sleep(1) }`, "time.Sleep in a test"},
		{"sleep beside a bubble", checkSleep, "task/a_test.go", `package task; import ("time"; "testing/synctest"); func f() { time.Sleep(1) }; func g() { synctest.Test(nil, f) }`, "time.Sleep in a test"},
		{"sleep in a bubble elsewhere", checkSleep, "task/a_test.go", "package task; import `time`; func f() {\ntime.Sleep(1) // synthetic time\n}", ""},
		{"sleep in a bubble", checkSleep, "task/a_test.go", `package task; import ("time"; "testing/synctest"); func f() { synctest.Test(nil, func() { time.Sleep(1) }) }`, ""},

		{"manager", checkNames, "task/a.go", `package task; type TaskManager struct{}`, `type TaskManager: "Manager" says nothing`},
		{"acronym before it", checkNames, "task/a.go", `package task; type HTTPHandler struct{}`, `"Handler" says nothing`},
		{"package", checkNames, "internal/util/a.go", `package util`, `package util: "Util" says nothing`},
		{"part of a word", checkNames, "task/a.go", `package task; type Database struct{}; type baseClass int`, ""},

		{"lament", checkErrors, "task/a.go", `package task; import "fmt"; var x = fmt.Errorf("failed to open %s", "x")`, `not "failed to"`},
		{"lament, put together", checkErrors, "task/a.go", `package task; import "errors"; var x = errors.New("x: " + "Could not open")`, `not "Could not"`},
		{"plain error", checkErrors, "task/a.go", `package task; import "errors"; var x = errors.New("open x")`, ""},

		{"function without a comment", checkDocs, "task/a.go", "// Package task.\npackage task\nfunc F() {}", "F is exported and has no comment"},
		{"method without a comment", checkDocs, "task/a.go", "// Package task.\npackage task\n// T.\ntype T struct{}\nfunc (*T) M() {}", "M is exported and has no comment"},
		{"type, constant, variable", checkDocs, "task/a.go", "// Package task.\npackage task\ntype T int\nconst C = 1\nvar V = 1", "V is exported and has no comment"},
		{"comments", checkDocs, "task/a.go", "// Package task.\npackage task\n// F.\nfunc F() {}\n// All.\nconst (\nA = 1\nB = 2\n)\ntype t int\nfunc (t) M() {}\nvar E = 1 // said here", ""},
		{"well-known method", checkDocs, "task/a.go", "// Package task.\npackage task\n// T.\ntype T struct{}\nfunc (*T) Error() string { return `` }", ""},
		{"package without a comment", checkDocs, "task/a.go", "package task", "package task has no comment"},

		{"list of tools", checkToolNames, "session/a.go", `package session; var v = []string{"Bash", "Edit", "Write"}`, "a list of 3 tool names"},
		{"map of tools", checkToolNames, "session/a.go", `package session; var v = map[string]bool{"Bash": true, "Task": true, "WebFetch": true}`, "a list of 3 tool names"},
		{"cases of tools", checkToolNames, "session/a.go", `package session; func f(s string) { switch s { case "Bash", "Edit", "Write": } }`, "a list of 3 tool names"},
		{"two tools", checkToolNames, "session/a.go", `package session; var v = []string{"Bash", "Edit", "sed"}`, ""},
		{"list of tools in a rule", checkToolNames, "permission/a.go", `package permission; var v = []string{"Bash", "Edit", "Write"}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(test.path, test.src)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(test.check([]file{f}), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got problems %q, want %q", got, test.want)
			}
		})
	}
}

// methods declares n methods of a type t.
func methods(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "func (t) m%d() {}\n", i)
	}
	return b.String()
}

// names lists n names of fields.
func names(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("f%d", i)
	}
	return strings.Join(list, ", ")
}

// TestLargePackageCanFail: a file more than the limit is a problem, tests aside.
func TestLargePackageCanFail(t *testing.T) {
	var files []file
	add := func(name string) {
		f, err := parse("task/"+name, "package task")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for i := range maxFiles {
		add(fmt.Sprintf("f%d.go", i))
		add(fmt.Sprintf("f%d_test.go", i))
	}
	if got := checkPackages(files); len(got) != 0 {
		t.Errorf("got problems %q of a package at the limit", got)
	}
	add("more.go")
	if got, want := strings.Join(checkPackages(files), "\n"), "task has 31 files, the limit is 30"; got != want {
		t.Errorf("got problems %q, want %q", got, want)
	}
}

// TestModulesCanFail does the same for the table of dependencies.
func TestModulesCanFail(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	added := string(mod) + "\nrequire example.com/new/thing v1.0.0\nrequire (\n\texample.com/other v0.1.0\n\texample.com/far v1.0.0 // indirect\n)\n"
	got := strings.Join(checkModules(added), "\n")
	for _, want := range []string{"example.com/new/thing is not in the table", "example.com/other is not in the table"} {
		if !strings.Contains(got, want) {
			t.Errorf("got problems %q, want %q", got, want)
		}
	}
	if strings.Contains(got, "example.com/far") {
		t.Errorf("an indirect module is a problem: %q", got)
	}
	got = strings.Join(checkModules(strings.ReplaceAll(string(mod), "github.com/spf13/cobra ", "example.com/cobra ")), "\n")
	if !strings.Contains(got, "github.com/spf13/cobra is not required") {
		t.Errorf("got problems %q, want one about the missing module", got)
	}
}

// TestFindsItsFiles keeps the walk from checking nothing.
func TestFindsItsFiles(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range parseTree(t, ".") {
		seen[f.path] = true
	}
	for _, want := range []string{"arch_test.go", "transcript/store.go", "internal/jsonx/jsonx.go"} {
		if !seen[want] {
			t.Errorf("the walk does not see %s", want)
		}
	}
}
