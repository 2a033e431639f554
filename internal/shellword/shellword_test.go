package shellword

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "/usr/bin/env": "/usr/bin/env", "a b": "'a b'", "it's": `'it'\''s'`, "A=b": "'A=b'", "~": "'~'", "Bash(git *)": "'Bash(git *)'",
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestAShellReadsBackWhatWasQuoted(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, text := range []string{"", "-n", "$HOME `id` \"q\"", "it's", "a\nb\\", "*?[a]{b,c}", "#no", "!1", "é|&;<>()", "%+,@:"} {
		out, err := exec.CommandContext(t.Context(), sh, "-c", "printf %s "+Quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q was read as %q, %v", text, out, err)
		}
	}
}
