// Package prompt makes what stands before a conversation: the system prompt,
// the instruction files of user and project in it, and what a sub-agent is told
// first. Equal options give equal bytes, because providers keep what stays the
// same from turn to turn, and across the agents of a team, in their cache.
package prompt

import (
	_ "embed"
	"fmt"
	"strings"
)

// core is kept as a file, so that changes of the text can be read.
//
//go:embed core.md
var core string

// Options are what a system prompt is made of. All agents of a session tree use
// the same ones, so that their system prompts are identical; nothing in them may
// change while the tree lives.
type Options struct {
	Cwd      string
	AddDirs  []string // further working folders
	Platform string   // as in [runtime.GOOS]
	Git      bool     // Cwd lies in a git repository
	Date     string   // the day, and not the time: it stays the same from turn to turn
	// Custom replaces our own text and the description of the environment
	// (--system-prompt); a pointer to "" leaves neither.
	Custom *string
	// Append stands at the end (--append-system-prompt).
	Append       string
	Instructions []File
}

// System returns the blocks of the system prompt, the most general first. None
// of them is empty.
func System(o Options) []string {
	var blocks []string
	add := func(text string) {
		if strings.TrimSpace(text) != "" {
			blocks = append(blocks, text)
		}
	}
	if o.Custom != nil {
		add(*o.Custom)
	} else {
		add(strings.TrimSpace(core))
		add(environment(o))
	}
	add(instructions(o.Instructions))
	add(o.Append)
	return blocks
}

func environment(o Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Environment\n\nWorking folder: %s\n", o.Cwd)
	for _, dir := range o.AddDirs {
		fmt.Fprintf(&b, "Further working folder: %s\n", dir)
	}
	git := "no"
	if o.Git {
		git = "yes"
	}
	fmt.Fprintf(&b, "Git repository: %s\nPlatform: %s\nToday's date: %s", git, o.Platform, o.Date)
	return b.String()
}

// instructions is the block with all instruction files, or "". No file can end
// its own element or begin another.
func instructions(files []File) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Instructions\n\nThe person and the project have left the following instructions for agents. " +
		"Follow them; where they differ from the above, they count, and a later file counts more than an earlier one.\n")
	for _, f := range files {
		fmt.Fprintf(&b, "\n<instructions from=%q>\n%s\n</instructions>\n", f.Path, escapeTags.Replace(strings.TrimSpace(f.Text)))
	}
	return strings.TrimSpace(b.String())
}

var escapeTags = strings.NewReplacer("</instructions", `<\/instructions`, "<instructions", `<\instructions`)
