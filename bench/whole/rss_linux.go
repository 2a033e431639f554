package main

import (
	"os"
	"syscall"
)

// peakRSS is the most memory that a finished process held, in bytes.
func peakRSS(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss * 1024 // kibibytes here
}
