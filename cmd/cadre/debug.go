package main

import (
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/lazy"
)

// debugLog is the file that --debug writes: one line for each event, without
// the pieces of streamed text. A nil log accepts everything and writes nothing.
type debugLog struct {
	file *os.File
	log  *slog.Logger
}

// openDebugLog opens the log of a session, and prints where it is. It returns nil
// without --debug.
func (o *options) openDebugLog(info cadre.Info) (*debugLog, error) {
	if !o.debug {
		return nil, nil
	}
	path := info.Root.DebugLog(info.SessionID)
	if err := os.MkdirAll(filepath.Dir(path), layout.DirMode); err != nil {
		return nil, fmt.Errorf("make the folder of the debug log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, layout.FileMode)
	if err != nil {
		return nil, fmt.Errorf("open the debug log: %w", err)
	}
	o.note("debug log: " + path)
	out := &redactor{out: file, secrets: secretsOf(append(os.Environ(), info.Env...))}
	d := &debugLog{file, slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	d.log.Info("start", "version", versionLine(), "session", info.SessionID, "cwd", info.Cwd, "model", info.Model,
		"mode", info.Mode, "key", info.APIKeySource, "root", info.Root, "args", strings.Join(os.Args[1:], " "))
	return d, nil
}

// Close ends the log.
func (d *debugLog) Close() {
	if d != nil {
		d.file.Close()
	}
}

// follow logs events until they end; wait blocks until then.
func (d *debugLog) follow(events iter.Seq[event.Event]) (wait func()) {
	var following sync.WaitGroup
	if d != nil {
		following.Go(func() {
			for ev := range events {
				d.event(ev)
			}
		})
	}
	return following.Wait
}

func (d *debugLog) event(ev event.Event) {
	if d == nil {
		return
	}
	if _, piece := ev.Body.(event.TextDelta); piece {
		return
	}
	who := ev.Agent.Name
	if who == "" {
		who = ev.Agent.ID
	}
	d.log.Debug(reflect.TypeOf(ev.Body).Name(), "seq", ev.Seq, "agent", who, "body", bodyText(ev.Body))
}

// maxBody is how much of an event is logged.
const maxBody = 4000

func bodyText(body event.Body) string {
	data, err := jsonx.Marshal(body)
	if err != nil {
		return err.Error()
	}
	if len(data) > maxBody {
		return fmt.Sprintf("%s… (%d bytes in all)", data[:maxBody], len(data))
	}
	return string(data)
}

// redactor removes secrets from what it passes on. Each Write must be whole
// lines, as those of slog are.
type redactor struct {
	out     io.Writer
	secrets *strings.Replacer
}

// keyLike are strings that look like a key wherever they come from.
var keyLike = lazy.Regexp(`\b(sk-[A-Za-z0-9_-]{8,}|(?i:bearer|basic) [A-Za-z0-9._~+/=-]{8,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)|//[^/\s:@]+:[^/\s@]+@`)

const redacted = "[redacted]"

func (r *redactor) Write(p []byte) (int, error) {
	text := keyLike().ReplaceAllString(r.secrets.Replace(string(p)), redacted)
	if _, err := io.WriteString(r.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// secretName matches variables whose value nobody may see.
var secretName = lazy.Regexp(`(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)`)

// minSecret is the length of the shortest value that is removed: shorter ones also
// occur in ordinary words.
const minSecret = 6

// secretsOf replaces the secret values of an environment, as they are and as they stand
// in the log, where an event is JSON in a quoted string.
func secretsOf(environ []string) *strings.Replacer {
	var pairs []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if secretName().MatchString(name) && len(value) >= minSecret {
			encoded := string(jsonx.MustMarshal(value))
			encoded = encoded[1 : len(encoded)-1]
			quoted := strconv.Quote(encoded)
			pairs = append(pairs, quoted[1:len(quoted)-1], redacted, encoded, redacted, value, redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}
