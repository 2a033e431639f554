package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tui"
)

// status is how a check came out.
type status string

const (
	good status = "ok"
	mild status = "warning" // something works less well
	bad  status = "problem" // something does not work
)

// finding is the outcome of one check.
type finding struct {
	Name   string `json:"name"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// diagnosis is the output of doctor. It contains no secret.
type diagnosis struct {
	OK       bool          `json:"ok"`
	Checks   []finding     `json:"checks"`
	Settings []settingView `json:"settings"`
	Sessions []sessionView `json:"openSessions"`
}

// examination is what the checks examine.
type examination struct {
	root     layout.Root
	home     string
	cwd      string
	getenv   func(string) string // the environment with what settings add to it
	settings config.Effective
	warnings []config.Warning
	offline  bool
}

func newDoctorCommand() *cobra.Command {
	var asJSON, offline bool
	var settings string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check keys, network, programs, state and settings", Args: noArgs,
		Long: "doctor checks what cadre needs: a key and a connection to the model (one short request without the key),\ngit, rg and tmux, the state root, and shows the settings in effect with their source.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			x, err := examine(settings, offline)
			if err != nil {
				return err
			}
			d, err := x.diagnose(cmd.Context())
			if err != nil {
				return err
			}
			return d.print(asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&offline, "offline", false, "make no connection")
	cmd.Flags().StringVar(&settings, "settings", "", "settings as `JSON` text, or a file with them")
	_ = cmd.RegisterFlagCompletionFunc("settings", completeSettings) // it was defined a line above
	return cmd
}

func examine(settings string, offline bool) (*examination, error) {
	root, err := stateRoot()
	if err != nil {
		return nil, err
	}
	cwd, err := workingFolder()
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // without one, its settings are none
	x := &examination{root: root, home: home, cwd: cwd, offline: offline}
	x.settings, x.warnings = config.Load(config.Options{Root: root, Home: home, Project: cwd, Flag: settings})
	x.getenv = func(name string) string {
		if value := os.Getenv(name); value != "" {
			return value
		}
		return x.settings.Env[name]
	}
	return x, nil
}

func (x *examination) diagnose(ctx context.Context) (diagnosis, error) {
	d := diagnosis{Settings: viewSettings(x.settings), Sessions: []sessionView{}}
	d.Checks = append(d.Checks, x.checkModel())
	d.Checks = append(d.Checks, x.checkEndpoints(ctx)...)
	d.Checks = append(d.Checks, checkPrograms(ctx)...)
	d.Checks = append(d.Checks, x.checkRoot(), x.checkSettings())
	err := withPlaces(func(places []place) error {
		for _, p := range places {
			if p.foreign {
				continue
			}
			infos, err := p.Transcripts().List(ctx, "")
			if err != nil {
				d.Checks = append(d.Checks, finding{"sessions", bad, err.Error(), ""})
				continue
			}
			for _, info := range infos {
				if v := p.viewSession(ctx, info); v.HeldBy != 0 {
					d.Sessions = append(d.Sessions, v)
				}
			}
		}
		return nil
	})
	d.OK = true
	for _, c := range d.Checks {
		d.OK = d.OK && c.Status != bad
	}
	return d, err
}

var marks = map[status]string{good: "✓", mild: "!", bad: "✗"}

func (d diagnosis) print(asJSON bool) error {
	var err error
	if asJSON {
		err = writeJSON(d)
	} else {
		err = writeOut([]byte(d.String()))
	}
	if err == nil && !d.OK {
		return exitWith(d.code())
	}
	return err
}

// code is the exit code for what does not work.
func (d diagnosis) code() int {
	for _, c := range d.Checks {
		if c.Name == checkOfModel && c.Status == bad {
			return exitNoModel
		}
	}
	return exitFailed
}

func (d diagnosis) String() string {
	var b strings.Builder
	for _, c := range d.Checks {
		fmt.Fprintf(&b, "%s %-10s %s\n", marks[c.Status], c.Name, tui.Clean(c.Detail))
		if c.Hint != "" {
			fmt.Fprintf(&b, "             %s\n", c.Hint)
		}
	}
	b.WriteString("\nSettings in effect:\n")
	for _, s := range d.Settings {
		fmt.Fprintf(&b, "  %s = %s  (%s)\n", tui.Clean(s.Key), tui.Clean(s.Value), tui.Clean(s.from()))
	}
	if len(d.Sessions) > 0 {
		b.WriteString("\nOpen sessions:\n")
	}
	for _, s := range d.Sessions {
		fmt.Fprintf(&b, "  %s in process %d, %s\n", s.ID, s.HeldBy, tui.Clean(s.Project))
	}
	return b.String()
}

// settingView is one setting in effect.
type settingView struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Path   string `json:"path,omitempty"`
}

func (s settingView) from() string {
	if s.Path == "" {
		return s.Source
	}
	return s.Source + ", " + s.Path
}

// viewSettings lists the values, the rules and the names of the variables. The
// value of a variable is not shown: it may be a key.
func viewSettings(e config.Effective) []settingView {
	views := []settingView{}
	add := func(key, value string, from config.Source) {
		views = append(views, settingView{key, value, from.String(), from.Path})
	}
	for _, s := range []struct{ key, value string }{
		{"model", cmp.Or(e.Model, "the provider's default")},
		{"permissions.defaultMode", cmp.Or(e.Permissions.DefaultMode, "default")},
		{"teammateMode", e.TeammateMode},
		{"planApproval", e.PlanApproval},
		{"orphanGraceMs", fmt.Sprint(e.OrphanGrace.Milliseconds())},
		{"trustUnsignedTeamAnswers", fmt.Sprint(e.TrustUnsigned)},
		{"printWaitCeilingMs", fmt.Sprint(e.PrintWaitCeiling.Milliseconds())},
		{"askDeadlineMs", fmt.Sprint(e.AskDeadline.Milliseconds())},
		{"modelRetryMs", modelRetry(e.ModelRetry)},
		{"modelFirstByteMs", fmt.Sprint(e.ModelFirstByte.Milliseconds())},
		{"modelSilenceMs", fmt.Sprint(e.ModelSilence.Milliseconds())},
		{"repeatReminder", fmt.Sprint(e.RepeatReminder)},
		{"syncWrites", fmt.Sprint(e.SyncWrites)},
	} {
		add(s.key, s.value, e.From(s.key))
	}
	for _, list := range []struct {
		key   string
		rules []config.Rule
	}{
		{"permissions.allow", e.Permissions.Allow}, {"permissions.ask", e.Permissions.Ask}, {"permissions.deny", e.Permissions.Deny},
	} {
		for _, r := range list.rules {
			add(list.key, r.Text, r.From)
		}
	}
	for _, dir := range e.Permissions.Directories {
		add("permissions.additionalDirectories", dir.Path, dir.From)
	}
	names := make([]string, 0, len(e.Env))
	for name := range e.Env {
		names = append(names, name)
	}
	byName(names, func(n string) string { return n })
	for _, name := range names {
		add("env."+name, "(set)", e.From("env."+name))
	}
	return views
}

func modelRetry(d time.Duration) string {
	if d == config.RetryByDefault {
		return fmt.Sprintf("%d, in a conversation for ever", provider.DefaultRetryFor.Milliseconds())
	}
	return fmt.Sprint(d.Milliseconds())
}
