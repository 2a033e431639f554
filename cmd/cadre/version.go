package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// compatible is the version of Claude Code whose formats and protocol cadre
// follows. It is the first word of --version, which SDKs read (facts:
// sdk-contract §0).
const compatible = "2.1.41"

// release is set when a release is built: -ldflags "-X main.release=1.2.3".
var release = ""

// fallback is the version of a build that says nothing of itself.
const fallback = "0.1.0"

// version is cadre's own version.
func version() string {
	if release != "" {
		return release
	}
	return fallback
}

func versionLine() string { return compatible + " (cadre " + version() + ")" }

// build is what a binary knows of how it was made.
type build struct {
	Version    string   `json:"version"`
	Compatible string   `json:"compatibleWith"`
	Go         string   `json:"go"`
	Platform   string   `json:"platform"`
	Revision   string   `json:"revision,omitempty"`
	Time       string   `json:"time,omitempty"`
	Modified   bool     `json:"modified,omitempty"`
	Settings   []string `json:"settings,omitempty"`
	Deps       []string `json:"dependencies"`
}

func readBuild() build {
	b := build{
		Version: version(), Compatible: compatible, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Deps: []string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags", "-ldflags", "CGO_ENABLED", "GOAMD64", "GOARM64":
			b.Settings = append(b.Settings, s.Key+"="+s.Value)
		}
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		b.Deps = append(b.Deps, d.Path+" "+d.Version)
	}
	return b
}

func (b build) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "cadre %s, formats and protocol of Claude Code %s\n", b.Version, b.Compatible)
	fmt.Fprintf(&s, "%s on %s\n", b.Go, b.Platform)
	if b.Revision != "" {
		changed := ""
		if b.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(&s, "revision %s of %s%s\n", b.Revision, b.Time, changed)
	}
	if len(b.Settings) > 0 {
		fmt.Fprintf(&s, "built with %s\n", strings.Join(b.Settings, " "))
	}
	s.WriteString("dependencies:\n")
	for _, d := range b.Deps {
		fmt.Fprintf(&s, "  %s\n", d)
	}
	return strings.TrimRight(s.String(), "\n")
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and how this binary was built",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if !asJSON {
				return writeOut([]byte(b.String() + "\n"))
			}
			return writeJSON(b)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// writeJSON prints a value for programs.
func writeJSON(v any) error {
	data, err := jsonx.MarshalIndent(v)
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	return writeOut(append(data, '\n'))
}
