package permission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/tool"
)

// rules reads rules for a test's policy.
func rules(t testing.TB, texts ...string) []SourcedRule {
	t.Helper()
	var out []SourcedRule
	for _, text := range texts {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, SourcedRule{Rule: rule, Source: "test"})
	}
	return out
}

func read(paths ...string) Call {
	return Call{Spec: tool.Spec{Name: "Read", ReadOnly: true}, Access: tool.Access{Read: paths}}
}

func grep(path string) Call {
	return Call{Spec: tool.Spec{Name: "Grep", ReadOnly: true}, Access: tool.Access{Read: []string{path}}}
}

func write(path string) Call {
	return Call{Spec: tool.Spec{Name: "Write"}, Access: tool.Access{Write: []string{path}}}
}

func edit(path string) Call {
	return Call{Spec: tool.Spec{Name: "Edit"}, Access: tool.Access{Read: []string{path}, Write: []string{path}}}
}

func bash(line string) Call {
	return Call{Spec: tool.Spec{Name: "Bash"}, Access: tool.Access{Command: line}}
}

// check is a call of TaskUpdate that runs the check of a task.
func check(line string) Call {
	return Call{Spec: tool.Spec{Name: "TaskUpdate", Delegates: true}, Access: tool.Access{Command: line, As: "Bash"}}
}

// internal is a call of one of the tools for teams and tasks.
func internal(name string) Call { return Call{Spec: tool.Spec{Name: name, Delegates: true}} }

// outward is a call of a tool that reaches beyond this machine.
func outward(name string) Call { return Call{Spec: tool.Spec{Name: name, Outward: true}} }

func question() Call {
	return Call{Spec: tool.Spec{Name: "AskUserQuestion", ReadOnly: true}, Access: tool.Access{Ask: true}}
}

func exitPlan() Call {
	return Call{Spec: tool.Spec{Name: "ExitPlanMode"}, Access: tool.Access{Ask: true, Plan: true}}
}

func agent(kind string) Call {
	return Call{Spec: tool.Spec{Name: "Agent", Aliases: []string{"Task"}}, Input: json.RawMessage(`{"subagent_type":"` + kind + `"}`)}
}

// policyText is a policy in a table: rules as one list each.
type policyText struct {
	mode             Mode
	allow, ask, deny string
	planFile         string
}

