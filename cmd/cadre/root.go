package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cadre-dev/cadre/internal/near"
)

// verbs are the commands beside the conversation. A word is a verb only in the
// first place: cadre -p demo is a prompt.
var verbs = []string{"demo", "team", "task", "sessions", "asks", "answer", "doctor", "version"}

// newVerb makes the command of a verb. They are made when they are needed, so that
// a plain run does not pay for them.
func newVerb(name string) *cobra.Command {
	return map[string]func() *cobra.Command{
		"demo": newDemoCommand, "team": newTeamCommand, "task": newTaskCommand, "sessions": newSessionsCommand,
		"asks": newAsksCommand, "answer": newAnswerCommand, "doctor": newDoctorCommand, "version": newVersionCommand,
	}[name]()
}

// cobraVerbs are the commands that cobra adds.
var cobraVerbs = append([]string{"help", "completion"}, completionRequests...)

// completionRequests are the commands by which a shell asks for completions. The word
// that is being typed comes last.
var completionRequests = []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

const rootLong = `cadre runs a team of coding agents.

Without -p it is a conversation on this terminal. With -p it answers one prompt:
stdout holds the answer and nothing else.`

const rootExample = `  cadre                                    talk with a lead agent in this folder
  cadre -p "make the tests pass" --allowedTools "Bash(go test *),Edit"
  git diff | cadre -p "review this change" --output-format json
  cadre --continue                         continue the newest session of this folder`

func newRootCommand(args []string) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "cadre [flags] [prompt]",
		Short:         "a team of coding agents",
		Long:          rootLong,
		Example:       rootExample,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, prompt []string) error { return runRoot(cmd.Context(), &o, prompt) },
	}
	addFlags(root, o.flags())
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(flagError)
	if wantsVerbs(args) {
		for _, v := range verbs {
			root.AddCommand(newVerb(v))
		}
		root.AddCommand(newCompletionCommand())
		root.SetHelpCommand(newHelpCommand())
		return root
	}
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// wantsVerbs reports whether a command line names a verb or asks for help.
func wantsVerbs(args []string) bool {
	if len(args) > 0 && (isVerb(args[0]) || slices.Contains(cobraVerbs, args[0])) {
		return true
	}
	for _, arg := range args {
		switch arg {
		case "-h", "--help":
			return true
		case "--":
			return false
		}
	}
	return false
}

func isVerb(word string) bool { return slices.Contains(verbs, word) }

// mistyped finds the verb that was probably meant by the first word: a prompt of one
// to three plain words is more likely a mistyped command, and would cost money.
func mistyped(prompt []string) string {
	if len(prompt) == 0 || len(prompt) > 3 || strings.ContainsAny(prompt[0], " \n") {
		return ""
	}
	for _, near := range near.Names(prompt[0], verbs) {
		return near
	}
	return ""
}

// flagError says which option is wrong, as users of Claude Code know it (facts:
// sdk-contract §1), and which may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown interface {
		error
		GetSpecifiedName() string
		GetSpecifiedShortnames() string
	}
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		return usagef("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), plainValueError(invalid))
	case !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), "unknown"):
		return &exit{code: exitUsage, err: err}
	}
	name, dashes := unknown.GetSpecifiedName(), "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	e := usagef("unknown option '%s%s'", dashes, name)
	e.hint = cmd.CommandPath() + " --help lists the options."
	if near := nearFlag(cmd, name); near != "" && dashes == "--" {
		e.hint = "(Did you mean --" + near + "?)"
	}
	return e
}

// plainValueError says what is wrong with the value of a flag.
func plainValueError(invalid *pflag.InvalidValueError) error {
	var number *strconv.NumError
	switch cause := invalid.Unwrap(); {
	case !errors.As(cause, &number):
		return cause
	case invalid.GetFlag().Value.Type() == "bool":
		return errors.New("want true or false")
	}
	return errors.New("want a number")
}

// withoutQuotes removes the quotes in the descriptions of flags, with which help finds the
// name of a value: completions show descriptions as they are.
func withoutQuotes(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, below := range cmd.Commands() {
		withoutQuotes(below)
	}
}

func nearFlag(cmd *cobra.Command, name string) string {
	var names []string
	for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
		for word := range strings.FieldsSeq(line) {
			if known, ok := strings.CutPrefix(word, "--"); ok {
				names = append(names, known)
				break
			}
		}
	}
	for _, near := range near.Names(name, names) {
		return near
	}
	return ""
}
