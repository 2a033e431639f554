package filestore

import "github.com/cadre-dev/cadre/internal/layout"

// RootOf is where a store keeps its state.
func RootOf(s *Store) layout.Root { return s.root }
