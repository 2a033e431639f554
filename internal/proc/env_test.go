package proc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutSecrets(t *testing.T) {
	env := []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=sk-ant-1234567", "COPY=sk-ant-1234567", "HEADER=x-api-key: sk-ant-1234567",
		"OPENAI_API_KEY=", "OPENAI_BASE_URL=http://localhost", "CADRE_SERVER_TOKEN=abc", "CADRE_HOME=/h", "ABC=abc",
		"HIDDEN=the-configured-key", "SHORT=short", "GITHUB_TOKEN=ghp_x", "ODD", "EMPTY=",
	}
	want := []string{"PATH=/bin", "OPENAI_BASE_URL=http://localhost", "CADRE_HOME=/h", "ABC=abc", "SHORT=short", "GITHUB_TOKEN=ghp_x", "ODD", "EMPTY="}
	if diff := cmp.Diff(want, WithoutSecrets(env, "the-configured-key", "short", "")); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if env[1] != "ANTHROPIC_API_KEY=sk-ant-1234567" {
		t.Error("the given environment was changed")
	}
}
