package node

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
	"kaz/internal/plan/share"
)

// differs returns the first of the named options in which the SMB mount at a path differs from what a volume wants. It
// returns nil if no option differs or no SMB share is mounted there.
func (n *Node) differs(v *volume, path string, names ...string) (*share.Difference, error) {
	fsType, options, err := n.config.Options(path)
	if err != nil || fsType != n.wanted(v).Type || v.parameters.NFS() {
		return nil, err
	}
	return n.wanted(v).Differs(options, names...), nil
}

// restage unmounts a volume if its mount has other owners or modes than the request, for example because the persistent volume has
// changed. If pods use the volume, it stays mounted and the request is refused. The group does not count: it is that of one pod, see
// [Node.bind].
func (n *Node) restage(v *volume, path string) error {
	mounted, err := n.config.Mounts.Mounted(path)
	if err != nil || !mounted {
		return nil // mount looks at what is there
	}
	d, err := n.differs(v, path, "file_mode", "dir_mode", "uid")
	if err != nil || d == nil {
		return csi.Status(err, "stage volume %s", v.id)
	}
	users, err := n.config.Mounts.Others(path)
	if err != nil {
		return csi.Status(err, "stage volume %s", v.id)
	}
	if len(users) > 0 {
		return status.Errorf(codes.AlreadyExists, "stage volume %s: it is mounted with %s=%s, and its mount options have %s=%s now: it "+
			"is mounted anew when no pod on this node uses it; %s does", v.id, d.Name, d.Have, d.Name, d.Want, users[0])
	}
	return csi.Status(n.config.Mounts.Unmount(path), "stage volume %s", v.id)
}

// ownMount reports whether a pod needs a mount of its own. It needs one if the staged share has another pod's group, and the
// modes give that group rights that other users do not have.
func (n *Node) ownMount(v *volume, staging string) (bool, error) {
	if v.group == "" || n.wanted(v).Open() {
		return false, nil
	}
	d, err := n.differs(v, staging, "gid")
	return d != nil, csi.Status(err, "publish volume %s", v.id)
}
