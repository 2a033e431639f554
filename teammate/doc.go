// Package teammate is where the teammates of a team run: as sessions of their lead's
// process, as programs in panes of a terminal, or as the main session of a process of
// their own. It starts and stops them for package team ([team.Backend]), brings them
// back when their lead is resumed, and carries their questions to those who may answer.
//
// What teammates say to each other, and who belongs to the team, is not decided here.
package teammate
