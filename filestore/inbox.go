package filestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// inbox is what is cached of one version of an inbox file: enough to list what is unread,
// and to go on from there when the file has grown or was marked in place, without reading
// a long history again. It is never changed.
type inbox struct {
	key       fsx.Key
	canonical bool                // the file is spelled exactly as we spell it
	end       []byte              // its last bytes
	unread    []entry             // the newest version may append to its array
	ids       *mailbox.Identities // shared with earlier versions, and used by the newest alone
}

// entry is a message, and its place in the canonical file.
type entry struct {
	message    mailbox.Message
	start, end int // of its object
	flag       int // offset of the value of "read" if that can be set in place, else 0
}

// inboxChanges is the difference between two versions of an inbox.
type inboxChanges struct {
	key   fsx.Key
	read  map[mailbox.ID]bool // messages that were marked
	added []entry             // messages that were added; they have no IDs yet
	end   []byte              // the last bytes of the file
}

// endBytes is how much of a file's end is compared to see that it has only grown: more
// than the fields after the last message's text, and these differ from message to message.
const endBytes = 256

// newInbox is an inbox with these entries, to which it gives IDs.
func newInbox(parsed []entry, content []byte) *inbox {
	return (&inbox{ids: new(mailbox.Identities)}).with(inboxChanges{added: parsed, end: endOf(content)})
}

// canIdentify reports whether IDs can be given to added messages without reading the whole
// inbox again.
func (b *inbox) canIdentify(more []entry) bool {
	return !slices.ContainsFunc(more, func(e entry) bool { return !b.ids.CanIdentify(e.message) })
}

// with is the next version of the inbox, which must be the newest one: no inbox has two
// next versions.
func (b *inbox) with(n inboxChanges) *inbox {
	next := &inbox{key: n.key, canonical: true, end: n.end, unread: b.unread, ids: b.ids}
	if len(n.read) > 0 {
		next.unread = make([]entry, 0, len(b.unread))
		for _, u := range b.unread {
			if !n.read[u.message.ID] {
				next.unread = append(next.unread, u)
			}
		}
	}
	for i := range n.added {
		n.added[i].message.ID = b.ids.Next(n.added[i].message)
		if !n.added[i].message.Read {
			next.unread = append(next.unread, n.added[i])
		}
	}
	b.ids.Forget()
	return next
}

func endOf(content []byte) []byte { return bytes.Clone(content[max(0, len(content)-endBytes):]) }

// mayHaveBecome reports whether now may be the key of a later version that has only grown,
// or was marked in place.
func (b *inbox) mayHaveBecome(now fsx.Key) bool {
	if !b.canonical || now == b.key || now.Size() > maxInbox {
		return false
	}
	return b.key.Grown(now) || b.key.SameFile(now) && b.key.Size() == now.Size() && now.Size() >= patchFrom
}

// changesIn returns how the file f, now the version key, differs from b. ok is false when
// it has not only grown or been marked.
func (b *inbox) changesIn(f io.ReaderAt, key fsx.Key) (n inboxChanges, ok bool) {
	n.key = key
	var set []int
	if key.Size() >= patchFrom {
		if n.read, set, ok = b.readMarks(f); !ok {
			return n, false
		}
	}
	at := b.key.Size() - int64(len(b.end))
	data := make([]byte, key.Size()-at)
	if _, err := f.ReadAt(data, at); err != nil {
		return n, false
	}
	n.end = endOf(data)
	known := b.endWith(set)
	if bytes.Equal(data, known) {
		return n, true
	}
	n.added, ok = addedEntries(known, data, int(at))
	return n, ok
}

// addedEntries returns the entries that were added behind the known end of a file; data is
// what the file holds from at on now. ok is false if anything else has changed.
func addedEntries(known, data []byte, at int) (more []entry, ok bool) {
	known = known[:len(known)-len(closing)]
	if !bytes.HasPrefix(data, known) || len(data) <= len(known) || data[len(known)] != ',' {
		return nil, false
	}
	added := append([]byte{'['}, data[len(known)+1:]...)
	content, err := canonicalInbox(added)
	if err != nil || !bytes.Equal(content, added) {
		return nil, false
	}
	more, err = parse(content)
	for i := range more {
		more[i] = more[i].shifted(at + len(known))
	}
	return more, err == nil
}

// shifted is the entry with so many more bytes before it.
func (e entry) shifted(by int) entry {
	e.start, e.end = e.start+by, e.end+by
	if e.flag > 0 {
		e.flag += by
	}
	return e
}

// tailOf returns the bytes that add an entry to an inbox of this size: they replace those
// from cut on.
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
	jsonx.Indent(&out, flat, entryIndent, entryIndent)
	out.Write(closing)
	tail = out.Bytes()
	if size >= patchFrom {
		tail = padFlag(tail, cut)
	}
	return tail, cut, nil
}

// withMarks returns the content with these messages marked read, and the entries that stay
// unread. The content is nil when there was nothing to mark.
func (b *inbox) withMarks(content []byte, ids []mailbox.ID) ([]byte, []entry, error) {
	var out bytes.Buffer
	var rest []entry
	copied := 0
	wanted := idSet(ids)
	for _, u := range b.unread {
		if !wanted[u.message.ID] {
			rest = append(rest, u.shifted(out.Len()-copied))
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
		jsonx.Indent(&out, flat, entryIndent, entryIndent)
		copied = u.end
	}
	if copied == 0 {
		return nil, b.unread, nil
	}
	out.Write(content[copied:])
	return out.Bytes(), rest, nil
}

// emptyInbox is how a new inbox file starts.
var emptyInbox = []byte("[]")

var errEmpty = errors.New("the file is empty")

// entryIndent begins each line of an entry.
const entryIndent = "  "

// closing ends an inbox that has entries. lastLines is closing with the end of the last
// entry, which occurs nowhere else in an inbox.
var (
	closing   = []byte("\n]")
	lastLines = []byte("\n" + entryIndent + "}\n]")
)

// canonicalInbox returns the file's content as we spell it (facts: claude-code §5.1). That
// is data itself if it is spelled so, marks in place aside.
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

// spelledAs reports whether data is the canonical content, apart from the white space
// around the values of "read", which marks in place change.
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

// span is the place of an entry in the canonical content.
type span struct{ start, end int }

// entries finds the messages of a canonical inbox; values that are not objects are none.
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

// parse reads the entries of a canonical inbox, without IDs.
func parse(content []byte) ([]entry, error) {
	var parsed []entry
	for _, s := range entries(content) {
		var doc jsonx.Object
		if err := doc.UnmarshalJSON(content[s.start:s.end]); err != nil { // it is known to be JSON
			return nil, err
		}
		e := entry{message: format.DecodeMessage(&doc), start: s.start, end: s.end}
		if at := flagIn(content[s.start:s.end]); at > 0 {
			e.flag = s.start + at
		}
		parsed = append(parsed, e)
	}
	return parsed, nil
}

// salvage returns the whole entries at the beginning of a damaged inbox, as canonical
// content.
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
