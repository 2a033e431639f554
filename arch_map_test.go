package cadre_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestMapNamesFilesThatExist holds ARCHITECTURE.md to the files that it sends its reader
// to, and its three flows to as many as a reader should have to open.
func TestMapNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkMap(string(text), func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}) {
		t.Error(problem)
	}
}

// maxFlowFiles is how many files a flow of the map may begin with, by its heading.
var maxFlowFiles = map[string]int{"A prompt": 14, "A message": 20, "A teammate in a process of its own": 18}

var (
	flowHeading = regexp.MustCompile(`(?m)^## (.+)$`)
	mapName     = regexp.MustCompile("`([A-Za-z_./]+)`")
)

// checkMap reports the Go files that a map names and that do not exist, and flows that
// are missing or too long. A name without a folder is in the folder named last.
func checkMap(text string, exists func(name string) bool) (problems []string) {
	folder := "."
	for _, found := range mapName.FindAllStringSubmatch(text, -1) {
		name := found[1]
		switch {
		case path.Ext(name) != ".go":
			if strings.Contains(name, "/") || exists(name) {
				folder = strings.TrimSuffix(name, "/")
			}
			continue
		case strings.Contains(name, "/"):
			folder = path.Dir(name)
		case exists(path.Join(folder, name)):
			continue
		}
		if !exists(name) {
			problems = append(problems, fmt.Sprintf("ARCHITECTURE.md names %s (in %s), which does not exist", name, folder))
		}
	}
	sections := flowHeading.FindAllStringSubmatchIndex(text, -1)
	found := make(map[string]int)
	for _, s := range sections {
		intro, _, _ := strings.Cut(text[s[1]:], "\n\n1. ")
		for _, name := range mapName.FindAllStringSubmatch(intro, -1) {
			if path.Ext(name[1]) == ".go" {
				found[text[s[2]:s[3]]]++
			}
		}
	}
	for flow, most := range maxFlowFiles {
		if n := found[flow]; n == 0 || n > most {
			problems = append(problems, fmt.Sprintf("the flow %q begins with %d files; between 1 and %d are wanted", flow, n, most))
		}
	}
	return problems
}

// A map with a name that is gone, and a flow without files, is reported.
func TestMapCanFail(t *testing.T) {
	text := "## A prompt\n\n`session/session.go`, `gone.go`.\n\n1. First.\n\n## A message\n\n1. First.\n"
	problems := strings.Join(checkMap(text, func(name string) bool { return name == "session/session.go" }), "\n")
	for _, want := range []string{"names gone.go (in session)", `the flow "A message" begins with 0 files`} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not among:\n%s", want, problems)
		}
	}
	if strings.Contains(problems, "session.go") {
		t.Errorf("a file that exists is reported:\n%s", problems)
	}
}
