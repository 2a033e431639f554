//go:build !linux

package filewatch

// reportsAll is false: what the system reports is not known to be complete.
func reportsAll(string) bool { return false }
