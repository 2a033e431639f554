package main

import (
	"os"

	"github.com/spf13/cobra"
)

const completionLong = `completion prints a script that lets your shell complete cadre's commands, flags, teams, sessions and models.

  bash        source <(cadre completion bash)            (needs the package bash-completion)
  zsh         source <(cadre completion zsh)             (after: autoload -U compinit; compinit)
  fish        cadre completion fish | source
  powershell  cadre completion powershell | Out-String | Invoke-Expression

Put the line into your shell's start-up file to have it in every shell.`

func newCompletionCommand() *cobra.Command {
	var below []*cobra.Command
	for _, shell := range []struct {
		name  string
		write func(root *cobra.Command) error
	}{
		{"bash", func(root *cobra.Command) error { return root.GenBashCompletionV2(os.Stdout, true) }},
		{"zsh", func(root *cobra.Command) error { return root.GenZshCompletion(os.Stdout) }},
		{"fish", func(root *cobra.Command) error { return root.GenFishCompletion(os.Stdout, true) }},
		{"powershell", func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(os.Stdout) }},
	} {
		below = append(below, &cobra.Command{
			Use: shell.name, Short: "Print the completion script for " + shell.name, Args: noArgs,
			ValidArgsFunction: cobra.NoFileCompletions,
			RunE:              func(cmd *cobra.Command, _ []string) error { return noReader(shell.write(cmd.Root())) },
		})
	}
	cmd := group("completion", "Print a completion script for your shell", below...)
	cmd.Long = completionLong
	return cmd
}

// newHelpCommand is cobra's, but for a command that there is not.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Show the help of a command", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			for _, name := range args {
				below := commandBelow(about, name)
				if below == nil {
					return unknownCommand(about, name)
				}
				about = below
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			about := cmd.Root()
			for _, name := range args {
				if about = commandBelow(about, name); about == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
			var names []cobra.Completion
			for _, below := range about.Commands() {
				if below.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(below.Name(), below.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// commandBelow is the command of this name below cmd; nil when there is none.
func commandBelow(cmd *cobra.Command, name string) *cobra.Command {
	for _, below := range cmd.Commands() {
		if below.Name() == name || below.HasAlias(name) {
			return below
		}
	}
	return nil
}
