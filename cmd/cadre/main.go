// Command cadre runs a team of coding agents: as a conversation on a terminal,
// or with -p for one prompt and its answer. docs/cli.md describes flags, exit
// codes and environment.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole command; it returns the exit code.
func run(args []string) int {
	if len(args) == 1 && (args[0] == "-v" || args[0] == "--version") {
		fmt.Println(versionLine()) // at once: SDKs wait for it when they start
		return exitDone
	}
	root := newRootCommand(args)
	if len(args) == 0 || !slices.Contains(completionRequests, args[0]) {
		args = spreadLists(args)
	}
	if len(args) > 0 && slices.Contains(completionRequests, args[0]) {
		withoutQuotes(root)
	}
	root.SetArgs(args)
	return report(root.ExecuteContext(context.Background()))
}
