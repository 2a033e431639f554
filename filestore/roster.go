package filestore

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/roster"
)

// rosterFile is a version of a roster file, and is never changed. The next version shares
// the members that stay as they are, so that a change costs as much as it changes, and the
// rest of a long roster no more than a copy of its bytes.
type rosterFile struct {
	key     fsx.Key
	certain atomic.Bool  // while the file has the key, it has this content
	data    []byte       // of the file
	head    jsonx.Object // its fields, without members
	members []rosterMember
	config  roster.Roster // all of it, decoded
}

// rosterMember is a member as it stands in a file.
type rosterMember struct {
	id   string
	text []byte // indented for its place in the file
}

const memberIndent = "    "

var (
	membersInHead = []byte("\n  \"" + format.MembersKey + "\": ") // no string has a line break in it
)

// readRoster decodes a roster file.
func readRoster(data []byte) (*rosterFile, error) {
	r := &rosterFile{data: data}
	err := json.Unmarshal(data, &r.head)
	if err == nil {
		r.config, err = format.DecodeRoster(&r.head)
	}
	var members []json.RawMessage
	if err == nil {
		_, err = r.head.Get(format.MembersKey, &members)
	}
	if err != nil {
		return nil, err
	}
	for _, raw := range members {
		var doc jsonx.Object
		if err := json.Unmarshal(raw, &doc); err != nil {
			return nil, err
		}
		r.add(doc, raw)
	}
	r.head.Set(format.MembersKey, format.NoMembers)
	r.config.Members = slices.Clip(r.config.Members) // it is shared, so an append must copy it
	return r, nil
}

// add adds a member, spelled in any way.
func (r *rosterFile) add(doc jsonx.Object, raw []byte) {
	var text bytes.Buffer
	jsonx.Indent(&text, raw, memberIndent, "  ")
	m := format.DecodeMember(&doc)
	r.members = append(r.members, rosterMember{m.AgentID, text.Bytes()})
	r.config.Members = append(r.config.Members, m)
}

// with is the next version of the roster, with the content c. A member is the old
// one with the same agent id.
func (r *rosterFile) with(c roster.Roster) (*rosterFile, error) {
	next := &rosterFile{head: format.EncodeRoster(r.head.Clone(), c), members: make([]rosterMember, 0, len(c.Members))}
	config, err := format.DecodeRoster(&next.head)
	if err != nil {
		return nil, err
	}
	config.Members = make([]roster.Member, 0, len(c.Members))
	next.config = config
	for i, m := range c.Members {
		was := r.find(m.AgentID, i)
		if was >= 0 && sameMember(m, r.config.Members[was]) {
			next.members = append(next.members, r.members[was])
			next.config.Members = append(next.config.Members, r.config.Members[was])
			continue
		}
		if err := next.addChanged(r, was, m); err != nil {
			return nil, err
		}
	}
	next.data, err = next.encode()
	return next, err
}

// addChanged adds a member, written over the one that stands in old at was, or
// over none when that is -1.
func (r *rosterFile) addChanged(old *rosterFile, was int, m roster.Member) error {
	var doc jsonx.Object
	if was >= 0 {
		if err := json.Unmarshal(old.members[was].text, &doc); err != nil {
			return err
		}
	}
	doc = format.EncodeMember(doc, m)
	raw, err := doc.MarshalJSON()
	if err == nil {
		r.add(doc, raw)
	}
	return err
}

// at is the same roster as the version key of the file.
func (r *rosterFile) at(key fsx.Key) *rosterFile {
	return &rosterFile{key: key, data: r.data, head: r.head, members: r.members, config: r.config}
}

// find is the index of the member with an agent id, or -1. It looks from at on first,
// where most members still are.
func (r *rosterFile) find(id string, at int) int {
	if at < len(r.members) {
		if i := slices.IndexFunc(r.members[at:], func(m rosterMember) bool { return m.id == id }); i >= 0 {
			return at + i
		}
	}
	return slices.IndexFunc(r.members, func(m rosterMember) bool { return m.id == id })
}

// encode is the content of the file.
func (r *rosterFile) encode() ([]byte, error) {
	head, err := jsonx.MarshalIndent(r.head)
	if err != nil || len(r.members) == 0 {
		return head, err
	}
	before, after, _ := bytes.Cut(head, append(slices.Clip(membersInHead), format.NoMembers...))
	size := len(head) + len(membersInHead)
	for _, m := range r.members {
		size += len(m.text) + len(",\n") + len(memberIndent)
	}
	out := bytes.NewBuffer(make([]byte, 0, size))
	out.Write(before)
	out.Write(membersInHead)
	separator := "["
	for _, m := range r.members {
		out.WriteString(separator + "\n" + memberIndent)
		out.Write(m.text)
		separator = ","
	}
	out.WriteString("\n  ]")
	out.Write(after)
	return out.Bytes(), nil
}

// sameMember reports whether two members are equal.
func sameMember(a, b roster.Member) bool {
	return a.AgentID == b.AgentID && a.Name == b.Name && a.AgentType == b.AgentType && a.Model == b.Model &&
		a.Prompt == b.Prompt && a.Color == b.Color && a.PlanModeRequired == b.PlanModeRequired &&
		a.JoinedAt == b.JoinedAt && a.PaneID == b.PaneID && a.Cwd == b.Cwd && a.BackendType == b.BackendType &&
		slices.Equal(a.Subscriptions, b.Subscriptions) && sameFlag(a.IsActive, b.IsActive) && a.Extra.Equal(&b.Extra)
}

func sameFlag(a, b *bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
