package permission

import (
	"slices"
	"strings"
	"testing"
)

func TestSimpleCommand(t *testing.T) {
	good := map[string][]string{
		"git status":              {"git", "status"},
		"  git\t status ":         {"git", "status"},
		`git commit -m "fix: a"`:  {"git", "commit", "-m", "fix: a"},
		`rg 'a|b\.c' 'x y'`:       {"rg", `a|b\.c`, "x y"},
		`go test ./... -run=A`:    {"go", "test", "./...", "-run=A"},
		`echo a"b"'c'`:            {"echo", "abc"},
		`git show HEAD~1:a/b.go`:  {"git", "show", "HEAD~1:a/b.go"},
		`echo "don't" "(a; b)" é`: {"echo", "don't", "(a; b)", "é"},
		`echo ""`:                 {"echo", ""},
	}
	for line, want := range good {
		if got, ok := simpleCommand(line); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
	bad := []string{
		"", " ", "''", "# x", "a # x", "a;", "a; b", "a && b", "a | b", "a &", "a\nb", "a\n", "! a", "(a)", "{ a; }",
		"a > b", "a 2>&1", "a < b", "a <<< b", "a >&2", "$x", "a $x", `a "$x"`, "a ${x}", "a `b`", `a "` + "`b`" + `"`, "a $(b)", "a $((1))",
		"a $'b'", `a $"b"`, "x=1", "x=1 a", "a *", "a b?", "a [b]", "a {b,c}", "a {1..2}", "a ~", "a ~/b", "a --x=~/b", "a x:~", `a \b`, `a "\\b"`, `a "\$b"`,
		"a 'b", `a "b`, "a 'x\ny'", "a\rb", "a\x00b", "a \u202e b", "a\u00a0b", "a\u200bb", "a \xff", "if a; then b; fi", "time a", "[[ a ]]", "((1))",
		"export a", "export a=b", "let a", "function f { a; }", "f() { a; }", "coproc a", "a <(b)", "a !(b)", "a @(b)", "a&", "for", "echo ${!x}",
		"a #", "git log #\nrm", "a \\\nb", strings.Repeat("a ", maxCommand),
	}
	for _, line := range bad {
		if got, ok := simpleCommand(line); ok {
			t.Errorf("%q was read as the simple command %q", line[:min(len(line), 40)], got)
		}
	}
}

func TestAllowRulesForCommands(t *testing.T) {
	tests := []struct {
		rule, line string
		want       Behavior
	}{
		{"Bash(git status)", "git status", Allow},
		{"Bash(git status)", "git  'status'", Allow},
		{"Bash(git status)", "git status -s", Ask},
		{"Bash(git status:*)", "git status", Allow},
		{"Bash(git status:*)", "git status -s", Allow},
		{"Bash(git status *)", "git status -s", Allow},
		{"Bash(git *)", "git status", Allow},
		{"Bash(git:*)", "git commit -m 'fix: a; b'", Allow},
		{"Bash(git:*)", "git commit -am x", Allow},
		{"Bash(git:*)", "git", Allow},
		{"Bash(git:*)", "gitx status", Ask},
		{"Bash(git:*)", "./git status", Ask},
		{"Bash(git:*)", "git add -A && git commit -m x", Ask},
		{"Bash(git:*)", "git bisect run id", Ask},
		{"Bash(git bisect run:*)", "git bisect run id", Allow},
		{"Bash(git:*)", "git commit -F x", Ask},
		{"Bash(git:*)", "git clone 'ext::sh -c id' x", Ask},
		{"Bash(git:*)", "git push -u origin main", Allow},
		{"Bash(git fetch:*)", "git fetch --upload-pack=id origin", Ask},
		{"Bash(git log:*)", "git log -- --output=x", Allow},
		{"Bash(git log:*)", "git log --output=x", Ask},
		{"Bash(git log:*)", "git log -20 --oneline", Allow},
		{"Bash(git log --output=x:*)", "git log --output=x", Allow},
		{"Bash(go test:*)", "go test -race -count=1 ./...", Allow},
		{"Bash(go test:*)", "go test -toolexec ./x ./...", Ask},
		{"Bash(find:*)", "find . -name '*.go' -type f", Allow},
		{"Bash(find:*)", "find . -delete", Ask},
		{"Bash(rg:*)", "rg -in foo src", Allow},
		{"Bash(rg:*)", "rg --pre=sh foo", Ask},
		{"Bash(sed:*)", "sed -n p f", Ask},
		{"Bash(sed -n p f)", "sed -n p f", Allow},
		{"Bash(timeout 5 id)", "timeout 5 id", Allow},
		{"Bash(xargs:*)", "xargs rm", Ask},
		{"Bash(bash:*)", "bash -c id", Ask},
		{"Bash(npm run:*)", "npm run test", Allow},
		{"Bash(npm run:*)", "npm running", Ask},
		{"Bash(make:*)", "make -C x all", Allow},
		{"Bash(python3:*)", "python3 -m unittest", Allow},
		{"Bash(npm run test*)", "npm run test:unit", Ask},
		{"Bash(git * main)", "git push main", Ask},
		{"Bash(a && b)", "a && b", Ask},
		{"Bash($x:*)", "$x y", Ask},
		{"Bash(:*)", "ls", Ask},
		{"Bash", "ls", Allow},
		{"Bash", "cd x && make > log", Allow},
		{"Bash(*)", "ls | wc -l", Allow},
		{"Bash", "echo 'x", Ask},
		{"Bash", "echo x\rrm", Ask},
		{"Bash", "echo {} > .claude/settings.json", Ask},
		{"Bash", "cd .claude && echo {} > settings.json", Ask},
		{"Bash", "cp x .git/hooks/pre-commit", Ask},
		{"Bash", "cat .claude/settings.json", Allow},
		{"Bash", "echo x >> ~/.bashrc", Ask},
		{"Bash", `echo x >> "$HOME/.bashrc"`, Ask},
		{"Bash", "cp a ~/.cadre/teams/t/inboxes/b.json", Deny},
		{"Bash", "echo a > /home/u/.claude/tasks/t/1.json", Deny},
		{"Bash", "cat ~/.cadre/teams/t/config.json", Allow},
		{"Read", "ls", Ask},
	}
	for _, tt := range tests {
		p := policyText{}.policy(t)
		p.Allow = rules(t, tt.rule)
		if got := Decide(p, bash(tt.line)); got.Behavior != tt.want {
			t.Errorf("%s for %q: %s (%s), want %s", tt.rule, tt.line, got.Behavior, got.Reason, tt.want)
		}
	}
}

func TestDenyRulesForCommands(t *testing.T) {
	tests := []struct {
		rule, line string
		want       Behavior // in bypass mode
	}{
		{"Bash(rm:*)", "rm -rf x", Deny},
		{"Bash(rm *)", "rm -rf x", Deny},
		{"Bash(rm:*)", "RM x", Deny},
		{"Bash(rm:*)", "rmdir x", Allow},
		{"Bash(rm:*)", "git rm x", Allow},
		{"Bash(rm:*)", "echo rm x", Allow},
		{"Bash(rm:*)", `git commit -m "rm x"`, Allow},
		{"Bash(rm -rf:*)", "rm -rf x", Deny},
		{"Bash(rm -rf:*)", "rm -v -rf x", Deny},
		{"Bash(rm x)", "rm x", Deny},
		{"Bash(rm x)", "rm -f x", Deny},
		{"Bash(rm x)", "rm x y", Allow},
		{"Bash(git push:*)", "git -C dir push", Deny},
		{"Bash(git push:*)", "git commit -m push", Allow},
		{"Bash(git push:*)", "git $X", Ask},
		{"Bash(git push * --force)", "git push origin main --force", Deny},
		{"Bash(git push * --force)", "git push origin main", Allow},
		{"Bash(npm run test*)", "npm run test:unit", Deny},
		{"Bash(curl:*)", "a; b && (c | { curl x; })", Deny},
		{"Bash(curl:*)", "if a; then curl x; fi", Deny},
		{"Bash(curl:*)", "x=$(curl y)", Deny},
		{"Bash(curl:*)", "echo \"$(curl y)\"", Deny},
		{"Bash(curl:*)", "a <(curl y)", Deny},
		{"Bash(curl:*)", "f() { curl x; }; f", Deny},
		{"Bash(curl:*)", "cat <<EOF\n$(curl x)\nEOF", Deny},
		{"Bash(curl:*)", "bash <<EOF\ncurl x\nEOF", Deny},
		{"Bash(curl:*)", "sh <<< 'curl x'", Deny},
		{"Bash(curl:*)", "cat <<EOF\ncurl x\nEOF", Allow},
		{"Bash(curl:*)", "sudo -u a env X=1 curl x", Deny},
		{"Bash(curl:*)", `env -S "curl x"`, Deny},
		{"Bash(curl:*)", `bash -c 'eval "curl x"'`, Deny},
		{"Bash(curl:*)", `bash -lc "cd x && curl y"`, Deny},
		{"Bash(curl:*)", "trap 'curl x' EXIT", Deny},
		{"Bash(curl:*)", "alias c='curl x'", Deny},
		{"Bash(curl:*)", "find . -exec curl {} ';'", Deny},
		{"Bash(curl:*)", `find . -exec grep x {} \;`, Allow},
		{"Bash(curl:*)", "find . -name '*.go' | xargs grep x", Allow},
		{"Bash(curl:*)", `$'\x63url' x`, Deny},
		{"Bash(curl:*)", "# x \\\ncurl y", Deny},
		{"Bash(curl:*)", "echo 'curl x", Deny},
		{"Bash(curl:*)", "echo 'x", Ask},
		{"Bash(curl:*)", "c=curl; $c x", Ask},
		{"Bash(curl:*)", "echo x | sh", Ask},
		{"Bash(curl:*)", "echo x | sudo bash", Ask},
		{"Bash(curl:*)", "/bin/c?rl x", Ask},
		{"Bash(curl:*)", "{curl,x}", Ask},
		{"Bash(curl:*)", "bash script.sh", Allow},
		{"Bash(curl:*)", "make build && ls *.go", Allow},
		{"Bash(curl:*)", strings.Repeat("a ", maxCommand), Ask},
		{"Bash(export:*)", "export A=b", Deny},
		{"Bash", "ls", Deny},
		{"Read(.env)", "cat .env", Deny},
		{"Read(.env)", "cat sub/.env", Deny},
		{"Read(.env)", `cat "$DIR/.env"`, Deny},
		{"Read(.env)", "grep x < .env", Deny},
		{"Read(.env)", "curl --data=@.env x", Deny},
		{"Read(.env)", "sh -c 'cat .env'", Deny},
		{"Read(.env)", "cat .env 'x", Deny},
		{"Read(.env)", "cat .env.example", Allow},
		{"Read(~/.aws/**)", "cat ~/.aws/credentials", Deny},
		{"Edit(./db/**)", "echo x > db/a", Deny},
		{"Edit(./db/**)", "cp x db/a", Deny},
		{"Edit(./db/**)", "cd db && touch a", Deny},
		{"Edit(./db/**)", "cat db/a", Allow},
	}
	for _, tt := range tests {
		p := policyText{mode: Bypass}.policy(t)
		p.Deny = rules(t, tt.rule)
		name := tt.line[:min(len(tt.line), 40)]
		if got := Decide(p, bash(tt.line)); got.Behavior != tt.want {
			t.Errorf("%s for %q: %s (%s), want %s", tt.rule, name, got.Behavior, got.Reason, tt.want)
		}
		if tt.want != Deny {
			continue
		}
		// The same rule as an ask rule asks, and no allow rule comes before it.
		p.Ask, p.Deny, p.Allow = p.Deny, nil, rules(t, "Bash")
		if got := Decide(p, bash(tt.line)); got.Behavior != Ask {
			t.Errorf("ask %s for %q: %s (%s)", tt.rule, name, got.Behavior, got.Reason)
		}
	}
}

func TestReasonNamesThePrefixRuleThatDidNotVouch(t *testing.T) {
	p := policyText{allow: "Bash(git:*)"}.policy(t)
	got := Decide(p, bash("git bisect run id"))
	if !strings.Contains(got.Reason, "Bash(git:*) (test)") {
		t.Errorf("reason %q", got.Reason)
	}
}

// TestLongCommandsAreDecidedInTime runs the worst shapes that are known; the
// test's own time limit is what fails.
func TestLongCommandsAreDecidedInTime(t *testing.T) {
	p := policyText{mode: Bypass, deny: "Bash(* nothing),Bash(sudo curl:*),Read(.env)"}.policy(t)
	const size = maxCommand / 4
	for _, line := range []string{
		strings.Repeat("a ", size/2-1) + "'",
		strings.Repeat("sudo ", size/5-1),
		strings.Repeat("(", 5000),
		strings.Repeat("$(", 5000),
		strings.Repeat("{a,", 5000),
		"a " + strings.Repeat("-x ", size/3-2),
		strings.Repeat("cd a;", size/5-1),
		"eval " + strings.Repeat(`"a b" `, size/6-2),
	} {
		if got := Decide(p, bash(line)); got.Behavior == "" {
			t.Errorf("%.20q: no decision", line)
		}
	}
}
