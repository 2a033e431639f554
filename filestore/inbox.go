package filestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// inbox is what is remembered of one version of an inbox file: enough to list
// what is unread, and to go on from there when the file grew. The file's bytes
// are not kept. An inbox is not changed once made.
type inbox struct {
	key       fsx.Key
	canonical bool                // the file is spelled exactly as we would spell it
	end       []byte              // its last bytes
	unread    []entry             // what is not marked read
	ids       *mailbox.Identities // belongs to the newest version alone
	broken    error               // the version cannot be read; nothing else counts
}

// entry is a message, and where its object stands in the canonical file.
type entry struct {
	message    mailbox.Message
	start, end int
}

// endBytes is how much of a file's end tells that it only grew: more than the
// fields around the last message's text, which do not repeat.
const endBytes = 256

// emptyInbox is how a new inbox file starts.
var emptyInbox = []byte("[]")

var errEmpty = errors.New("the file is empty")

// entryIndent stands before each line of an entry.
const entryIndent = "  "

// canonicalInbox returns the file's content as we spell it (facts: claude-code
// §5.1), which is data itself if it is spelled so.
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
	if err := json.Indent(&buf, data, "", entryIndent); err != nil {
		return nil, err
	}
	if bytes.Equal(buf.Bytes(), data) {
		return data, nil
	}
	return buf.Bytes(), nil
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
		if err := json.Unmarshal(content[s.start:s.end], &doc); err != nil {
			return nil, err
		}
		parsed = append(parsed, entry{decodeMessage(&doc), s.start, s.end})
	}
	return parsed, nil
}

// newInbox is the inbox with these entries, which get their IDs.
func newInbox(parsed []entry, content []byte) *inbox {
	return (&inbox{ids: new(mailbox.Identities)}).plus(parsed, content)
}

// plus is the inbox with more entries, which get their IDs; content is the end
// of the canonical file. The inbox it is made of must not grow a second time.
func (b *inbox) plus(more []entry, content []byte) *inbox {
	next := &inbox{ids: b.ids, unread: slices.Clip(b.unread), canonical: true}
	for i := range more {
		more[i].message.ID = b.ids.Next(more[i].message)
		if !more[i].message.Read {
			next.unread = append(next.unread, more[i])
		}
	}
	next.end = endOf(content)
	return next
}

func endOf(content []byte) []byte { return bytes.Clone(content[max(0, len(content)-endBytes):]) }

// growth returns the entries in data, the file's bytes from at on, that were
// added behind what b knows. ok is false unless they were only added.
func (b *inbox) growth(data []byte, at int64) (more []entry, ok bool) {
	known := b.end[:len(b.end)-len(closing)]
	if !bytes.HasPrefix(data, known) || len(data) <= len(known) || data[len(known)] != ',' {
		return nil, false
	}
	added := append([]byte{'['}, data[len(known)+1:]...)
	content, err := canonicalInbox(added)
	if err != nil || len(content) != len(added) {
		return nil, false
	}
	more, err = parse(content)
	for i := range more {
		more[i].start += int(at) + len(known)
		more[i].end += int(at) + len(known)
	}
	return more, err == nil
}

// closing ends an inbox that has entries; lastLines is how the last entry ends
// too, which nothing inside an inbox does.
var (
	closing   = []byte("\n]")
	lastLines = []byte("\n" + entryIndent + "}\n]")
)

// tailOf returns what an entry adds to an inbox whose content ends at size: it
// replaces the bytes from cut on.
func tailOf(size int, doc jsonx.Object) (tail []byte, cut int, err error) {
	flat, err := doc.MarshalJSON()
	if err != nil {
		return nil, 0, err
	}
	before := ","
	cut = size - len(closing)
	if size == len(emptyInbox) {
		before, cut = "", len("[")
	}
	var out bytes.Buffer
	out.WriteString(before + "\n" + entryIndent)
	if err := json.Indent(&out, flat, entryIndent, entryIndent); err != nil {
		return nil, 0, err
	}
	out.Write(closing)
	return out.Bytes(), cut, nil
}

// marked returns content with these messages of box marked read, and what stays
// unread of it. Nothing is marked when the content returned is nil.
func (b *inbox) marked(content []byte, ids []mailbox.ID) ([]byte, []entry, error) {
	var out bytes.Buffer
	var rest []entry
	copied := 0
	wanted := make(map[mailbox.ID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for _, u := range b.unread {
		if !wanted[u.message.ID] {
			shift := out.Len() - copied
			rest = append(rest, entry{u.message, u.start + shift, u.end + shift})
			continue
		}
		var doc jsonx.Object
		if err := json.Unmarshal(content[u.start:u.end], &doc); err != nil {
			return nil, nil, err
		}
		doc.Set("read", true)
		flat, err := doc.MarshalJSON()
		if err != nil {
			return nil, nil, err
		}
		out.Write(content[copied:u.start])
		if err := json.Indent(&out, flat, entryIndent, entryIndent); err != nil {
			return nil, nil, err
		}
		copied = u.end
	}
	if copied == 0 {
		return nil, b.unread, nil
	}
	out.Write(content[copied:])
	return out.Bytes(), rest, nil
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
