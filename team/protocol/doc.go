// Package protocol is what agents of a team say to each other's runtime: shutdowns,
// idle notes, plans, permissions, assignments. A message of the protocol is JSON in
// the text of ordinary mail, because the shared format has no other place for it
// (facts: claude-code §5). [Parse] reads one; [Wrap] shows any message to a model in a
// form that it cannot break out of; [Describe] shows one to a person in a line.
//
// The package decides nothing: whether a message may be acted on is for package team
// (its file receive.go), since anybody may write such a text.
package protocol
