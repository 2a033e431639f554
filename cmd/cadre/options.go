package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/permission"
)

// options are the flags of the conversation and of -p.
type options struct {
	print          bool
	outputFormat   string
	inputFormat    string
	model          string
	maxTurns       int
	systemPrompt   *string
	appendSystem   string
	mode           string
	skip           bool
	allowed        []string
	disallowed     []string
	tools          []string // nil: all
	addDirs        []string
	cont           bool
	resume         string
	choose         bool // --resume without an id
	fork           bool
	sessionID      string
	noPersistence  bool
	settings       string
	settingSources *string
	trust          bool
	teammateMode   string
	teammate       cadre.Teammate // the zero value: this is no teammate
	verbose        bool
	debug          bool
	quiet          bool
	version        bool
}

// Output formats.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatStream = "stream-json"
)

// flag describes one flag: where its value goes decides how it is read.
type flag struct {
	name, short string
	usage       string // `word` in it stands for the value
	target      any    // *bool, *string, or func(string) error
	hidden      bool   // for programs: a lead starts teammates with it
}

func (o *options) flags() []flag {
	return []flag{
		{name: "print", short: "p", usage: "answer one prompt (the argument, stdin, or both) and exit", target: &o.print},
		{name: "output-format", usage: "with -p, `text`, json or stream-json", target: &o.outputFormat},
		{name: "input-format", usage: "with -p, `text`", target: &o.inputFormat},
		{name: "model", usage: "the `NAME` or alias of a model, or scripted:FILE", target: &o.model},
		{name: "max-turns", usage: "stop after `N` rounds of the model", target: setNumber(&o.maxTurns)},
		{name: "system-prompt", usage: "use `TEXT` instead of the default system prompt", target: setPointer(&o.systemPrompt)},
		{name: "append-system-prompt", usage: "add `TEXT` to the system prompt", target: &o.appendSystem},
		{name: "permission-mode", usage: "permission `MODE`: default, acceptEdits, plan, dontAsk, delegate or bypassPermissions", target: &o.mode},
		{name: "dangerously-skip-permissions", usage: "never ask: the same as mode bypassPermissions", target: &o.skip},
		{name: "allowed-tools", usage: "permission `RULES` that allow calls, like Bash(git *),Read", target: addRules(&o.allowed)},
		{name: "disallowed-tools", usage: "permission `RULES` that deny calls", target: addRules(&o.disallowed)},
		{name: "tools", usage: "offer only the tools with these `NAMES`; \"\" for none, default for all", target: o.setTools},
		{name: "add-dir", usage: "also work in `FOLDER` (repeatable)", target: addTo(&o.addDirs)},
		{name: "continue", short: "c", usage: "continue the newest session of this folder", target: &o.cont},
		{name: "resume", short: "r", usage: "continue the session with this `ID`, or the beginning of one; without it, choose from a list", target: o.setResume},
		{name: "fork-session", usage: "with -c or -r, continue in a copy", target: &o.fork},
		{name: "session-id", usage: "give the new session this `UUID`", target: &o.sessionID},
		{name: "no-session-persistence", usage: "keep nothing of the conversation on disk", target: &o.noPersistence},
		{name: "settings", usage: "settings as `JSON` text, or a file with them", target: &o.settings},
		{name: "setting-sources", usage: "the settings files to read, a `LIST` of user,project,local", target: setPointer(&o.settingSources)},
		{name: "trust", usage: "accept what this project's own settings allow", target: &o.trust},
		{name: "teammate-mode", usage: "where teammates run, a `MODE`: auto, in-process, tmux or iterm2", target: &o.teammateMode},
		{name: "verbose", usage: "also show the results of tool calls", target: &o.verbose},
		{name: "debug", usage: "write a debug log into the state root", target: &o.debug},
		{name: "quiet", usage: "print only errors", target: &o.quiet},
		{name: "version", short: "v", usage: "print the version", target: &o.version},
		// What a lead starts teammates with (facts: claude-code §4.3).
		{name: "agent-id", target: &o.teammate.AgentID, hidden: true},
		{name: "agent-name", target: &o.teammate.Name, hidden: true},
		{name: "team-name", target: &o.teammate.Team, hidden: true},
		{name: "agent-color", target: &o.teammate.Color, hidden: true},
		{name: "parent-session-id", target: &o.teammate.LeadSession, hidden: true},
		{name: "agent-type", target: &o.teammate.Type, hidden: true},
		{name: "plan-mode-required", target: &o.teammate.MustPlan, hidden: true},
	}
}

// addFlags defines flags under their name and, where it has several words, under
// the camelCase form that users of Claude Code know (facts: sdk-contract §1).
func addFlags(cmd *cobra.Command, flags []flag) {
	cmd.Flags().SortFlags = false
	for _, f := range flags {
		complete := completions(f.name)
		addFlag(cmd, f, complete)
		if f.hidden {
			_ = cmd.Flags().MarkHidden(f.name)
		}
		if camel := camelCase(f.name); camel != f.name {
			f.name, f.short = camel, ""
			addFlag(cmd, f, complete)
			_ = cmd.Flags().MarkHidden(camel) // it was defined a line above
		}
	}
}

