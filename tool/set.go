package tool

// Source gives a session its tools. What they are may change while the session
// runs: a server that brings tools connects late, or goes away.
type Source interface {
	// Tools returns the tools of this moment. A session asks before each request to
	// its model, so it must not block. While nothing has changed it returns the
	// same set in the same order: any change invalidates the model's cache of the
	// conversation. It may be called from any goroutine.
	Tools() *Set
}

// Set is the tools of one session at one moment, found by name or alias. It is
// immutable, and the Source of a session whose tools never change.
type Set struct {
	tools  []Tool
	byName map[string]Tool
}

// NewSet makes a set. Of two tools with one name the first counts.
func NewSet(tools ...Tool) *Set {
	s := &Set{byName: make(map[string]Tool, len(tools))}
	for _, t := range tools {
		if _, found := s.byName[t.Spec().Name]; found {
			continue
		}
		s.tools = append(s.tools, t)
		s.byName[t.Spec().Name] = t
	}
	for _, t := range s.tools {
		for _, alias := range t.Spec().Aliases {
			if _, found := s.byName[alias]; !found {
				s.byName[alias] = t
			}
		}
	}
	return s
}

// Tools implements [Source].
func (s *Set) Tools() *Set { return s }

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