func (pt policyText) policy(t testing.TB) Policy {
	t.Helper()
	list := func(text string) []SourcedRule {
		var out []SourcedRule
		parsed, err := ParseRules(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range parsed {
			out = append(out, SourcedRule{Rule: rule, Source: "test", Base: "/srv/repo/sub"})
		}
		return out
	}
	mode := pt.mode
	if mode == "" {
		mode = Default
	}
	return Policy{
		Mode: mode, Allow: list(pt.allow), Ask: list(pt.ask), Deny: list(pt.deny),
		Folders: []string{"/srv/repo", "/srv/extra"}, Readable: []string{"/home/u/.cadre/projects/p/s"},
		StateRoots: []string{"/home/u/.cadre", "/home/u/.claude"}, Home: "/home/u", PlanFile: pt.planFile,
	}
}

func TestDecide(t *testing.T) {
	tests := []struct {
		name string
		p    policyText
		c    Call
		want Behavior
	}{
		// Reading.
		{"read inside", policyText{}, read("/srv/repo/a.go"), Allow},
		{"read the folder itself", policyText{}, grep("/srv/repo"), Allow},
		{"read in an added folder", policyText{}, read("/srv/extra/x"), Allow},
		{"read outside", policyText{}, read("/etc/passwd"), Ask},
		{"a longer name is not inside", policyText{}, read("/srv/repo-evil/x"), Ask},
		{"read kept output", policyText{}, read("/home/u/.cadre/projects/p/s/jobs/1.output"), Allow},
		{"read inside and outside", policyText{}, read("/srv/repo/a", "/etc/passwd"), Ask},
		{"read outside by rule", policyText{allow: "Read(//etc/**)"}, read("/etc/passwd"), Allow},
		{"a rule for one of two paths", policyText{allow: "Read(//etc/**)"}, read("/etc/passwd", "/var/x"), Ask},
		{"a bare rule allows everywhere", policyText{allow: "Read"}, read("/var/x"), Allow},
		{"an edit rule allows reading", policyText{allow: "Edit(//var/x)"}, read("/var/x"), Allow},

		// Deny of reading.
		{"deny a bare name", policyText{deny: "Read(.env)"}, read("/srv/repo/deep/.env"), Deny},
		{"deny a bare name outside", policyText{deny: "Read(.env)"}, read("/var/.env"), Deny},
		{"deny in another case", policyText{deny: "Read(.env)"}, read("/srv/repo/.ENV"), Deny},
		{"deny does not touch longer names", policyText{deny: "Read(.env)"}, read("/srv/repo/.envx"), Allow},
		{"deny below here", policyText{deny: "Read(./secrets/**)"}, read("/srv/repo/secrets/a/b"), Deny},
		{"deny a folder", policyText{deny: "Read(secrets/)"}, read("/srv/repo/x/secrets/a"), Deny},
		{"deny a folder's content", policyText{deny: "Read(./secrets/*)"}, read("/srv/repo/secrets/a/b"), Deny},
		{"deny from home", policyText{deny: "Read(~/.aws/**)"}, read("/home/u/.aws/credentials"), Deny},
		{"deny absolute", policyText{deny: "Read(//srv/repo/x)"}, read("/srv/repo/x"), Deny},
		{"deny from the rule's base", policyText{deny: "Read(/x)"}, read("/srv/repo/sub/x"), Deny},
		{"base is not the working folder", policyText{deny: "Read(/x)"}, read("/srv/repo/x"), Allow},
		{"deny a parent's sibling", policyText{deny: "Read(../other/**)"}, read("/srv/other/x"), Deny},
		{"deny reading closes searching it", policyText{deny: "Read(./secrets/**)"}, grep("/srv/repo/secrets"), Deny},
		{"searching above is decided by the tool", policyText{deny: "Read(./secrets/**)"}, grep("/srv/repo"), Allow},
		{"deny reading closes editing", policyText{mode: Bypass, deny: "Read(.env)"}, edit("/srv/repo/.env"), Deny},
		{"deny in bypass", policyText{mode: Bypass, deny: "Read"}, read("/srv/repo/x"), Deny},
		{"deny over allow", policyText{allow: "Read", deny: "Read(.env)"}, read("/srv/repo/.env"), Deny},

		// Writing.
		{"write asks", policyText{}, write("/srv/repo/a"), Ask},
		{"write in acceptEdits", policyText{mode: AcceptEdits}, write("/srv/repo/a"), Allow},
		{"edit in acceptEdits", policyText{mode: AcceptEdits}, edit("/srv/extra/a"), Allow},
		{"write outside in acceptEdits", policyText{mode: AcceptEdits}, write("/var/a"), Ask},
		{"write beside in acceptEdits", policyText{mode: AcceptEdits}, write("/srv/repository/a"), Ask},
		{"write in bypass", policyText{mode: Bypass}, write("/var/a"), Allow},
		{"write by a path rule", policyText{allow: "Edit(./src/**)"}, write("/srv/repo/src/a"), Allow},
		{"the path rule of another file tool", policyText{allow: "Write(./src/**)"}, edit("/srv/repo/src/a"), Allow},
		{"outside the path rule", policyText{allow: "Edit(./src/**)"}, write("/srv/repo/a"), Ask},
		{"an allow rule minds the case", policyText{allow: "Edit(./src/**)"}, write("/srv/repo/SRC/a"), Ask},
		{"an allowed bare name counts below the working folder", policyText{allow: "Edit(*.md)"}, write("/var/a.md"), Ask},
		{"a read rule does not allow writing", policyText{allow: "Read(./**)"}, write("/srv/repo/a"), Ask},
		{"a bare rule is for its own tool", policyText{allow: "Edit"}, write("/srv/repo/a"), Ask},
		{"deny writing a path", policyText{mode: Bypass, deny: "Write(*.lock)"}, edit("/srv/repo/go.lock"), Deny},
		{"ask rule in bypass", policyText{mode: Bypass, ask: "Write"}, write("/srv/repo/a"), Ask},
		{"ask over allow", policyText{allow: "Write", ask: "Edit(./db/**)"}, write("/srv/repo/db/x"), Ask},
		{"write in dontAsk", policyText{mode: DontAsk}, write("/srv/repo/a"), Deny},
		{"allowed write in dontAsk", policyText{mode: DontAsk, allow: "Write"}, write("/srv/repo/a"), Allow},

		// Protected paths.
		{"settings in acceptEdits", policyText{mode: AcceptEdits}, write("/srv/repo/.claude/settings.json"), Ask},
		{"our settings", policyText{mode: AcceptEdits}, write("/srv/repo/.cadre/settings.local.json"), Ask},
		{"agents of the project", policyText{mode: AcceptEdits}, write("/srv/repo/.claude/agents/x.md"), Ask},
		{"git hooks", policyText{mode: AcceptEdits}, write("/srv/repo/sub/.git/hooks/pre-commit"), Ask},
		{"git config in another case", policyText{mode: AcceptEdits}, write("/srv/repo/.GIT/config"), Ask},
		{"the file that points to a worktree", policyText{mode: AcceptEdits}, write("/srv/repo/.git"), Ask},
		{"MCP servers", policyText{mode: AcceptEdits}, edit("/srv/repo/.mcp.json"), Ask},
		{"editor tasks", policyText{mode: AcceptEdits}, edit("/srv/repo/.vscode/tasks.json"), Ask},
		{"other files of the editor", policyText{mode: AcceptEdits}, edit("/srv/repo/.vscode/words.txt"), Allow},
		{"direnv", policyText{mode: AcceptEdits}, edit("/srv/repo/.envrc"), Ask},
		{"husky", policyText{mode: AcceptEdits}, edit("/srv/repo/.husky/pre-push"), Ask},
		{"gitignore is not protected", policyText{mode: AcceptEdits}, edit("/srv/repo/.gitignore"), Allow},
		{"protected over allow", policyText{allow: "Edit"}, edit("/srv/repo/.mcp.json"), Ask},
		{"protected in dontAsk", policyText{mode: DontAsk, allow: "Edit"}, edit("/srv/repo/.mcp.json"), Deny},
		{"protected in bypass", policyText{mode: Bypass}, write("/srv/repo/.claude/settings.json"), Allow},
		{"shell start-up", policyText{allow: "Write"}, write("/home/u/.bashrc"), Ask},
		{"our state", policyText{allow: "Write"}, write("/home/u/.cadre/projects/p/s.jsonl"), Ask},
		{"reading settings", policyText{}, read("/srv/repo/.claude/settings.json"), Allow},

		// State of teams.
		{"inbox", policyText{allow: "Write"}, write("/home/u/.cadre/teams/a/inboxes/b.json"), Deny},
		{"inbox in bypass", policyText{mode: Bypass}, write("/home/u/.claude/teams/a/inboxes/b.json"), Deny},
		{"tasks in bypass", policyText{mode: Bypass}, edit("/home/u/.cadre/tasks/a/1.json"), Deny},
		{"reading a roster asks", policyText{}, read("/home/u/.cadre/teams/a/config.json"), Ask},

		// Plan mode.
		{"plan reads", policyText{mode: Plan}, read("/srv/repo/a"), Allow},
		{"plan does not write", policyText{mode: Plan, allow: "Write"}, write("/srv/repo/a"), Deny},
		{"plan writes its file", policyText{mode: Plan, planFile: "/home/u/.cadre/plans/p.md"}, write("/home/u/.cadre/plans/p.md"), Allow},
		{"plan edits its file", policyText{mode: Plan, planFile: "/home/u/.cadre/plans/p.md"}, edit("/home/u/.cadre/plans/p.md"), Allow},
		{"plan writes no other plan", policyText{mode: Plan, planFile: "/home/u/.cadre/plans/p.md"}, write("/home/u/.cadre/plans/q.md"), Deny},
		{"deny over the plan file", policyText{mode: Plan, planFile: "/home/u/.cadre/plans/p.md", deny: "Write"}, write("/home/u/.cadre/plans/p.md"), Deny},
		{"plan runs nothing", policyText{mode: Plan, allow: "Bash"}, bash("ls"), Deny},
		{"plan talks", policyText{mode: Plan}, internal("SendMessage"), Allow},
		{"plan asks outside", policyText{mode: Plan}, read("/etc/passwd"), Ask},
		{"plan calls no server that may change things", policyText{mode: Plan, allow: "mcp__db"}, outward("mcp__db__drop"), Deny},

		{"plan reads with a search", policyText{mode: Plan}, grep("/srv/repo"), Allow},
		{"plan keeps tasks", policyText{mode: Plan}, internal("TaskUpdate"), Allow},
		{"plan starts agents", policyText{mode: Plan}, agent("Explore"), Allow},
		{"plan may be ended by a question", policyText{mode: Plan}, exitPlan(), Ask},
		{"no rule lifts the question about the plan", policyText{mode: Plan, allow: "ExitPlanMode"}, exitPlan(), Ask},
		{"plan runs nothing, not to its file either", policyText{mode: Plan, allow: "Bash", planFile: "/home/u/.cadre/plans/p.md"}, bash("echo x > /home/u/.cadre/plans/p.md"), Deny},
		{"plan redirects nothing", policyText{mode: Plan, allow: "Bash(echo:*)"}, bash("echo x > /srv/repo/a"), Deny},
		{"plan runs no check", policyText{mode: Plan, allow: "Bash"}, check("go test ./..."), Deny},

		// A call that does what another tool does.
		{"a check asks like a command", policyText{}, check("go test ./..."), Ask},
		{"a rule for the command allows the check", policyText{allow: "Bash(go test:*)"}, check("go test ./..."), Allow},
		{"another command than the rule's", policyText{allow: "Bash(go test:*)"}, check("go run ."), Ask},
		{"the tool that was called opens nothing", policyText{allow: "TaskUpdate"}, check("go test ./..."), Ask},
		{"a deny for the command", policyText{mode: Bypass, deny: "Bash(rm:*)"}, check("go test && rm -r x"), Deny},
		{"a deny for all commands", policyText{mode: Bypass, deny: "Bash"}, check("true"), Deny},
		{"a deny for the tool that was called", policyText{mode: Bypass, deny: "TaskUpdate"}, check("true"), Deny},
		{"an ask for the tool that was called", policyText{allow: "Bash", ask: "TaskUpdate"}, check("true"), Ask},
		{"a check in dontAsk", policyText{mode: DontAsk}, check("true"), Deny},
		{"a check in bypass", policyText{mode: Bypass}, check("go test ./..."), Allow},
		{"a check that writes a protected file", policyText{allow: "Bash"}, check("echo x > /srv/repo/.git/config"), Ask},
		{"a check that writes the state of teams", policyText{mode: Bypass}, check("rm /home/u/.cadre/tasks/a/1.json"), Deny},
		{"delegate runs no check", policyText{mode: Delegate, allow: "Bash"}, check("true"), Deny},

		// Delegate mode.
		{"delegate talks", policyText{mode: Delegate}, internal("SendMessage"), Allow},
		{"delegate reads nothing", policyText{mode: Delegate, allow: "Read"}, read("/srv/repo/a"), Deny},
		{"delegate may ask", policyText{mode: Delegate}, question(), Ask},

		// Tools inside the program, questions, servers, agents.
		{"internal tools", policyText{}, internal("TaskCreate"), Allow},
		{"internal tool denied", policyText{mode: Bypass, deny: "TaskCreate"}, internal("TaskCreate"), Deny},
		{"internal tool asked", policyText{ask: "SendMessage"}, internal("SendMessage"), Ask},
		{"question", policyText{}, question(), Ask},
		{"question in bypass", policyText{mode: Bypass}, question(), Ask},
		{"question allowed by rule is still asked", policyText{allow: "AskUserQuestion"}, question(), Ask},
		{"question denied", policyText{deny: "AskUserQuestion"}, question(), Deny},
		{"question in dontAsk", policyText{mode: DontAsk}, question(), Deny},
		{"server", policyText{}, outward("mcp__db__query"), Ask},
		{"server in bypass", policyText{mode: Bypass}, outward("mcp__db__query"), Allow},
		{"server by its name", policyText{allow: "mcp__db"}, outward("mcp__db__query"), Allow},
		{"server by a star", policyText{allow: "mcp__db__*"}, outward("mcp__db__query"), Allow},
		{"server with a longer name", policyText{allow: "mcp__db"}, outward("mcp__dbx__query"), Ask},
		{"one tool of a server", policyText{allow: "mcp__db__query"}, outward("mcp__db__drop"), Ask},
		{"the web", policyText{}, outward("WebFetch"), Ask},
		{"agent", policyText{}, agent("Explore"), Allow},
		{"agent type denied", policyText{deny: "Agent(Explore)"}, agent("Explore"), Deny},
		{"agent denied by its old name", policyText{deny: "Task(Explore)"}, agent("Explore"), Deny},
		{"another agent type", policyText{deny: "Agent(Explore)"}, agent("general-purpose"), Allow},
		{"tool names without regard to case", policyText{deny: "bash"}, bash("ls"), Deny},
		{"a content that cannot be compared", policyText{deny: "TaskCreate(big)"}, internal("TaskCreate"), Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Decide(tt.p.policy(t), tt.c)
			if got.Behavior != tt.want {
				t.Errorf("%s: %s (rule %q), want %s", got.Behavior, got.Reason, got.Rule, tt.want)
			}
			if !strings.HasSuffix(got.Reason, ".") || strings.Contains(got.Reason, "\n") {
				t.Errorf("reason %q is no sentence", got.Reason)
			}
		})
	}
}

