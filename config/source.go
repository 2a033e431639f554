package config

import (
	"fmt"
	"slices"
	"strings"
)

// Scope says whose a settings file is. The names are those of --setting-sources.
type Scope string

// The scopes, lowest precedence first.
const (
	User    Scope = "user"
	Project Scope = "project"
	Local   Scope = "local" // the project's settings.local.json
	Flag    Scope = "flag"  // --settings
)

// ParseScopes reads the value of --setting-sources: names separated by commas.
// The empty list means none of them. [Flag] can't be switched off.
func ParseScopes(list string) ([]Scope, error) {
	scopes := []Scope{}
	for name := range strings.SplitSeq(list, ",") {
		switch s := Scope(strings.TrimSpace(name)); s {
		case "":
		case User, Project, Local:
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		default:
			return nil, fmt.Errorf("%q is not one of user, project, local", s)
		}
	}
	return scopes, nil
}

// Source is where a setting came from.
type Source struct {
	Scope Scope
	Path  string // of the file; "" for JSON given to --settings
	// Base is the folder of the project that the file belongs to, "" for user
	// and flag settings.
	Base string
}

// String names the source for people: "user settings", "--settings".
func (s Source) String() string {
	switch s.Scope {
	case Flag:
		return "--settings"
	case "":
		return "default"
	}
	return string(s.Scope) + " settings"
}

// Warning is something about a settings file that its owner should know.
type Warning struct {
	Source Source
	Line   int // 0: none in particular
	Text   string
}

// String is the warning with file and line, for a terminal.
func (w Warning) String() string {
	place := w.Source.Path
	if place == "" {
		place = w.Source.String()
	}
	if w.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, w.Line)
	}
	return place + ": " + w.Text
}
