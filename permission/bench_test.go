package permission

import "testing"

// BenchmarkDecide is what every call of a tool pays.
func BenchmarkDecide(b *testing.B) {
	p := policyText{allow: "Bash(go test:*),Edit(./src/**)", deny: "Bash(rm -rf:*),Read(.env),Read(./secrets/**)", ask: "Bash(git push:*)"}.policy(b)
	for name, call := range map[string]Call{
		"Read": read("/srv/repo/src/a.go"), "Edit": edit("/srv/repo/src/a.go"),
		"Bash": bash("go test -race ./... && git status | head -20"), "Task": internal("TaskList"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Decide(p, call)
			}
		})
	}
}
