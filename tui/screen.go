package tui

import (
	"io"
	"strings"
)

// screen is where the conversation appears: streamed text, whole lines between
// it, and a prompt at the end. Only the loop uses it.
type screen struct {
	out      io.Writer
	prompts  bool     // prompts are shown
	open     bool     // a line of streamed text is not finished
	prompted bool     // the prompt is on the last line
	held     []string // lines that wait until the open line is finished
}

// stream writes the next piece of streamed text, which must be clean.
func (s *screen) stream(text string) {
	if text == "" {
		return
	}
	s.leavePrompt()
	if len(s.held) > 0 {
		first, rest, found := strings.Cut(text, "\n")
		if !found {
			s.write(text)
			return
		}
		s.write(first + "\n")
		s.open = false
		s.release()
		text = rest
	}
	s.write(text)
	if text != "" {
		s.open = !strings.HasSuffix(text, "\n")
	}
}

// endStream finishes the open line and prints the held ones.
func (s *screen) endStream() {
	if s.open {
		s.write("\n")
		s.open = false
	}
	s.release()
}

// line prints a whole line: now, or when the open line is finished.
func (s *screen) line(text string) {
	if s.open {
		s.held = append(s.held, text)
		return
	}
	s.leavePrompt()
	s.write(text + "\n")
}

// prompt shows a prompt unless it is there already.
func (s *screen) prompt(text string) {
	if !s.prompts || s.prompted || s.open {
		return
	}
	s.write(text)
	s.prompted = true
}

// entered says that the person finished the line with the prompt.
func (s *screen) entered() { s.prompted = false }

// leavePrompt goes below the prompt and what was typed behind it: the terminal
// still holds that text, so it must not be wiped away.
func (s *screen) leavePrompt() {
	if s.prompted {
		s.write("\n")
		s.prompted = false
	}
}

func (s *screen) release() {
	held := s.held
	s.held = nil
	for _, line := range held {
		s.line(line)
	}
}

// write ignores errors: a closed terminal ends the conversation with a signal.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }
