package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// What a mistake means for a run that goes on.
const (
	ignored  = "it is ignored"
	lostFile = "nothing in this file takes effect"
)

// maxFile is the largest settings file that is read, in bytes.
const maxFile = 1 << 20

// Options says which files are read.
type Options struct {
	Root layout.Root
	Home string // "" when it is unknown
	// Project is the absolute folder whose .cadre and .claude are read, and from
	// which relative paths count.
	Project string
	Flag    string // of --settings: JSON text, or the path of a file
	// Scopes limits which files are read besides Flag; nil means all.
	Scopes []Scope
	// TrustProject accepts from project and local files also what extends what
	// agents may do, except for what no project may set.
	TrustProject bool
}

// Load reads the settings files and merges them: user, project, local, flag,
// later ones first. Rules and folders are added up; other values replace those before. In each
// scope .claude comes before .cadre, so ours win. A missing file is no
// error; one that cannot be read or parsed is skipped as a whole, with a warning. Whoever gave a Flag
// should refuse to go on when there is a warning about it: its deny rules may be
// missing.
func Load(o Options) (Effective, []Warning) {
	m := &merge{Options: o, into: Effective{Settings: defaults(), Origin: map[string]Source{}}}
	for _, source := range o.files() {
		text, err := readSettings(source.Path)
		if errors.Is(err, fs.ErrNotExist) && source.Scope != Flag {
			continue
		}
		if err != nil {
			m.warn(source, 0, "cannot be read: "+reason(err), lostFile)
			continue
		}
		m.add(source, text)
	}
	if text := strings.TrimSpace(o.Flag); strings.HasPrefix(text, "{") {
		m.add(Source{Scope: Flag}, []byte(text))
	}
	return m.into, m.warnings
}

// files lists the files to look for, lowest precedence first, each once.
func (o Options) files() []Source {
	var files []Source
	add := func(scope Scope, base string, elem ...string) {
		path := filepath.Join(elem...)
		known := slices.ContainsFunc(files, func(s Source) bool { return s.Path == path })
		if elem[0] != "" && !known && (scope == Flag || o.Scopes == nil || slices.Contains(o.Scopes, scope)) {
			files = append(files, Source{Scope: scope, Path: path, Base: base})
		}
	}
	// The user's own files stay the user's when the project is the home folder.
	user := []string{filepath.Join(o.Home, ".claude", "settings.json"), o.Root.Settings()}
	if o.Home != "" && user[0] != user[1] {
		add(User, "", user[0])
	}
	add(User, "", user[1])
	for _, scope := range []Scope{Project, Local} {
		for _, dir := range []string{".claude", ".cadre"} {
			name := map[Scope]string{Project: "settings.json", Local: "settings.local.json"}[scope]
			path := filepath.Join(o.Project, dir, name)
			if o.Project != "" && !slices.Contains(user, path) {
				add(scope, o.Project, path)
			}
		}
	}
	if flag := strings.TrimSpace(o.Flag); flag != "" && !strings.HasPrefix(flag, "{") {
		add(Flag, "", o.absolute(flag))
	}
	return files
}

// absolute resolves a path of a settings file or flag.
func (o Options) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && o.Home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(o.Home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(o.Project, path)
}

// readSettings reads a file, also through a symbolic link: people keep their
// settings in a folder of dotfiles.
func readSettings(path string) ([]byte, error) {
	text, _, err := fsx.ReadFile(fsx.OS, path, maxFile)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	resolved, linkErr := filepath.EvalSymlinks(path)
	if linkErr != nil {
		return nil, linkErr
	}
	if resolved == filepath.Clean(path) {
		return nil, err
	}
	text, _, err = fsx.ReadFile(fsx.OS, resolved, maxFile)
	return text, err
}

// merge is a Load in progress.
type merge struct {
	Options
	into     Effective
	warnings []Warning
}

// warn records a mistake in a source, and what it means for a run that goes on.
func (m *merge) warn(s Source, line int, text, consequence string) {
	if s.Scope != Flag && consequence != "" {
		text += "; " + consequence
	}
	m.warnings = append(m.warnings, Warning{Source: s, Line: line, Text: text})
}

// reason is an error of the file system without the path, which the warning names.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

func (m *merge) add(source Source, text []byte) {
	p, bad := parse(text)
	if bad != nil {
		m.warn(source, bad.line, bad.text, lostFile)
		return
	}
	layer := Layer{Source: source, Trusted: true, Raw: p.raw}
	if source.Scope == Project || source.Scope == Local {
		layer.Trusted = m.TrustProject
		m.narrow(source, p)
	}
	m.into.Layers = append(m.into.Layers, layer)
	m.addPermissions(source, p)
	m.addValues(source, p)
	m.addEnv(source, p)
}

