package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// flagCandidates is complete for the value of a flag.
func flagCandidates(find candidates) cobra.CompletionFunc {
	ofArgument := complete(find)
	return func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return ofArgument(cmd, nil, word)
	}
}

// oneOf completes a flag whose value is one of these words.
func oneOf(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder)
}

// someOf completes a flag whose value is a list of these words.
func someOf(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var found []cobra.Completion
		for _, word := range words {
			if !slices.Contains(strings.Split(before, ","), word) {
				found = append(found, before+word)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func completeFolder(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func completeSettings(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"json", "jsonc"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeTools(cmd *cobra.Command, before []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, s := range builtin.Specs() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return someOf(names...)(cmd, before, typed)
}

// completeModel offers the models that cadre knows and the scripts in this folder. Once
// it is clear that a script is wanted, it offers the folders that may hold one, too.
func completeModel(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	path, scripts := strings.CutPrefix(typed, scripted.Prefix)
	begins := len(typed) >= 2 && strings.HasPrefix(scripted.Prefix, typed) //nolint:gocritic // what was typed may be its beginning
	if !scripts && !begins {
		return append(provider.Names(), scriptsIn("", false)...), directive
	}
	if !scripts {
		path = ""
	}
	return scriptsIn(path, true), directive | cobra.ShellCompDirectiveNoSpace
}

// scriptsIn are the scripted models whose path begins with what was typed of it, and
// if wanted the folders on the way to others.
func scriptsIn(typed string, withFolders bool) []cobra.Completion {
	folder := typed[:strings.LastIndexAny(typed, `/\`)+1]
	files, _ := os.ReadDir(filepath.Clean(folder)) // "" becomes "."
	var found []cobra.Completion
	for _, f := range files {
		word, ext := scripted.Prefix+folder+f.Name(), filepath.Ext(f.Name())
		switch {
		case strings.HasPrefix(f.Name(), ".") || cleanCell(word) != word:
		case f.IsDir() && withFolders:
			found = append(found, word+"/")
		case !f.IsDir() && (ext == ".jsonc" || ext == ".json" && withFolders):
			found = append(found, word)
		}
	}
	return found
}

// completions are those of the flags of a conversation. Flags that are not named here
// have a value that only the person knows.
func completions(flag string) cobra.CompletionFunc {
	switch flag {
	case "output-format":
		return oneOf(formatText, formatJSON, formatStream)
	case "input-format":
		return oneOf(formatText)
	case "model":
		return completeModel
	case "permission-mode":
		modes := make([]string, len(permission.Modes))
		for i, m := range permission.Modes {
			modes[i] = string(m)
		}
		return oneOf(modes...)
	case "allowed-tools", "disallowed-tools", "tools":
		return completeTools
	case "add-dir":
		return completeFolder
	case "resume":
		return flagCandidates(ownSessionCandidates)
	case "settings":
		return completeSettings
	case "setting-sources":
		return someOf(string(config.User), string(config.Project), string(config.Local))
	case "teammate-mode":
		return oneOf(config.TeammateModes...)
	}
	return cobra.NoFileCompletions
}
