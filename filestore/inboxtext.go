package filestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// emptyInbox is how a new inbox file starts.
var emptyInbox = []byte("[]")

var errEmpty = errors.New("the file is empty")

// entryIndent stands before each line of an entry.
const entryIndent = "  "

// closing ends an inbox that has entries; lastLines is how the last entry ends
// too, which nothing inside an inbox does.
var (
	closing   = []byte("\n]")
	lastLines = []byte("\n" + entryIndent + "}\n]")
)

// canonicalInbox returns the file's content as we spell it (facts: claude-code
// §5.1), which is data itself if it is spelled so, or was and has been marked.
func canonicalInbox(data []byte) ([]byte, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errEmpty
	}
	if data[0] != '[' {
		return nil, fmt.Errorf("want a JSON array, found %q", data[0])
	}
	var whole json.RawMessage // deep nesting is refused here, before it is indented
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(len(data) + len(data)/8)
	jsonx.Indent(&buf, data, "", entryIndent)
	if spelledAs(buf.Bytes(), data) {
		return data, nil
	}
	return buf.Bytes(), nil
}

// spelledAs reports whether data is the canonical content, but for the white
// space around the value of "read", which marks in place change.
func spelledAs(content, data []byte) bool {
	for {
		at := bytes.Index(data, readKey)
		if at < 0 {
			return bytes.Equal(content, data)
		}
		at += len(readKey)
		if len(content) < at || !bytes.Equal(content[:at], data[:at]) {
			return false
		}
		content, data = bytes.TrimLeft(content[at:], " "), bytes.TrimLeft(data[at:], " ")
		for _, value := range [][]byte{flagUnset, bytes.TrimRight(flagSet, " ")} {
			if bytes.HasPrefix(content, value) && bytes.HasPrefix(data, value) {
				content, data = content[len(value):], bytes.TrimLeft(data[len(value):], " ")
				break
			}
		}
	}
}

// span is where an entry stands in the canonical content.
type span struct{ start, end int }

// entries finds the objects of a canonical inbox; entries of other types are no
// messages.
func entries(content []byte) []span {
	var spans []span
	for at := len("[\n"); at < len(content)-1; {
		start := at + len(entryIndent)
		var end int
		line := bytes.IndexByte(content[at:], '\n') + at
		if opens := content[line-1]; line == start+1 && (opens == '{' || opens == '[') {
			// A canonical value ends at the first line with its indentation.
			end = line + bytes.Index(content[line:], []byte("\n"+entryIndent+string(opens+2))) + len("\n"+entryIndent+"}")
		} else {
			end = start + len(bytes.TrimSuffix(content[start:line], []byte(",")))
		}
		if content[start] == '{' {
			spans = append(spans, span{start, end})
		}
		at = bytes.IndexByte(content[end:], '\n') + end + 1
	}
	return spans
}

// parse reads the entries of a canonical inbox; IDs are not given yet.
func parse(content []byte) ([]entry, error) {
	var parsed []entry
	for _, s := range entries(content) {
		var doc jsonx.Object
		if err := doc.UnmarshalJSON(content[s.start:s.end]); err != nil { // it is known to be JSON
			return nil, err
		}
		e := entry{message: decodeMessage(&doc), start: s.start, end: s.end}
		if at := flagIn(content[s.start:s.end]); at > 0 {
			e.flag = s.start + at
		}
		parsed = append(parsed, e)
	}
	return parsed, nil
}

// salvage returns the whole entries before the place where a torn inbox breaks
// off, as canonical content.
func salvage(data []byte) []byte {
	entries := []json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return emptyInbox
	}
	for dec.More() {
		var entry json.RawMessage
		if err := dec.Decode(&entry); err != nil {
			break // also io.ErrUnexpectedEOF: here it was torn
		}
		entries = append(entries, entry)
	}
	content, err := jsonx.MarshalIndent(entries)
	if err != nil {
		return emptyInbox
	}
	return content
}
