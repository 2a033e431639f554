package team

import "github.com/cadre-dev/cadre/team/protocol"

// planMode is the mode to give with an approval. Nobody is let out of all
// permission checks by a lead that is not out of them itself.
func (t *Teams) planMode(asked string) string {
	mode, lead := protocol.WorkingMode(asked), protocol.WorkingMode(t.consent.mode())
	if asked == "" || mode == protocol.ModeBypass && lead != protocol.ModeBypass {
		return lead
	}
	return mode
}
