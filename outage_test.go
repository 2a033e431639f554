package cadre_test

import (
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/session"
)

// TestHowLongAnOutageIsWaitedFor: as the settings say, else for as long as a
// person is in front, who can end it at once, or for minutes when nobody is.
func TestHowLongAnOutageIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		interactive bool
		settings    string
		least, most time.Duration // of what is left at the first failure
		again       bool
	}{
		"alone":             {false, ``, 9 * time.Minute, 10 * time.Minute, true},
		"alone, an hour":    {false, `{"modelRetryMs": 3600000}`, 59 * time.Minute, time.Hour, true},
		"alone, never":      {false, `{"modelRetryMs": 0}`, 0, 0, false},
		"a person":          {true, ``, 0, 0, true}, // without end
		"a person, an hour": {true, `{"modelRetryMs": 3600000}`, 59 * time.Minute, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil, func(cfg *cadre.Config) {
				cfg.Provider, cfg.Model, cfg.Interactive, cfg.Settings = nil, "sonnet", c.interactive, c.settings
				home := cfg.Getenv("HOME")
				cfg.Getenv = func(name string) string {
					return map[string]string{"HOME": home, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}[name]
				}
			})
			if err := w.Session().Prompt(t.Context(), "hi"); err != nil {
				t.Fatal(err)
			}
			again := false
			for ev := range w.Session().Events(t.Context(), 0) {
				switch body := ev.Body.(type) {
				case event.Retrying:
					if again {
						continue
					}
					again = true
					if body.Left < c.least || body.Left > c.most {
						t.Errorf("attempts go on for %s, want %s to %s", body.Left, c.least, c.most)
					}
					if err := w.Session().Interrupt(t.Context(), session.ErrInterrupt); err != nil {
						t.Error(err)
					}
					continue
				case event.TurnEnded:
					if interrupted := body.Outcome.Reason == event.Interrupted; interrupted != c.again {
						t.Errorf("the turn ended with %q: %s", body.Outcome.Reason, body.Outcome.Err)
					}
				default:
					continue
				}
				break
			}
			if again != c.again {
				t.Errorf("asked again = %v, want %v", again, c.again)
			}
		})
	}
}
