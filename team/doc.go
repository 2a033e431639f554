// Package team is the policy and the protocol of a team of agents: who belongs
// to it, who may write to whom, how mail is shown to a model, how agents go
// idle, take tasks and shut down. It owns no session: sessions hold a [Seat]
// and an [Inbox], and the runtime starts and stops them through a [Backend].
//
// An agent runs in its lead's process, or has one of its own ([Teams.Join]). Both
// are the same to their team: a seat, an inbox, and what lies in the stores. What
// a process must know of another is there, and in the places that agents and leads
// take ([roster.Presence]).
//
// Messages of the protocol travel as JSON in the text of ordinary mail, because
// the file format has no other place (facts: claude-code §5). So that nothing a
// model wrote acts as protocol, or speaks in another's name, our runtimes seal
// what they post ([mailbox.Seals]). What has no seal counts only when it comes
// from another program's agent, which cannot seal, and then only as far as a mixed
// team needs; anything else is shown as text of an unverified sender.
package team
