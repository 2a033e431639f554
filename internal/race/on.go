//go:build race

package race

// Enabled reports whether the race detector watches: this is the build with it.
const Enabled = true
