package filestore

import (
	"slices"
	"syscall"
)

// localSystems are the file systems, by the number that statfs gives them, that
// only processes of this machine write to, so that inotify tells of every write:
// ext, xfs, btrfs, tmpfs, overlay, f2fs, zfs, bcachefs.
var localSystems = []uint32{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0xf2f52010, 0x2fc12fc1, 0xca451a4e}

// tellsAll reports whether the system tells of every write to a file of a
// folder that is followed.
func tellsAll(folder string) bool {
	var about syscall.Statfs_t
	return syscall.Statfs(folder, &about) == nil && slices.Contains(localSystems, uint32(about.Type))
}
