package node

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"kaz/internal/csi"
	"kaz/internal/plan/share"
)

// prepare gives the root of an NFS volume its mode, and the volume its group. SMB volumes have both from their mount options.
func (n *Node) prepare(ctx context.Context, v *volume, path string) error {
	p := v.parameters
	if !p.NFS() || v.readOnly {
		return nil
	}
	if mode := p.Permissions(n.config.Permissions); mode != 0 && p.GroupChange != share.GroupAlways {
		err := setMode(path, mode)
		if p.MountPermissions != "" && err != nil {
			return csi.Status(err, "mode of volume %s", v.id)
		}
		if err != nil { // such as with root squash
			n.config.Log.WarnContext(ctx, "the root of a volume keeps its mode", "volume", v.id, "wanted", fileMode(mode), "error", err)
		}
	}
	return n.setGroupOf(ctx, v, path, n.groupChange(p) == share.GroupAlways)
}

// groupChange returns when the files of a volume get its group.
func (n *Node) groupChange(p share.Parameters) string {
	return cmp.Or(p.GroupChange, n.config.GroupChange)
}

// setGroupOf gives the files of an NFS volume its group. Unless always is true, it changes nothing if the root has the group.
func (n *Node) setGroupOf(ctx context.Context, v *volume, path string, always bool) error {
	if !v.parameters.NFS() || v.readOnly || v.group == "" || n.groupChange(v.parameters) == share.GroupNever {
		return nil
	}
	gid, err := strconv.Atoi(v.group)
	if err != nil {
		return csi.Invalid("volume %s: volume_mount_group %q: want the number of a group", v.id, v.group)
	}
	return csi.Status(setGroup(ctx, path, gid, always), "group of volume %s", v.id)
}

// setMode changes the mode of a directory if it is another one.
func setMode(path string, mode uint32) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if wanted := fileMode(mode); info.Mode()&modeBits != wanted {
		return os.Chmod(path, wanted)
	}
	return nil
}

const modeBits = os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky

// fileMode converts the bits of chmod.
func fileMode(bits uint32) os.FileMode {
	mode := os.FileMode(bits) & os.ModePerm
	for bit, flag := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// What a group gets: to read and write files, and in directories to enter and to own what is created.
const (
	groupFile      = 0o660
	groupDirectory = 0o770
)

// setGroup gives all files of a volume a group, as the kubelet does it for disks. Unless always is true, it changes nothing if the
// root has the group and its mode. The root is changed last: an interrupted change is repeated.
func setGroup(ctx context.Context, root string, gid int, always bool) error {
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !always && ownedBy(info, gid) && info.Mode()&(groupDirectory|os.ModeSetgid) == groupDirectory|os.ModeSetgid {
		return nil
	}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == root {
			return err
		}
		return setOwner(path, gid)
	})
	if err != nil {
		return err
	}
	return setOwner(root, gid)
}

func setOwner(path string, gid int) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !ownedBy(info, gid) {
		const keepUser = -1
		if err := os.Lchown(path, keepUser, gid); err != nil {
			return err
		}
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	mode := info.Mode()&modeBits | groupFile
	if info.IsDir() {
		mode = info.Mode()&modeBits | groupDirectory | os.ModeSetgid
	}
	return os.Chmod(path, mode)
}
