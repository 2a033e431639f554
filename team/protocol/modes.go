package protocol

// The permission modes of the wire that matter here (facts: sdk-contract §4).
const (
	ModeDefault     = "default"
	modeAcceptEdits = "acceptEdits"
	ModeBypass      = "bypassPermissions"
	modeDontAsk     = "dontAsk"
	ModePlan        = "plan"
	modeDelegate    = "delegate"
)

// WorkingMode is the mode in which an agent can carry a plan out: never the one
// that it leaves with the approval, nor one that only a lead can be in.
func WorkingMode(mode string) string {
	switch mode {
	case ModeDefault, modeAcceptEdits, ModeBypass, modeDontAsk:
		return mode
	}
	return ModeDefault
}
