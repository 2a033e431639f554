package mailbox

// Senders that are no teammates. No teammate may have one of these names, nor one
// that looks like it (facts: claude-code §4.5, §5.6, §9).
const (
	LeadName = "team-lead" // the lead of every team
	UserName = "user"      // a person
	// The runtime itself, when it speaks to a model.
	SystemName   = "system"
	TaskListName = "task-list"
	// How texts for models and people also call the runtime, and a person. Nothing is sent
	// under these names.
	RuntimeName = "cadre"
	PersonName  = "person"
)
