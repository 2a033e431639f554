package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/transcript"
)

// choices is how many sessions --resume without an id offers.
const choices = 10

// chooseSession asks the person which session of this folder to go on with, and
// returns its id. Without a terminal, the error lists them.
func chooseSession(ctx context.Context) (string, error) {
	infos, err := ownSessions(ctx)
	if err != nil {
		return "", err
	}
	if len(infos) == 0 {
		e := usagef("--resume: there is no session of this folder")
		e.hint = sessionsHint
		return "", e
	}
	infos = infos[:min(len(infos), choices)]
	rows := make([][]string, len(infos))
	for i, info := range infos {
		rows[i] = []string{strconv.Itoa(i + 1), info.Ref.Session, when(info.Updated), shorten(info.FirstAsk, 60)}
	}
	list := strings.Join(columnLines(rows), "\n")
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		e := usagef("--resume needs the id of a session, or the beginning of one")
		e.hint = "The newest of this folder:\n" + list
		return "", e
	}
	fmt.Fprintln(os.Stderr, list)
	for in := bufio.NewReader(os.Stdin); ; {
		fmt.Fprint(os.Stderr, "Continue which one? [1] ")
		line, err := in.ReadString('\n')
		if err != nil {
			return "", exitWith(exitInterrupted)
		}
		line = cmp.Or(strings.TrimSpace(line), "1")
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(infos) {
			return infos[n-1].Ref.Session, nil
		}
		fmt.Fprintf(os.Stderr, "%q is not one of 1 to %d.\n", line, len(infos))
	}
}

// ownSessions lists the sessions of this folder that are no teammate's, newest first.
func ownSessions(ctx context.Context) ([]transcript.Info, error) {
	root, err := stateRoot()
	if err != nil {
		return nil, err
	}
	cwd, err := workingFolder()
	if err != nil {
		return nil, err
	}
	state := cadre.OpenState(root, warnOfDamage)
	infos, err := state.Transcripts().List(ctx, cwd)
	var own []transcript.Info
	for _, info := range infos {
		if info.Agent == "" {
			own = append(own, info)
		}
	}
	if err == nil {
		err = state.Close()
	}
	return own, err
}

// lastShown is how many lines of a conversation that is resumed are shown, newest
// last.
const lastShown = 6

// showEnd says which conversation is resumed, and with shows how it ended.
func (o *options) showEnd(ctx context.Context, info cadre.Info, shows bool) {
	if !o.cont && o.resume == "" || o.quiet {
		return
	}
	state := cadre.OpenState(info.Root, warnOfDamage)
	defer func() { _ = state.Close() }() // it was only read
	entries, err := state.Transcripts().Read(ctx, transcript.Ref{Project: info.Cwd, Session: info.SessionID})
	if err != nil || len(entries) == 0 {
		return // whoever opened it says what is wrong
	}
	last := entries[len(entries)-1].At
	o.note(fmt.Sprintf("Continuing session %s, last used %s: %s", info.SessionID, when(last), firstWords(entries)))
	if !shows {
		return
	}
	var parts []string
	for _, e := range entries {
		var b strings.Builder
		writeEntry(&b, e)
		if b.Len() > 0 {
			parts = append(parts, b.String())
		}
	}
	o.note(strings.Join(parts[max(0, len(parts)-lastShown):], ""))
}

// firstWords is the first thing that somebody said in a conversation.
func firstWords(entries []transcript.Entry) string {
	for _, e := range entries {
		if e.Kind != transcript.KindUser || e.Sidechain {
			continue
		}
		if words := transcript.WithoutReminders(transcript.JoinText(e.Message.Content)); words != "" {
			return shorten(words, 60)
		}
	}
	return ""
}
