package team

// The permission modes of the wire that matter here (facts: sdk-contract §4).
const (
	modeDefault     = "default"
	modeAcceptEdits = "acceptEdits"
	modeBypass      = "bypassPermissions"
	modeDontAsk     = "dontAsk"
	modePlan        = "plan"
	modeDelegate    = "delegate"
)

// workingMode is the mode in which an agent can carry a plan out: never the one
// that it leaves with the approval, nor one that only a lead can be in.
func workingMode(mode string) string {
	switch mode {
	case modeDefault, modeAcceptEdits, modeBypass, modeDontAsk:
		return mode
	}
	return modeDefault
}

// planMode is the mode to give with an approval. Nobody is let out of all
// permission checks by a lead that is not out of them itself.
func (t *Teams) planMode(asked string) string {
	mode, lead := workingMode(asked), workingMode(t.consent.mode())
	if asked == "" || mode == modeBypass && lead != modeBypass {
		return lead
	}
	return mode
}
