package tool

// Set is the tools of one session, found by name or alias. It is immutable.
type Set struct {
	tools  []Tool
	byName map[string]Tool
}

// NewSet makes a set. Of two tools with one name the first counts.
func NewSet(tools ...Tool) *Set {
	s := &Set{byName: make(map[string]Tool, len(tools))}
	for _, t := range tools {
		if _, taken := s.byName[t.Spec().Name]; taken {
			continue
		}
		s.tools = append(s.tools, t)
		s.byName[t.Spec().Name] = t
	}
	for _, t := range s.tools {
		for _, alias := range t.Spec().Aliases {
			if _, taken := s.byName[alias]; !taken {
				s.byName[alias] = t
			}
		}
	}
	return s
}

// Lookup finds a tool by its name or an alias.
func (s *Set) Lookup(name string) (Tool, bool) {
	t, ok := s.byName[name]
	return t, ok
}

// All lists the tools in the order in which models are offered them. The caller
// must not change the slice.
func (s *Set) All() []Tool { return s.tools }

// Names lists the tools' names in order.
func (s *Set) Names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Spec().Name
	}
	return names
}
