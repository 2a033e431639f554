package proc

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutSecrets(t *testing.T) {
	env := []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=sk-ant-1234567", "COPY=sk-ant-1234567", "HEADER=x-api-key: sk-ant-1234567",
		"OPENAI_API_KEY=", "OPENAI_BASE_URL=http://localhost", "CADRE_SERVER_TOKEN=abc", "CADRE_HOME=/h", "ABC=abc",
		"HIDDEN=the-configured-key", "SHORT=short", "GITHUB_TOKEN=ghp_x", "GEMINI_API_KEY=AIza-x", "MY_API_KEY=mine", "ODD", "EMPTY=",
	}
	want := []string{"PATH=/bin", "OPENAI_BASE_URL=http://localhost", "CADRE_HOME=/h", "ABC=abc", "SHORT=short", "GITHUB_TOKEN=ghp_x", "GEMINI_API_KEY=AIza-x", "MY_API_KEY=mine", "ODD", "EMPTY="}
	if diff := cmp.Diff(want, WithoutSecrets(env, "the-configured-key", "short", "")); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile("../../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range secretNames {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/privacy.md does not say that commands do not get %s", name)
		}
	}
	if env[1] != "ANTHROPIC_API_KEY=sk-ant-1234567" {
		t.Error("the given environment was changed")
	}
}
