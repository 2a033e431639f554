package layout

// Plan is the file of a plan (facts: claude-code §6). name has no extension.
func (r Root) Plan(name string) string { return r.join("plans", name+".md") }
