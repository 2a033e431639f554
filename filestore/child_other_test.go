//go:build !unix

package filestore_test

// runAsChild does nothing: the tests that need children are for Unix.
func runAsChild() {}
