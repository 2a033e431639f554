// Package race says whether this program was built with the race detector, so
// that tests can leave to a run without it what it only makes slower.
package race
