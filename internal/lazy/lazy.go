// Package lazy puts off until its first use what would otherwise cost every
// start of the program.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles expr when it is first called. An expr
// that is not valid panics then; a test of its user finds it.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
