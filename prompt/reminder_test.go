package prompt

import "testing"

func TestReminder(t *testing.T) {
	note := Reminder("You are back.")
	if note != "<system-reminder>\nYou are back.\n</system-reminder>" {
		t.Errorf("the reminder is %q", note)
	}
	for text, want := range map[string]string{
		note: "You are back.", note + "\n\nGo on.": note + "\n\nGo on.", "Go on.": "Go on.", "": "", "<system-reminder>\n</system-reminder>": "<system-reminder>\n</system-reminder>",
	} {
		if got := Unremind(text); got != want {
			t.Errorf("Unremind(%q) = %q", text, got)
		}
	}
	if !IsReminder("\n"+note+"\n\nGo on.") || IsReminder("Go on. "+note) {
		t.Error("a text is a reminder when it begins as one")
	}
}
