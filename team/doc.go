// Package team is the policy and the protocol of a team of agents: who belongs
// to it, who may write to whom, how mail is shown to a model, how agents go
// idle, take tasks and shut down. It owns no session: sessions hold a [Seat]
// and an [Inbox], and the runtime starts and stops them through a [Backend].
//
// Messages of the protocol travel as JSON in the text of ordinary mail, because
// the file format has no other place (facts: claude-code §5). So that nothing a
// model wrote acts as protocol, only the messages that this process posted as
// protocol itself are acted on; any other is shown as the text it is.
package team
