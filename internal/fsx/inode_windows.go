package fsx

import "io/fs"

// inodeOf has nothing to go by here: size and time tell versions apart.
func inodeOf(fs.FileInfo) uint64 { return 0 }
