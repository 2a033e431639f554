package filewatch

import (
	"slices"
	"syscall"
)

// localSystems are the file systems that only processes of this machine write to, so
// that inotify reports every write, by the number that statfs gives them: ext, xfs,
// btrfs, tmpfs, overlay, f2fs, zfs, bcachefs.
var localSystems = []uint32{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e}

// reportsAll says whether the system reports every write to a file of this folder.
func reportsAll(folder string) bool {
	var about syscall.Statfs_t
	return syscall.Statfs(folder, &about) == nil && slices.Contains(localSystems, uint32(about.Type))
}
