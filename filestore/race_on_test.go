//go:build race

package filestore_test

// raceDetector makes processes so slow and large that crowds of them are left to
// runs without it.
const raceDetector = true
