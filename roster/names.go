package roster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
)

// AgentID is the id of an agent in a team.
func AgentID(name, team string) string { return name + "@" + team }

// NameError says why a name cannot be given.
type NameError struct{ Name, Reason string }

func (e *NameError) Error() string { return fmt.Sprintf("name %q %s", e.Name, e.Reason) }

// maxName is the longest name of a team or an agent, in characters.
const maxName = 64

// runtimeNames are the senders of our own runtime (facts: claude-code §4.5,
// §5.6, §9), and people, as [skeleton] writes them: nobody else may look like
// them.
var runtimeNames = sync.OnceValue(func() []string {
	return []string{
		skeleton(mailbox.LeadName), skeleton(mailbox.SystemName), skeleton(mailbox.TaskListName), skeleton(mailbox.UserName),
		skeleton(mailbox.RuntimeName), skeleton(mailbox.PersonName),
	}
})

// unverified is how messages mark a sender that nobody vouches for
// (package team/protocol), as [skeleton] writes it: a name with it could look like another
// agent's, marked.
const unverified = "unverified"

// deviceName matches what Windows takes for a device, whatever its extension.
var deviceName = lazy.Regexp(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// CleanName turns the name that was asked for an agent into the one it gets: an
// @ becomes a dash (facts: claude-code §2.2), space around it goes. Names that
// could be taken for the lead, the runtime, a path or another agent's mail file
// are refused with a [*NameError].
func CleanName(raw string) (string, error) {
	name := strings.ReplaceAll(strings.TrimSpace(raw), "@", "-")
	if reason := badName(name); reason != "" {
		return "", &NameError{raw, reason}
	}
	switch {
	case strings.ContainsAny(name, `/\`):
		return "", &NameError{raw, "must not contain path separators"}
	case !strings.ContainsFunc(name, isWordRune):
		return "", &NameError{raw, "needs a letter or a digit"}
	case slices.Contains(runtimeNames(), skeleton(name)):
		return "", &NameError{raw, "could be mistaken for " + mailbox.LeadName + ", a person or the runtime itself"}
	case strings.Contains(skeleton(name), unverified):
		return "", &NameError{raw, `must not contain "unverified", which marks senders that nobody vouches for`}
	case deviceName().MatchString(name):
		return "", &NameError{raw, "is the name of a device on some systems"}
	}
	return name, nil
}

// CleanTeamName checks the name of a new team. It is kept raw (its folder is
// named by a safe rule), so any letters will do.
func CleanTeamName(raw string) (string, error) {
	name := strings.TrimSpace(raw)
	if reason := badName(name); reason != "" {
		return "", &NameError{raw, reason}
	}
	return name, nil
}

// badName says what no name may be.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case utf8.RuneCountInString(name) > maxName:
		return "has more than " + strconv.Itoa(maxName) + " characters"
	case strings.ContainsFunc(name, oneline.Invisible):
		return "contains control or invisible characters"
	}
	return ""
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// lookalikes maps letters to the Latin ones that they are mistaken for.
var lookalikes = strings.NewReplacer(
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "х", "x", "у", "y", "і", "i", "ѕ", "s", "ԁ", "d",
	"ӏ", "l", "т", "t", "м", "m", "к", "k", "ѐ", "e", "ё", "e", "α", "a", "ε", "e", "ο", "o", "ρ", "p",
	"τ", "t", "ι", "i", "κ", "k", "ν", "v", "υ", "y", "μ", "m", "ɑ", "a", "ı", "i", "ǀ", "l", "ⅼ", "l",
	"ⅿ", "m", "ⅾ", "d", "ᴛ", "t", "ᴇ", "e", "ᴀ", "a", "ᴍ", "m", "ʟ", "l", "ᴅ", "d", "|", "l", "1", "l", "0", "o",
)

// skeleton is what is left of a name for an eye that reads fast: lower case,
// look-alikes replaced, separators and accents dropped.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 0xFF01 && r <= 0xFF5E { // full-width forms
			r -= 0xFEE0
		}
		r = unicode.ToLower(r)
		for _, r := range lookalikes.Replace(string(r)) {
			if isWordRune(r) {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// MailKey says whether two names would share a mail file on a file system that
// does not tell upper from lower case (facts: claude-code §5.1).
func MailKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '-'
		}
	}, name)
}

// FreeName is name, or with the suffix -2, -3, … the first that no member has.
func FreeName(c *Roster, name string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(c.Members, func(m Member) bool { return MailKey(m.Name) == MailKey(name) })
	}
	free := name
	for n := 2; taken(free); n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

// colors are given to teammates in turn (facts: claude-code §4).
var colors = []string{"blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"}

// Color is the colour of the n-th teammate of a team, counted from 0.
func Color(n int) string { return colors[n%len(colors)] }

// ColorsGiven is how many colours a roster shows to have been given: it must
// not give the newest teammate's again.
func ColorsGiven(c *Roster) int {
	given := 0
	for _, m := range c.Teammates() {
		given = max(given+1, slices.Index(colors, m.Color)+1)
	}
	return given
}
