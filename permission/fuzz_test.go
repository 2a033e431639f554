package permission

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/tool"
)

// shellActs reports whether a shell might do more with line than run one
// program with the words that it reads. It is a second, cruder reading than the
// engine's: quoted text is skipped, and no special character may be left.
func shellActs(line string) bool {
	var quote byte
	for i := range len(line) {
		switch c := line[i]; {
		case c < ' ' && c != '\t', c == 0x7f:
			return true
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case quote == '"':
			if c == '"' {
				quote = 0
			} else if strings.IndexByte("$`\\", c) >= 0 {
				return true
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("$`\\;|&<>(){}[]*?#!", c) >= 0:
			return true
		}
	}
	return quote != 0
}

func FuzzDecideCommand(f *testing.F) {
	for _, l := range readCorpus(f) {
		f.Add(l.Cmd, "git:*", "curl:*", byte(0))
		f.Add(l.Cmd, l.Cmd, ".env", byte(3))
	}
	modes := []Mode{Default, AcceptEdits, Plan, Bypass, DontAsk, Delegate}
	f.Fuzz(func(t *testing.T, line, allow, deny string, mode byte) {
		p := Policy{
			Mode: modes[int(mode)%len(modes)], Folders: []string{"/srv/repo"}, Home: "/home/u", StateRoots: []string{"/home/u/.cadre"},
			Allow: []SourcedRule{{Rule: Rule{"Bash", allow}}},
			Deny:  []SourcedRule{{Rule: Rule{"Bash", deny}}, {Rule: Rule{"Read", deny}}},
		}
		if allow == "" || deny == "" { // rules for every command, which are another thing
			return
		}
		d := Decide(p, Call{Spec: tool.Spec{Name: "Bash"}, Access: tool.Access{Command: line}})
		if d.Behavior != Allow || p.Mode == Bypass {
			return
		}
		if line == "" { // no command at all touches nothing
			return
		}
		if d.Rule == "" {
			t.Errorf("%q allowed without a rule: %s", line, d.Reason)
		}
		if shellActs(line) {
			t.Errorf("%q allowed by %q", line, allow)
		}
		literal, _ := cutPrefixMark(allow)
		want, _ := simpleCommand(literal)
		words, ok := simpleCommand(line)
		if !ok || len(want) == 0 || len(words) < len(want) || !slices.Equal(want, words[:len(want)]) {
			t.Errorf("%q allowed by %q, which does not begin it", line, allow)
		}
	})
}

func FuzzPathRules(f *testing.F) {
	f.Add("./a/**", "/srv/repo/a/b")
	f.Add("../x[", "/srv/x")
	f.Add("~/{a,b}", "/home/u/a")
	f.Add("//", "/")
	f.Fuzz(func(t *testing.T, pattern, file string) {
		if pattern == "" || !filepath.IsAbs(file) {
			return
		}
		file = filepath.Clean(file)
		rule := []SourcedRule{{Rule: Rule{"Read", pattern}}}
		base := Policy{Mode: Default, Folders: []string{"/srv/repo"}, Home: "/home/u"}
		opens, closes := base, base
		opens.Allow, closes.Deny = rule, rule
		call := Call{Spec: tool.Spec{Name: "Read", ReadOnly: true}, Access: tool.Access{Read: []string{file}}}
		opened := Decide(opens, call)
		if opened.Behavior == Allow && opened.Rule != "" && Decide(closes, call).Behavior != Deny {
			t.Errorf("%q opens %q as an allow rule but does not close it as a deny rule", pattern, file)
		}
	})
}

// TestAllowedCommandsAreWhatBashRuns compares with a real bash: of random
// command lines that a rule allows, bash must run exactly the one program, with
// exactly the words that the engine saw.
func TestAllowedCommandsAreWhatBashRuns(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	dir := t.TempDir()
	probe := "#!" + shell + "\nprintf 'run\\0'\nprintf '%s\\0' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "probe"), []byte(probe), 0o700); err != nil {
		t.Fatal(err)
	}
	p := Policy{Mode: Default, Folders: []string{"/srv/repo"}, Allow: rules(t, "Bash(probe:*)")}
	pieces := rapid.SampledFrom([]string{
		"a", "b", " ", "  ", "\t", "'", `"`, `\`, "$", "`", "#", "\n", "\r", ";", "&", "|", "(", ")", "{", "}", "{a,b}", "<", ">", "*", "?", "[a]",
		"~", "~/", "=", ":", "!", "^", "%", "@", "+", "-", "--", "x=1", "$x", "$(", "${x}", "''", `""`, `' '`, `" "`, "é", "\u00a0", "\u202e", "\x00", "1", "2>", "probe",
	})
	rapid.Check(t, func(t *rapid.T) {
		line := "probe" + strings.Join(rapid.SliceOfN(pieces, 0, 9).Draw(t, "pieces"), "")
		if Decide(p, bash(line)).Behavior != Allow {
			return
		}
		words, _ := simpleCommand(line)
		cmd := exec.Command(shell, "-c", line)
		cmd.Env, cmd.Dir = []string{"PATH=" + dir}, dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := strings.Join(append([]string{"run"}, words[1:]...), "\x00") + "\x00"
		if len(words) == 1 {
			want += "\x00" // printf without arguments prints its format once
		}
		if string(out) != want {
			t.Errorf("%q: bash ran %q, the engine saw %q", line, out, want)
		}
	})
}
