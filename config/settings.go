// Package config is the typed settings: what settings files of Claude Code's
// format (facts: sdk-contract §4) and our own keys say, merged by precedence,
// each value with its source. Unknown keys stay where they are.
package config

import (
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Settings are the values in effect.
type Settings struct {
	Model       string
	Permissions Permissions
	Env         map[string]string // for the session and its commands
	// TeammateMode is how teammates run: auto, in-process, tmux or iterm2.
	TeammateMode string
	// PlanApproval is who approves teammates' plans: auto, lead or person.
	PlanApproval string
	// OrphanGrace is how long a teammate in a pane goes on after its lead was killed
	// before it exits, to be resumed later.
	OrphanGrace time.Duration
	// TrustUnsigned accepts answers to permission requests from a lead that is another
	// program, which cannot seal them.
	TrustUnsigned bool
	// PrintWaitCeiling ends a -p run that waits for its team; 0 does not wait.
	PrintWaitCeiling time.Duration
	// AskDeadline ends a question to a person with a no; 0 waits for ever.
	AskDeadline time.Duration
	// ModelRetry is how long a request to the model is repeated while its server
	// is away; 0 does not repeat it; RetryByDefault depends on whether a person waits.
	ModelRetry time.Duration
	// ModelFirstByte is how long the model's server may take to begin a response,
	// ModelSilence how long it may be silent in the middle; 0 sets no limit.
	ModelFirstByte, ModelSilence time.Duration
	// RepeatReminder is after how many equal tool calls in a row, with equal results, a
	// model is reminded of it; 0 never does.
	RepeatReminder int
	// SyncWrites makes state survive a loss of power, not only a killed process.
	SyncWrites bool
}

// Permissions are the rules and folders of all files together.
type Permissions struct {
	Allow, Ask, Deny []Rule
	Directories      []Directory // additional working folders
	DefaultMode      string      // not checked here; "" when no file sets it
}

// Rule is a permission rule as a file writes it.
type Rule struct {
	Text string
	From Source
}

// Directory is an absolute folder; symbolic links are not followed yet.
type Directory struct {
	Path string
	From Source
}

// DefaultPrintWaitCeiling is how long -p waits for a team when no file says.
const DefaultPrintWaitCeiling = 30 * time.Minute

// DefaultOrphanGrace is how long a teammate goes on without its lead when no file says:
// with what it takes to notice and to end, no more than the 5 s by which nothing
// outlives the session that has started it.
const DefaultOrphanGrace = 3 * time.Second

// RetryByDefault is the ModelRetry that nobody has set: as long as a person waits, or
// some minutes when nobody does.
const RetryByDefault time.Duration = -1

func defaults() Settings {
	return Settings{
		TeammateMode: "auto", PlanApproval: "auto", OrphanGrace: DefaultOrphanGrace, PrintWaitCeiling: DefaultPrintWaitCeiling,
		ModelRetry: RetryByDefault, ModelFirstByte: time.Minute, ModelSilence: 5 * time.Minute,
		RepeatReminder: 5,
	}
}

// Layer is one file that was read.
type Layer struct {
	Source
	// Trusted is false for files of a project that the user does not trust. What
	// starts programs (hooks, helpers, servers) must not be read from them.
	Trusted bool
	// Raw is everything that the file says, known keys or not.
	Raw jsonx.Object
}

// Effective is the outcome of [Load].
type Effective struct {
	Settings
	// Origin is the source of each value that a file set, by its key:
	// "model", "permissions.defaultMode", "env.NAME".
	Origin map[string]Source
	Layers []Layer // lowest precedence first
}

// From is the source of a key's value: the zero Source when it is the default.
func (e *Effective) From(key string) Source { return e.Origin[key] }

// document is a settings file as it is written. Pointers tell a value from
// none.
type document struct {
	Model              *string           `json:"model"`
	Permissions        permissions       `json:"permissions"`
	Env                map[string]scalar `json:"env"`
	TeammateMode       *string           `json:"teammateMode"`
	PlanApproval       *string           `json:"planApproval"`
	OrphanGraceMs      *int64            `json:"orphanGraceMs"`
	TrustUnsigned      *bool             `json:"trustUnsignedTeamAnswers"`
	PrintWaitCeilingMs *int64            `json:"printWaitCeilingMs"`
	AskDeadlineMs      *int64            `json:"askDeadlineMs"`
	ModelRetryMs       *int64            `json:"modelRetryMs"`
	ModelFirstByteMs   *int64            `json:"modelFirstByteMs"`
	ModelSilenceMs     *int64            `json:"modelSilenceMs"`
	RepeatReminder     *int64            `json:"repeatReminder"`
	SyncWrites         *bool             `json:"syncWrites"`
}

type permissions struct {
	Allow                 []string `json:"allow"`
	Ask                   []string `json:"ask"`
	Deny                  []string `json:"deny"`
	DefaultMode           *string  `json:"defaultMode"`
	AdditionalDirectories []string `json:"additionalDirectories"`
}

// scalar is the value of an environment variable: a string, or a number or
// truth value, which stands for its own text.
type scalar string
