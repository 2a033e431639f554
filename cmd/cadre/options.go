package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	cadre "github.com/cadre-dev/cadre"
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
	fork           bool
	sessionID      string
	noPersistence  bool
	settings       string
	settingSources *string
	trust          bool
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
}

func (o *options) flags() []flag {
	return []flag{
		{"print", "p", "answer one prompt (the argument, stdin, or both) and exit", &o.print},
		{"output-format", "", "with -p, `text`, json or stream-json", &o.outputFormat},
		{"input-format", "", "with -p, `text`", &o.inputFormat},
		{"model", "", "`NAME` or alias of a model, or scripted:FILE", &o.model},
		{"max-turns", "", "stop after `N` rounds of the model", setNumber(&o.maxTurns)},
		{"system-prompt", "", "`TEXT` instead of the default system prompt", setPointer(&o.systemPrompt)},
		{"append-system-prompt", "", "`TEXT` after the system prompt", &o.appendSystem},
		{"permission-mode", "", "`MODE`: default, acceptEdits, plan, dontAsk, delegate or bypassPermissions", &o.mode},
		{"dangerously-skip-permissions", "", "never ask: the same as mode bypassPermissions", &o.skip},
		{"allowed-tools", "", "`RULES` that allow, like Bash(git *),Read", addRules(&o.allowed)},
		{"disallowed-tools", "", "`RULES` that forbid", addRules(&o.disallowed)},
		{"tools", "", "`NAMES` of the tools to offer; \"\" for none, default for all", o.setTools},
		{"add-dir", "", "one more `FOLDER` to work in (repeatable)", addTo(&o.addDirs)},
		{"continue", "c", "go on with the newest session of this folder", &o.cont},
		{"resume", "r", "go on with the session `ID`", &o.resume},
		{"fork-session", "", "with -c or -r, go on in a copy", &o.fork},
		{"session-id", "", "`UUID` for the new session", &o.sessionID},
		{"no-session-persistence", "", "keep nothing of the conversation on disk", &o.noPersistence},
		{"settings", "", "settings as `JSON` text, or a file with them", &o.settings},
		{"setting-sources", "", "`LIST` of the settings to read: user,project,local", setPointer(&o.settingSources)},
		{"trust", "", "take what this project's own settings allow", &o.trust},
		{"verbose", "", "also tell the results of tool calls", &o.verbose},
		{"debug", "", "write a debug log into the state root", &o.debug},
		{"quiet", "", "tell errors only", &o.quiet},
		{"version", "v", "print the version", &o.version},
	}
}

// addFlags defines flags under their name and, where it has several words, under
// the camelCase form that users of Claude Code know (facts: sdk-contract §1).
func addFlags(cmd *cobra.Command, flags []flag) {
	cmd.Flags().SortFlags = false
	for _, f := range flags {
		addFlag(cmd, f)
		if camel := camelCase(f.name); camel != f.name {
			f.name, f.short = camel, ""
			addFlag(cmd, f)
			_ = cmd.Flags().MarkHidden(camel) // it was defined a line above
		}
	}
}

func addFlag(cmd *cobra.Command, f flag) {
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
		return usagef("--input-format stream-json is not spoken yet: give the prompt as an argument or as text on stdin")
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
	switch {
	case o.cont && o.resume != "":
		return usagef("--continue and --resume exclude each other")
	case o.fork && !o.cont && o.resume == "":
		return usagef("--fork-session needs --continue or --resume")
	case o.sessionID != "" && !ids.IsUUID(o.sessionID):
		return usagef("--session-id %q: want a UUID", o.sessionID)
	case o.sessionID != "" && (o.cont || o.resume != "") && !o.fork:
		return usagef("--session-id with --continue or --resume needs --fork-session")
	case o.noPersistence && (o.cont || o.resume != ""):
		return usagef("--no-session-persistence excludes --continue and --resume")
	}
	return nil
}

// config is what the flags mean to the library.
func (o *options) config(cwd string) cadre.Config {
	return cadre.Config{
		Cwd: cwd, Version: version(),
		Model: o.model, SystemPrompt: o.systemPrompt, AppendSystemPrompt: o.appendSystem,
		Mode: o.mode, SkipPermissions: o.skip,
		AllowedTools: o.allowed, DisallowedTools: o.disallowed, Tools: o.tools, AddDirs: o.addDirs,
		MaxTurns: o.maxTurns,
		Continue: o.cont, Resume: o.resume, Fork: o.fork, SessionID: o.sessionID, NoPersistence: o.noPersistence,
		Settings: o.settings, SettingSources: o.settingSources, TrustProject: o.trust,
	}
}