func (m *merge) addPermissions(source Source, p *parsed) {
	to, from := &m.into.Permissions, p.Permissions
	for _, list := range []struct {
		to   *[]Rule
		from []string
	}{{&to.Allow, from.Allow}, {&to.Ask, from.Ask}, {&to.Deny, from.Deny}} {
		for _, text := range list.from {
			*list.to = append(*list.to, Rule{text, source})
		}
	}
	for _, dir := range from.AdditionalDirectories {
		if dir != "" {
			to.Directories = append(to.Directories, Directory{m.absolute(dir), source})
		}
	}
	set(m, source, "permissions.defaultMode", &to.DefaultMode, from.DefaultMode)
}

func set[T any](m *merge, source Source, key string, to, from *T) {
	if from != nil {
		*to = *from
		m.into.Origin[key] = source
	}
}

// TeammateModes are the values of the setting teammateMode.
var TeammateModes = []string{"auto", "in-process", "tmux", "iterm2"}

// planApprovals are the values of planApproval.
var planApprovals = []string{"auto", "lead", "person"}

func (m *merge) setWord(source Source, p *parsed, key string, to, from *string, words []string) {
	if from != nil && !slices.Contains(words, *from) {
		m.warn(source, p.line("/"+key), fmt.Sprintf("%s %q is not one of %s", key, *from, strings.Join(words, ", ")), ignored)
		return
	}
	set(m, source, key, to, from)
}

func (m *merge) addValues(source Source, p *parsed) {
	s := &m.into.Settings
	set(m, source, "model", &s.Model, p.Model)
	set(m, source, "syncWrites", &s.SyncWrites, p.SyncWrites)
	set(m, source, "trustUnsignedTeamAnswers", &s.TrustUnsigned, p.TrustUnsigned)
	m.setWord(source, p, "teammateMode", &s.TeammateMode, p.TeammateMode, TeammateModes)
	m.setWord(source, p, "planApproval", &s.PlanApproval, p.PlanApproval, planApprovals)
	m.setMillis(source, p, "orphanGraceMs", &s.OrphanGrace, p.OrphanGraceMs)
	m.setMillis(source, p, "printWaitCeilingMs", &s.PrintWaitCeiling, p.PrintWaitCeilingMs)
	m.setMillis(source, p, "askDeadlineMs", &s.AskDeadline, p.AskDeadlineMs)
	m.setMillis(source, p, "modelRetryMs", &s.ModelRetry, p.ModelRetryMs)
	m.setMillis(source, p, "modelFirstByteMs", &s.ModelFirstByte, p.ModelFirstByteMs)
	m.setMillis(source, p, "modelSilenceMs", &s.ModelSilence, p.ModelSilenceMs)
	m.setCount(source, p, "repeatReminder", &s.RepeatReminder, p.RepeatReminder)
}

// maxMillis is the longest time that a setting may ask for, a year.
const maxMillis = int64(365 * 24 * time.Hour / time.Millisecond)

func (m *merge) setMillis(source Source, p *parsed, key string, to *time.Duration, from *int64) {
	if from == nil {
		return
	}
	if *from < 0 || *from > maxMillis {
		m.warn(source, p.line("/"+key), fmt.Sprintf("%s %d is not in the range from 0 to %d milliseconds", key, *from, maxMillis), ignored)
		return
	}
	*to = time.Duration(*from) * time.Millisecond
	m.into.Origin[key] = source
}

// maxCount is the largest number that a setting may count to.
const maxCount = 1_000_000

func (m *merge) setCount(source Source, p *parsed, key string, to *int, from *int64) {
	if from == nil {
		return
	}
	if *from < 0 || *from > maxCount {
		m.warn(source, p.line("/"+key), fmt.Sprintf("%s %d is not in the range from 0 to %d", key, *from, maxCount), ignored)
		return
	}
	*to = int(*from)
	m.into.Origin[key] = source
}

func (m *merge) addEnv(source Source, p *parsed) {
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		value := string(p.Env[name])
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			m.warn(source, p.line("/env"), fmt.Sprintf("env %q cannot be the name of an environment variable", name), ignored)
			continue
		}
		if m.into.Env == nil {
			m.into.Env = map[string]string{}
		}
		m.into.Env[name] = value
		m.into.Origin["env."+name] = source
	}
}
