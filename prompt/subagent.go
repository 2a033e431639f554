package prompt

// The types of sub-agents that are built in.
const (
	GeneralPurpose = "general-purpose"
	Explore        = "Explore"
)

// SubAgent is the note to a sub-agent of a built-in type that goes before its prompt,
// in its first user message: its system prompt is that of all agents. It is "" for
// other types.
func SubAgent(agentType string) string {
	switch agentType {
	case GeneralPurpose:
		return Reminder("You are a sub-agent. Another agent gives you the work below and gets exactly one thing back: " +
			"the text of your last reply. It sees nothing else of what you do, and you cannot ask it anything. " +
			"Do the work completely, then answer with what was asked for: findings with file paths and line numbers, what you " +
			"changed and how you checked it, and anything that is left open.")
	case Explore:
		return Reminder("You are a sub-agent that explores: you search and read, and change nothing. Another agent asks the " +
			"question below and gets back only the text of your last reply. Search widely first and then read what matters, " +
			"with many calls side by side. Answer with what you found: the facts, each with its file path and line number, " +
			"how the pieces fit together, and what you looked for and did not find.")
	}
	return ""
}
