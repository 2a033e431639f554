package roster

import (
	"cmp"
	"slices"
)

// enrolled is who should be on a roster, as far as a lead knows, and who has left.
type enrolled struct {
	members  []Member         // as they last stood there
	vanished map[string]bool  // those of them that are missing and have not left
	left     map[string]int64 // by agent id: when the last one who has left had joined
	// shared is set once a teammate had a process of its own: only then is there a
	// program that may write the roster without a lock.
	shared bool
}

func newEnrolled() *enrolled {
	return &enrolled{vanished: make(map[string]bool), left: make(map[string]int64)}
}

func (e *enrolled) add(m Member) {
	e.members = append(e.members, m)
	e.shared = e.shared || m.Apart()
	delete(e.left, m.AgentID)
}

// differs reports whether repair would change a roster's members.
func (e *enrolled) differs(on []Member) bool {
	at := 0
	for _, m := range e.members {
		i := findFrom(on, m.Name, at)
		if i < 0 || !samePlace(on[i], m) {
			return true
		}
		at = i + 1
	}
	return slices.ContainsFunc(on, e.hasLeft)
}

// hasLeft reports whether a member on the roster is one who has left.
func (e *enrolled) hasLeft(m Member) bool { return m.JoinedAt != 0 && e.left[m.AgentID] == m.JoinedAt }

// samePlace reports whether two entries agree in what only the lead writes: which agent
// it is, and where it runs. Other programs may change the rest.
func samePlace(a, b Member) bool {
	return a.JoinedAt == b.JoinedAt && a.PaneID == b.PaneID && a.BackendType == b.BackendType
}

// missing lists who should be on the roster and is not.
func (e *enrolled) missing(on []Member) []Member {
	var missing []Member
	for i, m := range e.members {
		if at := findFrom(on, m.Name, i); at < 0 || on[at].JoinedAt != m.JoinedAt {
			missing = append(missing, m)
		}
	}
	return missing
}

// confirmMissing records whether a missing teammate has left or has vanished.
func (e *enrolled) confirmMissing(m Member, left bool) {
	if !left {
		e.vanished[m.Name] = true
		return
	}
	delete(e.vanished, m.Name)
	e.members = slices.DeleteFunc(e.members, func(known Member) bool {
		return known.Name == m.Name && known.JoinedAt == m.JoinedAt
	})
	e.left[m.AgentID] = m.JoinedAt
}

// repair returns the members as they should be: without those that have left, with those
// that have vanished in their former position, each with the backend and pane where it
// runs. It changes the slice that it is given.
func (e *enrolled) repair(on []Member) (mended []Member, changed bool) {
	mended = slices.DeleteFunc(on, e.hasLeft)
	changed = len(mended) < len(on)
	at := min(1, len(mended)) // behind the lead
	for _, m := range e.members {
		i := findFrom(mended, m.Name, at)
		switch {
		case i >= 0 && samePlace(mended[i], m):
		case i >= 0 && mended[i].JoinedAt == m.JoinedAt:
			mended[i].PaneID, mended[i].BackendType, changed = m.PaneID, m.BackendType, true
		case !e.vanished[m.Name]:
			continue // it may have left just now
		case i >= 0:
			mended[i], changed = m, true // a former one had its name
		default:
			mended, changed = slices.Insert(mended, at, m), true
			i = at
		}
		at = i + 1
	}
	return mended, changed
}

// adopt takes over what other programs have written in the entries of members.
func (e *enrolled) adopt(on []Member) {
	for i, m := range e.members {
		if at := findFrom(on, m.Name, i); at >= 0 && on[at].JoinedAt == m.JoinedAt {
			e.members[i] = on[at]
			e.members[i].PaneID, e.members[i].BackendType = m.PaneID, m.BackendType
			delete(e.vanished, m.Name)
		}
	}
}

// noteWrite remembers a roster that the lead writes, and returns the members whose
// backend or pane it changes.
func (e *enrolled) noteWrite(on []Member) (moved []Member) {
	for i, m := range e.members {
		at := findFrom(on, m.Name, i)
		if at < 0 || on[at].JoinedAt != m.JoinedAt {
			continue
		}
		e.members[i] = on[at]
		e.shared = e.shared || on[at].Apart()
		if !samePlace(on[at], m) {
			moved = append(moved, on[at])
		}
	}
	return moved
}

// restore loads the enrolments and agent records that an earlier process of the lead
// stored. A teammate with an agent record that is missing from the roster has vanished.
// Teammates that an older version of this program enrolled are known from the roster
// only.
func (e *enrolled) Recall(on []Member, places []Enrolment, mates []AgentRecord) {
	for _, p := range places {
		e.shared = e.shared || p.Member.Apart()
		isMate := slices.ContainsFunc(mates, func(r AgentRecord) bool { return r.Name == p.Member.Name && r.Ended == nil })
		switch {
		case p.Left:
			e.left[p.Member.AgentID] = p.Member.JoinedAt
		case isMate || slices.ContainsFunc(on, p.is):
			e.add(p.Member)
		}
	}
	for _, r := range mates {
		at := findFrom(on, r.Name, 0)
		if at >= 0 && !slices.ContainsFunc(places, func(p Enrolment) bool { return p.Member.Name == r.Name }) {
			e.add(on[at])
		}
	}
	// In the order of the roster, so that each is found where it is looked for first.
	slices.SortStableFunc(e.members, func(a, b Member) int { return cmp.Compare(a.JoinedAt, b.JoinedAt) })
}

// findFrom is the index of the member with this name, or -1. The search begins at the
// given index, where the member usually is.
func findFrom(on []Member, name string, at int) int {
	for i := range on {
		if i = (i + at) % len(on); on[i].Name == name {
			return i
		}
	}
	return -1
}