func addFlag(cmd *cobra.Command, f flag, complete cobra.CompletionFunc) {
	fs := cmd.Flags()
	switch target := f.target.(type) {
	case *bool:
		fs.BoolVarP(target, f.name, f.short, *target, f.usage)
	case *string:
		fs.StringVarP(target, f.name, f.short, *target, f.usage)
	case func(string) error:
		fs.FuncP(f.name, f.short, f.usage, target)
	default:
		panic(fmt.Sprintf("flag --%s has a target of type %T", f.name, f.target))
	}
	_ = cmd.RegisterFlagCompletionFunc(f.name, complete) // the flag was defined a line above
}

func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func setNumber(target *int) func(string) error {
	return func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return errors.New("want a number above 0")
		}
		*target = n
		return nil
	}
}

func setPointer(target **string) func(string) error {
	return func(value string) error {
		*target = &value
		return nil
	}
}

func addTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}

// addRules reads a list of permission rules, separated by commas or spaces.
func addRules(list *[]string) func(string) error {
	return func(value string) error {
		rules, err := permission.ParseRules(value)
		if err != nil {
			return err
		}
		for _, r := range rules {
			*list = append(*list, r.String())
		}
		return nil
	}
}

func (o *options) setResume(value string) error {
	o.resume, o.choose = value, value == ""
	return nil
}

func (o *options) setTools(value string) error {
	names := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Equal(names, []string{"default"}) {
		o.tools = nil
		return nil
	}
	o.tools = append([]string{}, append(o.tools, names...)...)
	return nil
}

// printing reports whether there is one prompt and one answer. A format for
// programs means that, as it does for the SDKs, which never pass -p (facts:
// sdk-contract §0).
func (o *options) printing() bool {
	return o.print || o.outputFormat == formatJSON || o.outputFormat == formatStream
}

// check finds what cannot be meant.
func (o *options) check() error {
	if o.inputFormat == formatStream {
		return usagef("--input-format stream-json is not supported yet: give the prompt as an argument or as text on stdin")
	}
	if o.inputFormat != "" && o.inputFormat != formatText {
		return usagef("--input-format %q: want text", o.inputFormat)
	}
	switch o.outputFormat {
	case "", formatText, formatJSON:
	case formatStream:
		if !o.verbose {
			return usagef("--output-format stream-json needs --verbose")
		}
	default:
		return usagef("--output-format %q: want text, json or stream-json", o.outputFormat)
	}
	if _, err := permission.ParseMode(o.mode); err != nil {
		return usagef("--permission-mode: %w", err)
	}
	if o.teammateMode != "" && !slices.Contains(config.TeammateModes, o.teammateMode) {
		return usagef("--teammate-mode %q: want %s", o.teammateMode, strings.Join(config.TeammateModes, ", "))
	}
	if err := o.checkTeammate(); err != nil {
		return err
	}
	switch {
	case o.cont && (o.resume != "" || o.choose):
		return usagef("--continue and --resume exclude each other")
	case o.fork && !o.cont && o.resume == "" && !o.choose:
		return usagef("--fork-session needs --continue or --resume")
	case o.sessionID != "" && !ids.IsUUID(o.sessionID):
		return usagef("--session-id %q: want a UUID", o.sessionID)
	case o.sessionID != "" && (o.cont || o.resume != "" || o.choose) && !o.fork:
		return usagef("--session-id with --continue or --resume needs --fork-session")
	case o.noPersistence && (o.cont || o.resume != "" || o.choose):
		return usagef("--no-session-persistence excludes --continue and --resume")
	}
	return nil
}

// checkTeammate finds out whether the flags of a teammate are all there. An
// agent's id is its name and its team's, so one of the two ways will do.
func (o *options) checkTeammate() error {
	t := &o.teammate
	if *t == (cadre.Teammate{}) {
		return nil
	}
	if name, team, ok := strings.Cut(t.AgentID, "@"); ok {
		t.Name, t.Team = cmp.Or(t.Name, name), cmp.Or(t.Team, team)
	}
	if t.Name == "" || t.Team == "" {
		return usagef("a teammate needs --agent-name and --team-name (a lead starts it with them)")
	}
	return nil
}

// config is what the flags mean to the library.
func (o *options) config(cwd string) cadre.Config {
	var mate *cadre.Teammate
	if o.teammate.Name != "" {
		mate = &o.teammate
	}
	return cadre.Config{
		Cwd: cwd, Version: version(), Teammate: mate, TeammateMode: o.teammateMode, Interactive: !o.printing() && term.IsTerminal(int(os.Stdin.Fd())),
		Model: o.model, SystemPrompt: o.systemPrompt, AppendSystemPrompt: o.appendSystem,
		Mode: o.mode, SkipPermissions: o.skip,
		AllowedTools: o.allowed, DisallowedTools: o.disallowed, Tools: o.tools, AddDirs: o.addDirs,
		MaxTurns: o.maxTurns,
		Continue: o.cont, Resume: o.resume, Fork: o.fork, SessionID: o.sessionID, NoPersistence: o.noPersistence,
		Settings: o.settings, SettingSources: o.settingSources, TrustProject: o.trust,
	}
}
