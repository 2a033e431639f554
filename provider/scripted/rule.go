package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// Rule is one entry of a script. The first rule whose conditions hold answers.
type Rule struct {
	Name string // for error messages
	When When
	Reply
	// Answer, when set, makes the reply instead: for rules written in Go.
	Answer func(*Conversation) Reply
}

// When is what must hold: every condition that is set, tried in the order of
// the fields. Regexps are searched for in the text, except where a whole match
// is asked for. A named group of a regexp that matched stands as ${name} in all
// that comes later: in further regexps, where its value stands for itself, and
// in the reply.
type When struct {
	Agent string       `json:"agent"` // the agent's name; * and ? stand for anything
	Role  Role         `json:"role"`  //
	Task  string       `json:"task"`  // regexp on "#ID: SUBJECT" and the description of the current task
	Input string       `json:"input"` // regexp on the newest input
	Heard List[string] `json:"heard"` // regexps, each on some input, the newest that matches
	Done  List[Did]    `json:"done"`  // calls, each of which was made
	Any   List[When]   `json:"any"`   // at least one of them holds
	Not   List[When]   `json:"not"`   // none of them holds
	// Rounds is how many replies at most were given since the newest input; 0
	// sets no limit.
	Rounds int `json:"rounds"`
}

// Role is what an agent is in its team.
type Role string

// The roles.
const (
	Lead     Role = "lead"      // a main session, with or without a team
	Teammate Role = "teammate"  // has a name in a team
	SubAgent Role = "sub-agent" // the child session of another agent
)

// Did is a condition on the calls that the agent made and has results of. The
// newest call that fits counts.
type Did struct {
	Tool    string            `json:"tool"`   // regexp, whole match
	Input   map[string]string `json:"input"`  // of fields of the input: regexps, whole match; a value that is not a string is matched as JSON
	Result  string            `json:"result"` // regexp on the result
	Outcome Outcome           `json:"outcome"`
	After   *After            `json:"after"`
}

// Outcome is how a call ended.
type Outcome string

// The outcomes. Without one, a call must have succeeded.
const (
	OK     Outcome = "ok"
	Failed Outcome = "failed" // the result is marked as an error
	Either Outcome = "either"
)

// After says since when a call counts: since Point, or since the newest call
// that fits Call. When there is no such point, no call counts.
type After struct {
	Point Point
	Call  *Did
}

// Point is a place in the conversation.
type Point string

// The points.
const (
	TaskStart   Point = "task"  // where the current task was begun
	NewestInput Point = "input" // the newest input
	LastRound   Point = "round" // the reply before the newest, so that only the newest round counts
)

// UnmarshalJSON reads the name of a point, or a call.
func (a *After) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &a.Point)
	}
	return strictly(data, &a.Call)
}

// Reply is what the model answers.
type Reply struct {
	Think string // a thinking block before the text; "" for none
	Say   string // the text, streamed in pieces; "" for none
	Calls []Call
	Stop  string            // the stop reason; "": tool_use with calls, else end_turn
	Usage *transcript.Usage // nil: estimated at four bytes a token
	Fault Fault
}

// Call is a tool call of a reply.
type Call struct {
	Tool  string
	Input json.RawMessage // an object; ${name} in its strings is replaced
	ID    string          // "" makes one; the same twice is a fault that models have
	// Malformed, when set, is what came as input instead of a JSON object.
	Malformed string
}

// Use makes a call from any value that encodes to a JSON object. It panics when
// the value cannot be encoded.
func Use(tool string, input any) Call {
	return Call{Tool: tool, Input: jsonx.MustMarshal(input)}
}

// Fault is what goes wrong with a reply, for tests.
type Fault struct {
	Err     *provider.Error     // the request fails, and nothing is answered
	Retries []provider.Retrying // announced before the answer, without waiting
	Broken  error               // the stream breaks in the last block: a call is lost, a text cut
	Gate    <-chan struct{}     // nothing is answered before this is closed
	Midway  <-chan struct{}     // the reply does not end before this is closed
}

// List is one or more: in JSON, a list or its single element.
type List[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (l *List[T]) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return strictly(data, (*[]T)(l))
	}
	*l = make(List[T], 1)
	return strictly(data, &(*l)[0])
}

// UnmarshalJSON reads a rule of a script file.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var w struct {
		Name  string       `json:"name"`
		When  When         `json:"when"`
		Think string       `json:"think"`
		Say   string       `json:"say"`
		Calls []callOfFile `json:"calls"`
		Stop  string       `json:"stop"`
		Fault faultOfFile  `json:"fault"`
	}
	err := errors.Join(strictly(data, &w), w.Fault.check())
	*r = Rule{Name: w.Name, When: w.When, Reply: Reply{Think: w.Think, Say: w.Say, Stop: w.Stop, Fault: w.Fault.fault()}}
	for _, c := range w.Calls {
		r.Calls = append(r.Calls, Call(c))
	}
	return err
}

type callOfFile struct {
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	ID        string          `json:"id"`
	Malformed string          `json:"malformed"`
}

type faultOfFile struct {
	Class      provider.Class `json:"class"`
	Status     int            `json:"status"`
	Message    string         `json:"message"`
	RetryAfter float64        `json:"retryAfter"` // seconds
	Broken     string         `json:"broken"`
}

// check refuses a fault that would be another than the one meant, or none.
func (f faultOfFile) check() error {
	switch {
	case f.Class == "" && (f.Status != 0 || f.Message != "" || f.RetryAfter != 0):
		return errors.New(`a "fault" with a status, message or retryAfter needs a class`)
	case f.Class != "" && !slices.Contains(provider.Classes, f.Class):
		return fmt.Errorf(`"fault": there is no class %q; there are %s`, f.Class, classNames())
	}
	return nil
}

func classNames() string {
	names := make([]string, len(provider.Classes))
	for i, c := range provider.Classes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

func (f faultOfFile) fault() Fault {
	var fault Fault
	if f.Class != "" {
		fault.Err = &provider.Error{
			Class: f.Class, Status: f.Status, Message: cmp.Or(f.Message, "the script says so"),
			RetryAfter: time.Duration(f.RetryAfter * float64(time.Second)),
		}
	}
	if f.Broken != "" {
		fault.Broken = errors.New(f.Broken)
	}
	return fault
}

// strictly decodes JSON and refuses fields that v does not have: a condition
// with a typing error would otherwise always hold.
func strictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