func TestWorkInsideACheckoutUnderTheStateRoot(t *testing.T) {
	p := Policy{Mode: AcceptEdits, Folders: []string{"/home/u/.claude/worktrees/w"}, StateRoots: []string{"/home/u/.claude"}}
	for path, want := range map[string]Behavior{
		"/home/u/.claude/worktrees/w/main.go":               Allow,
		"/home/u/.claude/worktrees/w/.claude/settings.json": Ask,
		"/home/u/.claude/settings.json":                     Ask,
	} {
		if got := Decide(p, write(path)); got.Behavior != want {
			t.Errorf("%s: %s, want %s (%s)", path, got.Behavior, want, got.Reason)
		}
	}
	// Someone who works in the settings folder itself is asked all the same.
	p.Folders = []string{"/srv/repo/.claude"}
	if got := Decide(p, write("/srv/repo/.claude/settings.json")); got.Behavior != Ask {
		t.Errorf("settings below a working folder .claude: %s", got.Behavior)
	}
}

func TestRemediesAndSuggestions(t *testing.T) {
	tests := []struct {
		name   string
		c      Call
		remedy string
		want   []ask.Suggestion
	}{
		{"edit inside", edit("/srv/repo/a"), "--permission-mode acceptEdits",
			[]ask.Suggestion{{Type: "setMode", Mode: "acceptEdits", Destination: "session"}}},
		{"read outside", read("/etc/passwd"), "--add-dir /etc",
			[]ask.Suggestion{{Type: "addRules", Behavior: "allow", Destination: "session",
				Rules: []ask.Rule{{ToolName: "Read", RuleContent: "//etc/**"}}}}},
		{"write outside", write("/var/my dir/a"), "--add-dir '/var/my dir' --permission-mode acceptEdits",
			[]ask.Suggestion{
				{Type: "addDirectories", Directories: []string{"/var/my dir"}, Destination: "session"},
				{Type: "setMode", Mode: "acceptEdits", Destination: "session"},
			}},
		{"command", bash("git commit -m 'a b'"), `--allowedTools 'Bash(git commit -m '\''a b'\'')'`,
			[]ask.Suggestion{{Type: "addRules", Behavior: "allow", Destination: "localSettings",
				Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "git commit -m 'a b'"}}}}},
		{"check", check("go test ./..."), "--allowedTools 'Bash(go test ./...)'",
			[]ask.Suggestion{{Type: "addRules", Behavior: "allow", Destination: "localSettings",
				Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "go test ./..."}}}}},
		{"compound command", bash("cd x && make"), "--allowedTools Bash", nil},
		{"server", outward("mcp__db__query"), "--allowedTools mcp__db__query",
			[]ask.Suggestion{{Type: "addRules", Behavior: "allow", Destination: "localSettings",
				Rules: []ask.Rule{{ToolName: "mcp__db__query"}}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policyText{}.policy(t)
			got := Decide(p, tt.c)
			if got.Behavior != Ask || got.Remedy != tt.remedy {
				t.Errorf("%s, remedy %q, want %q", got.Behavior, got.Remedy, tt.remedy)
			}
			if diff := cmp.Diff(tt.want, got.Suggestions); diff != "" {
				t.Errorf("suggestions (-want +got):\n%s", diff)
			}
			if len(got.Suggestions) == 0 {
				return
			}
			// What is suggested makes the same question unnecessary.
			if again := Decide(p.With(got.Suggestions), tt.c); again.Behavior != Allow {
				t.Errorf("after the suggestion: %s (%s)", again.Behavior, again.Reason)
			}
		})
	}
}

