package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// maxPrompt is the largest prompt in bytes: more than any model reads.
const maxPrompt = 64 << 20

// stdinPatience is how long stdin may be silent when there is also an argument: a
// parent that leaves a pipe open must not block the run for ever.
const stdinPatience = 3 * time.Second

// readPrompt joins the arguments and what stdin holds, in this order.
func readPrompt(args []string, stdin *os.File, warn func(string)) (string, error) {
	return readPromptWithin(args, stdin, stdinPatience, warn)
}

func readPromptWithin(args []string, stdin *os.File, patience time.Duration, warn func(string)) (string, error) {
	text := strings.Join(args, " ")
	if term.IsTerminal(int(stdin.Fd())) {
		return text, nil
	}
	if text != "" && !readable(stdin, patience) {
		warn(fmt.Sprintf("nothing came on stdin within %s; going on without it", patience))
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
	if err != nil {
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	}
	if len(data) > maxPrompt {
		return "", usagef("the prompt on stdin has more than %d MB: put it into a file and name that", maxPrompt>>20)
	}
	piped := strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
	switch {
	case text == "":
		return piped, nil
	case piped == "":
		return text, nil
	}
	return text + "\n\n" + piped, nil
}
