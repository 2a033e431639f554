//go:build !linux

package filestore

// tellsAll is false: we look at the files ourselves too.
func tellsAll(string) bool { return false }
