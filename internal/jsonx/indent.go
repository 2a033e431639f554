package jsonx

import "bytes"

// maxIndent is up to which depth values get lines of their own. Indentation costs as
// much as the depth, for every value: without a bound, a few kilobytes of brackets in
// a file would become hundreds of megabytes.
const maxIndent = 16

// Indent appends the valid JSON src as [encoding/json.Indent] does, except that values
// nested deeper than anything we write stay on one line.
func Indent(dst *bytes.Buffer, src []byte, prefix, indent string) {
	in := indenter{dst: dst, prefix: prefix, indent: indent}
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + stringLen(src[i:])
			dst.Write(src[i:end])
			i = end - 1
		case '{', '[':
			in.open(c, src[i+1:])
		case '}', ']':
			in.close(c)
		case ',':
			dst.WriteByte(c)
			in.line()
		case ':':
			dst.WriteString(": ")
		default:
			dst.WriteByte(c)
		}
	}
}

type indenter struct {
	dst            *bytes.Buffer
	prefix, indent string
	depth          int
	empty          bool // the value that was just opened has nothing in it
}

func (in *indenter) open(c byte, rest []byte) {
	in.dst.WriteByte(c)
	in.depth++
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if in.empty = len(rest) > 0 && (rest[0] == '}' || rest[0] == ']'); !in.empty {
		in.line()
	}
}

func (in *indenter) close(c byte) {
	if !in.empty && in.depth <= maxIndent {
		in.depth--
		in.line()
	} else {
		in.depth--
	}
	in.empty = false
	in.dst.WriteByte(c)
}

// line begins a line, unless that is too deep.
func (in *indenter) line() {
	if in.depth > maxIndent {
		return
	}
	in.dst.WriteByte('\n')
	in.dst.WriteString(in.prefix)
	for range in.depth {
		in.dst.WriteString(in.indent)
	}
}

// stringLen is the length of the string that text begins with.
func stringLen(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
