package builtin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a text file encodes its characters.
type encoding int

const (
	utf8Text   encoding = iota // or another superset of ASCII; bytes stay as they are
	utf8Marked                 // UTF-8 after a byte order mark
	utf16LE                    // after its byte order mark
	utf16BE
)

var marks = map[encoding]string{utf8Marked: "\xef\xbb\xbf", utf16LE: "\xff\xfe", utf16BE: "\xfe\xff"}

// sniff is how much of a file is examined to decide whether it is text.
const sniff = 8 << 10

// isBinary reports whether the start of a file is not text: it has NUL bytes and is
// not UTF-16.
func isBinary(start []byte) bool {
	if bytes.HasPrefix(start, []byte(marks[utf16LE])) || bytes.HasPrefix(start, []byte(marks[utf16BE])) {
		return false
	}
	return bytes.IndexByte(start[:min(len(start), sniff)], 0) >= 0
}

// decode turns the content of a file into text without its mark. It is false
// for binary content, and when encode could not give back the same bytes.
func decode(content []byte) (string, encoding, bool) {
	for _, enc := range []encoding{utf16LE, utf16BE} {
		if rest, ok := bytes.CutPrefix(content, []byte(marks[enc])); ok {
			text := fromUTF16(rest, byteOrder(enc))
			return text, enc, bytes.Equal(encode(text, enc), content)
		}
	}
	if isBinary(content) {
		return "", utf8Text, false
	}
	if rest, ok := strings.CutPrefix(string(content), marks[utf8Marked]); ok {
		return rest, utf8Marked, true
	}
	return string(content), utf8Text, true
}

// encode is the opposite of decode.
func encode(text string, enc encoding) []byte {
	out := []byte(marks[enc])
	if enc == utf8Text || enc == utf8Marked {
		return append(out, text...)
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = byteOrder(enc).AppendUint16(out, unit)
	}
	return out
}

func byteOrder(enc encoding) interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if enc == utf16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func fromUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// usesCRLF reports whether most lines of the text end the Windows way.
func usesCRLF(text string) bool {
	return 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
}

// maxLine is how many characters of a line are shown.
const maxLine = 2000

// cutLine shortens a line that is too long to be shown. size is how many bytes
// it has, of which line may be only the first.
func cutLine(line string, size, most int) string {
	if size <= most {
		return line
	}
	end := 0
	for range most {
		_, n := utf8.DecodeRuneInString(line[end:])
		end += n // 0 at the end
	}
	if end == size {
		return line
	}
	return fmt.Sprintf("%s [… line cut: it has %d bytes]", line[:end], size)
}

// numberLine writes a line the way cat -n does.
func numberLine(b *strings.Builder, number int, line string) {
	const width = 6
	digits := strconv.Itoa(number)
	for range width - len(digits) {
		b.WriteByte(' ')
	}
	b.WriteString(digits)
	b.WriteByte('\t')
	b.WriteString(strings.ToValidUTF8(line, "\uFFFD"))
	b.WriteByte('\n')
}

// splitLines splits text into lines without their ends. A last line without an
// end counts; after a last end there is none.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}
