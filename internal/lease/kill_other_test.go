//go:build !unix

package lease_test

// dieAtCall does nothing: the kill at every call is for Unix.
func dieAtCall() {}
