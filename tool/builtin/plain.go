package builtin

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// plain is the output of a program without what is meant for a terminal: colours,
// cursor movements, titles, clipboard writes (ECMA-48 control functions). Of a line
// that was overwritten, as progress bars do, the last version remains.
// The result is valid UTF-8 and has no control characters but tab and newline.
func plain(raw []byte) string { return plainUpTo(raw, false) }

// plainUpTo is plain for the start of a longer output when cut is set: a sequence
// that is open at its end then continues in the rest.
func plainUpTo(raw []byte, cut bool) string {
	p := plainText{raw: raw, cut: cut, lastEnd: max(bytes.LastIndexByte(raw, '\a'), bytes.LastIndex(raw, []byte("\x1b\\")))}
	for p.at < len(p.raw) {
		p.step()
	}
	return string(p.out)
}

type plainText struct {
	raw     []byte
	cut     bool // there was more of it
	at      int
	lastEnd int // of the last thing that can end a string sequence

	out   []byte
	line  int  // where in out the current line begins
	again bool // a carriage return came: the next character begins the line anew
}

// step consumes one character or sequence.
func (p *plainText) step() {
	r, size := utf8.DecodeRune(p.raw[p.at:])
	p.at += size
	switch {
	case r == '\x1b':
		p.escape()
	case r >= 0x80 && r <= 0x9f: // the same functions in one character
		p.function(byte(r) - 0x40)
	case r == '\n':
		p.out = append(p.out, '\n')
		p.line, p.again = len(p.out), false
	case r == '\r':
		p.again = true
	case r == '\b':
		if len(p.out) > p.line {
			_, last := utf8.DecodeLastRune(p.out)
			p.out = p.out[:len(p.out)-last]
		}
	case r == '\t' || r >= 0x20 && r != 0x7f:
		if p.again {
			p.out, p.again = p.out[:p.line], false
		}
		p.out = utf8.AppendRune(p.out, r)
	}
}

// escape consumes what follows an escape character.
func (p *plainText) escape() {
	if p.at == len(p.raw) {
		return
	}
	next := p.raw[p.at]
	switch {
	case next >= 0x40 && next <= 0x5f:
		p.at++
		p.function(next)
	case next >= 0x20 && next <= 0x2f: // intermediate bytes, then a final one
		p.skip(0x20, 0x2f)
		p.skipOne(0x30, 0x7e)
	default:
		p.skipOne(0x30, 0x7e)
	}
}

// function consumes the rest of a control function of the set C1, named by the
// byte that follows the escape character.
func (p *plainText) function(name byte) {
	switch name {
	case '[': // parameters, intermediate bytes, a final byte
		p.skip(0x30, 0x3f)
		p.skip(0x20, 0x2f)
		p.skipOne(0x40, 0x7e)
	case ']', 'P', 'X', '^', '_': // a string up to its end
		p.skipString()
	}
}

func (p *plainText) skip(low, high byte) {
	for p.at < len(p.raw) && p.raw[p.at] >= low && p.raw[p.at] <= high {
		p.at++
	}
}

func (p *plainText) skipOne(low, high byte) {
	if p.at < len(p.raw) && p.raw[p.at] >= low && p.raw[p.at] <= high {
		p.at++
	}
}

// skipString skips to behind BEL or ESC \. A string without an end remains
// as text: that is better than losing everything that follows.
func (p *plainText) skipString() {
	if p.lastEnd < p.at {
		if p.cut {
			p.at = len(p.raw)
		}
		return
	}
	for i := p.at; i < len(p.raw); i++ {
		if p.raw[i] == '\a' {
			p.at = i + 1
			return
		}
		if p.raw[i] == '\x1b' && i+1 < len(p.raw) && p.raw[i+1] == '\\' {
			p.at = i + 2
			return
		}
	}
}

// middleOut shortens text to about most characters, half from its start and
// half from its end, cut at line ends where there are some near. It returns
// both halves; the second is empty when nothing had to go.
func middleOut(text string, most int) (head, tail string) {
	if utf8.RuneCountInString(text) <= most {
		return text, ""
	}
	return firstPart(text, most/2), lastPart(text, most/2)
}

func firstPart(text string, most int) string {
	end := 0
	for range most {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	part := text[:end]
	if end < len(text) {
		if i := strings.LastIndexByte(part, '\n'); i > len(part)*3/4 {
			part = part[:i]
		}
	}
	return part
}

func lastPart(text string, most int) string {
	start := len(text)
	for range most {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	part := text[start:]
	if start > 0 {
		if i := strings.IndexByte(part, '\n'); i >= 0 && i < len(part)/4 {
			part = part[i+1:]
		}
	}
	return part
}
