package node

import (
	"os"
	"syscall"
)

// ownedBy reports whether a file has a group.
func ownedBy(info os.FileInfo, gid int) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Gid) == gid
}
