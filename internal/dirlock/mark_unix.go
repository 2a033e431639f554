//go:build unix

package dirlock

import "io/fs"

// haveQueue says that the system has locks that die with their process.
const haveQueue = true

func marked(info fs.FileInfo) bool { return info.Mode().Perm() == mark }