func TestSuggestedFolderPatternIsLiteral(t *testing.T) {
	p := policyText{}.policy(t)
	p = p.With(Decide(p, read("/data/[a]*/x")).Suggestions)
	if got := Decide(p, read("/data/[a]*/y")); got.Behavior != Allow {
		t.Errorf("the folder itself: %s", got.Behavior)
	}
	if got := Decide(p, read("/data/aa/y")); got.Behavior != Ask {
		t.Errorf("a folder that the name would match as a pattern: %s", got.Behavior)
	}
}

func TestWith(t *testing.T) {
	p := policyText{allow: "Read"}.policy(t)
	before := len(p.Folders)
	q := p.With([]ask.Suggestion{
		{Type: "addRules", Behavior: "deny", Destination: "session", Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "rm:*"}, {}}},
		{Type: "addRules", Behavior: "allow", Destination: "session", Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "*"}}},
		{Type: "addDirectories", Directories: []string{"../more", "/srv/repo", ""}},
		{Type: "setMode", Mode: "bypassPermissions"},
		{Type: "setMode", Mode: "nonsense"},
		{Type: "somethingNew"},
	})
	if q.Mode != Default {
		t.Errorf("mode %s: an update must never switch to bypass", q.Mode)
	}
	if len(p.Folders) != before || len(p.Deny) != 0 || len(p.Allow) != 1 {
		t.Error("With changed the policy that it was called on")
	}
	if diff := cmp.Diff([]string{"/srv/repo", "/srv/extra", "/srv/more"}, q.Folders); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	if got := Decide(q, bash("echo a; rm -rf x")); got.Behavior != Deny {
		t.Errorf("an approval overrode a deny: %+v", got)
	}
	if got := Decide(q, bash("echo a; ls b")); got.Behavior != Allow {
		t.Errorf("the rule for every command does not hold: %+v", got)
	}
	if q := p.With([]ask.Suggestion{{Type: "setMode", Mode: "plan"}}); q.Mode != Plan {
		t.Errorf("mode %s, want plan", q.Mode)
	}
}

