//go:build unix

package builtin

import (
	"os"
	"syscall"
)

// replaceable reports whether another file can take the place of this one
// without anybody noticing: it has one name and is ours.
func replaceable(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink == 1 && int(stat.Uid) == os.Geteuid()
}
