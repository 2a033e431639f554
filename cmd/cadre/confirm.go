package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cadre-dev/cadre/internal/near"
)

// confirm asks before an action that loses something. Without a person there is no yes.
func confirm(action string, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return &exit{code: exitUsage, err: fmt.Errorf("%s: nobody can be asked to confirm", action), hint: "Add --yes to say yes."}
	}
	fmt.Fprintf(os.Stderr, "%s%s? [y/N] ", strings.ToUpper(action[:1]), action[1:])
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return exitWith(exitInterrupted)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	fmt.Fprintln(os.Stderr, "Nothing was removed.")
	return exitWith(exitFailed)
}

// noArgs, exactly and atMost check the arguments of a verb.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, and got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

func atMost(n int, what string) cobra.PositionalArgs { return between(0, n, what) }

func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("%s takes %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// unknownCommand says that no command below cmd has this name, and which may have been
// meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	e := usagef("unknown command %q for %s", name, cmd.CommandPath())
	e.hint = cmp.Or(didYouMean(near.Names(name, names)), cmd.CommandPath()+" --help lists its commands.")
	return e
}

// group makes a verb that has only verbs below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(below...)
	return cmd
}