func TestReadDenied(t *testing.T) {
	p := policyText{deny: "Read(.env),Edit(*.lock)"}.policy(t)
	if rule, denied := p.ReadDenied("/srv/repo/a/.env"); !denied || rule != "Read(.env)" {
		t.Errorf("%q %v", rule, denied)
	}
	for _, path := range []string{"/srv/repo/a.go", "/srv/repo/go.lock"} {
		if rule, denied := p.ReadDenied(path); denied {
			t.Errorf("%s is denied by %s", path, rule)
		}
	}
}

func TestParseRule(t *testing.T) {
	good := map[string]Rule{
		"Read":                       {"Read", ""},
		" Bash ( git status:* ) ":    {"Bash", " git status:* "},
		"Bash(*)":                    {"Bash", ""},
		"Bash(echo (a))":             {"Bash", "echo (a)"},
		"mcp__a-b__*":                {"mcp__a-b__*", ""},
		"WebFetch(domain:a.example)": {"WebFetch", "domain:a.example"},
	}
	for text, want := range good {
		got, err := ParseRule(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "(x)", "Bash(", "Bash(x", "Bash()", "Bash( )", "Ba sh(x)", "Bash(x)y", "Bäsh"} {
		if got, err := ParseRule(text); err == nil {
			t.Errorf("%q: read as %+v", text, got)
		}
	}
}

func TestParseRules(t *testing.T) {
	got, err := ParseRules("Read, Bash(git log, git x:*) Edit(./a b/**),,Bash(")
	want := []Rule{{"Read", ""}, {"Bash", "git log, git x:*"}, {"Edit", "./a b/**"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "Bash(") {
		t.Errorf("the broken rule is not reported: %v", err)
	}
}

func TestParseMode(t *testing.T) {
	for name, want := range map[string]Mode{"": Default, "manual": Default, "plan": Plan, "dontAsk": DontAsk} {
		if got, err := ParseMode(name); err != nil || got != want {
			t.Errorf("%q: %s %v", name, got, err)
		}
	}
	if _, err := ParseMode("yolo"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

func TestWithTakesAwayWhereTheUpdateSays(t *testing.T) {
	p := Policy{
		Folders: []string{"/srv/repo", "/srv/extra", "/srv/more"},
		Allow: []SourcedRule{
			{Rule: Rule{"Read", ""}, Source: "user settings", Base: ""}, {Rule: Rule{"Bash", "make"}, Source: "local settings", Base: "/srv/repo"},
			{Rule: Rule{"Bash", "ls"}, Source: "local settings", Base: "/srv/repo"}, {Rule: Rule{"Bash", "make"}, Source: "--allowedTools", Base: ""},
		},
		Deny: []SourcedRule{{Rule: Rule{"Edit", ""}, Source: "project settings", Base: "/srv/repo"}},
	}
	texts := func(rules []SourcedRule) (out []string) {
		for _, r := range rules {
			out = append(out, r.from())
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		update ask.Suggestion
		want   []string
	}{
		{"a rule of one file", ask.Suggestion{Type: "removeRules", Behavior: "allow", Destination: "localSettings",
			Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "make"}, {ToolName: "Read"}}},
			[]string{"Read (user settings)", "Bash(ls) (local settings)", "Bash(make) (--allowedTools)"}},
		{"a flag's rule", ask.Suggestion{Type: "removeRules", Behavior: "allow", Destination: "cliArg", Rules: []ask.Rule{{ToolName: "Bash", RuleContent: "make"}}},
			[]string{"Read (user settings)", "Bash(make) (local settings)", "Bash(ls) (local settings)"}},
		{"every call of a tool", ask.Suggestion{Type: "removeRules", Behavior: "allow", Destination: "userSettings", Rules: []ask.Rule{{ToolName: "Read", RuleContent: "*"}}},
			[]string{"Bash(make) (local settings)", "Bash(ls) (local settings)", "Bash(make) (--allowedTools)"}},
		{"all of one file", ask.Suggestion{Type: "replaceRules", Behavior: "allow", Destination: "localSettings", Rules: []ask.Rule{{ToolName: "Grep"}}},
			[]string{"Read (user settings)", "Bash(make) (--allowedTools)", "Grep (local settings)"}},
	} {
		q := p.With([]ask.Suggestion{tt.update})
		if diff := cmp.Diff(tt.want, texts(q.Allow)); diff != "" || len(q.Deny) != 1 || len(p.Allow) != 4 {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	q := p.With([]ask.Suggestion{{Type: "removeDirectories", Directories: []string{"/srv/repo", "../more", "/srv/none"}}})
	if diff := cmp.Diff([]string{"/srv/repo", "/srv/extra"}, q.Folders); diff != "" || len(p.Folders) != 3 {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	// A rule that was added goes as one that stood in the file.
	added := ask.Suggestion{Type: "addRules", Behavior: "deny", Destination: "projectSettings", Rules: []ask.Rule{{ToolName: "Write"}}}
	gone := added
	gone.Type = "removeRules"
	if q := p.With([]ask.Suggestion{added, gone}); len(q.Deny) != 1 {
		t.Errorf("denied: %v", texts(q.Deny))
	}
}
