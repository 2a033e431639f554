//go:build unix

package dirlock

import "io/fs"

// haveSide says that the system has locks that die with their process.
const haveSide = true

func marked(info fs.FileInfo) bool { return info.Mode().Perm() == mark }
