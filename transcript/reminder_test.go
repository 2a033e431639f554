package transcript

import "testing"

func TestWithoutReminders(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "go": "go",
		"<system-reminder>\nplan\n</system-reminder>\nfix it":                                              "fix it",
		"<system-reminder>a</system-reminder>":                                                             "",
		"one\n\n  <system-reminder>\na\n</system-reminder>\ntwo\n<system-reminder>\nb\n</system-reminder>": "one\n\n  \ntwo",
		"what does <system-reminder> mean? </system-reminder>":                                             "what does <system-reminder> mean? </system-reminder>",
		"<system-reminder> never ends":                                                                     "<system-reminder> never ends",
	} {
		if got := WithoutReminders(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
