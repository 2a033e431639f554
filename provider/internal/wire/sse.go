package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxEvent is the most bytes that one event, and one line of it, may have.
const MaxEvent = 32 << 20

// Event is one server-sent event. Its bytes are valid until the next call of
// Next.
type Event struct {
	Name []byte // of the event field; empty when there was none
	Data []byte // the data lines, joined by newlines
}

// Events reads a stream of server-sent events (WHATWG HTML §9.2), where lines
// may end in LF, CR or CRLF. The decoders of the official SDKs are not used: they
// wait for ever on CR, lose an event without a blank line behind it, and allocate
// for each event.
type Events struct {
	src     io.Reader
	buf     []byte // buf[pos:] was read and is not processed yet
	pos     int
	scanned int  // buf[pos:scanned] has no line end
	skipLF  bool // the last line ended in CR: a LF that follows belongs to it
	begun   bool // the byte order mark was looked for
	event   Event
	name    []byte // of the event being read
	data    []byte // its data so far
	hasData bool
	err     error
}

// NewEvents reads events from src, which the caller closes.
func NewEvents(src io.Reader) *Events {
	return &Events{src: src, buf: make([]byte, 0, 4<<10)}
}

// Next reads the next event that has data. It returns false at the end, which
// Err explains.
func (e *Events) Next() bool {
	e.name, e.data, e.hasData = e.name[:0], e.data[:0], false
	for e.err == nil {
		line, err := e.line()
		switch {
		case err != nil:
			e.err = err
			return e.last(line)
		case len(line) > 0:
			e.field(line)
		case e.hasData:
			return e.dispatch()
		default:
			e.name = e.name[:0]
		}
		if len(e.data) > MaxEvent {
			e.err = errTooLong
		}
	}
	return false
}

// Event is the event that Next read.
func (e *Events) Event() Event { return e.event }

// Err is why Next returned false: nil when the stream ended between two events.
func (e *Events) Err() error {
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}

var errTooLong = fmt.Errorf("an event has more than %d bytes", MaxEvent)

// last decides about what stands after the last blank line. Servers leave out
// the blank line, so a whole event counts; half of one is a cut stream.
func (e *Events) last(line []byte) bool {
	if !errors.Is(e.err, io.EOF) {
		return false
	}
	if e.field(line); !e.hasData {
		return false
	}
	if !json.Valid(e.data) && !bytes.Equal(e.data, []byte("[DONE]")) {
		e.err = io.ErrUnexpectedEOF
		return false
	}
	return e.dispatch()
}

func (e *Events) dispatch() bool {
	e.event = Event{Name: e.name, Data: e.data}
	return true
}

// field processes one line. Comments are skipped, and id and retry, for which a
// request has no use.
func (e *Events) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = append(e.name[:0], value...)
	case "data":
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.hasData = true
	}
}

// line returns the next line without its end, valid until the next call. With
// an error it returns what stands after the last line end.
func (e *Events) line() ([]byte, error) {
	for {
		if line, ok := e.cutLine(); ok {
			return line, nil
		}
		if err := e.fill(); err != nil {
			rest := e.buf[e.pos:]
			e.pos = len(e.buf)
			return rest, err
		}
	}
}

// cutLine cuts a line off the buffer, if there is a whole one.
func (e *Events) cutLine() ([]byte, bool) {
	if e.skipLF && e.pos < len(e.buf) {
		if e.buf[e.pos] == '\n' {
			e.pos++
		}
		e.skipLF = false
	}
	from := max(e.scanned, e.pos)
	rest := e.buf[from:]
	end := bytes.IndexByte(rest, '\n')
	if end >= 0 {
		rest = rest[:end]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		end = cr
		e.skipLF = true
	}
	if end < 0 {
		e.scanned = len(e.buf)
		return nil, false
	}
	line := e.buf[e.pos : from+end]
	e.pos = from + end + 1
	e.scanned = e.pos
	return line, true
}

// fill reads more into the buffer, after moving what is not processed to its front.
func (e *Events) fill() error {
	if e.pos > 0 {
		e.buf = append(e.buf[:0], e.buf[e.pos:]...)
		e.scanned -= e.pos
		e.pos = 0
	}
	if len(e.buf) > MaxEvent {
		return errTooLong
	}
	if len(e.buf) == cap(e.buf) {
		e.buf = append(e.buf, make([]byte, max(len(e.buf), 4<<10))...)[:len(e.buf)]
	}
	for range 100 {
		n, err := e.src.Read(e.buf[len(e.buf):cap(e.buf)])
		e.buf = e.buf[:len(e.buf)+n]
		if n > 0 {
			return e.skipMark()
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// skipMark drops a byte order mark from the very beginning.
func (e *Events) skipMark() error {
	mark := []byte("\xef\xbb\xbf")
	if e.begun || (len(e.buf) < len(mark) && bytes.HasPrefix(mark, e.buf)) {
		return nil
	}
	e.begun = true
	if bytes.HasPrefix(e.buf, mark) {
		e.pos = len(mark)
	}
	return nil
}
