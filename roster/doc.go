// Package roster says who belongs to a team. A [Roster] is the team's shared file,
// which other programs read and write too; [Records] is what is ours alone beside it;
// [Presence] says which agents have a process that runs. The package also decides
// which names an agent or a team may have, since a name is an address and must not be
// mistaken for another's.
//
// Some programs write a roster without a lock. A lead therefore works through a
// [RepairingStore], which knows whom the lead has enrolled and restores the roster
// when an older version has replaced it.
//
// The package knows no mail, no session and no process: what a team does with its
// members is in package team.
package roster
