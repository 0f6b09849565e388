package node

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/plan/share"
)

// NodeStageVolume mounts a share at the staging path.
func (n *Node) NodeStageVolume(ctx context.Context, r *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	const request = "NodeStageVolume"
	done := &csispec.NodeStageVolumeResponse{}
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := file.CheckCapabilities(request, r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	v, err := n.resolve(request, r.GetVolumeId(), r.GetVolumeContext(), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	v.use(r.GetVolumeCapability())
	if v.needsToken() {
		return done, nil // it is mounted when it is published
	}
	release, err := n.locks.Take(r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	defer release()
	if err := n.restage(&v, r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	return done, n.mount(ctx, &v, r.GetStagingTargetPath())
}

// use takes the mount options, the group and the access mode of a capability.
func (v *volume) use(c *csispec.VolumeCapability) {
	v.options, v.group = slices.Clone(c.GetMount().GetMountFlags()), c.GetMount().GetVolumeMountGroup()
	switch c.GetAccessMode().GetMode() {
	case csispec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		v.readOnly = true
	}
}

// mount mounts a volume at a path, unless it is mounted there. A mount that cannot be read is replaced.
func (n *Node) mount(ctx context.Context, v *volume, path string) error {
	mounted, err := n.config.Mounts.MountedWell(path)
	if err != nil || mounted {
		return csi.Status(err, "mount volume %s", v.id)
	}
	if err := os.MkdirAll(path, directoryMode); err != nil {
		return csi.Status(err, "mount volume %s", v.id)
	}
	ctx, end := context.WithTimeout(ctx, mountAtMost)
	defer end()
	if err := n.mountNow(ctx, v, path); err != nil {
		return err
	}
	return n.prepare(ctx, v, path)
}

const directoryMode = 0o750

func (n *Node) mountNow(ctx context.Context, v *volume, path string) error {
	p := v.parameters
	if err := n.check(v); err != nil { // before anything is sent to the server or to Azure
		return err
	}
	var credentials file.Credentials
	var err error
	switch {
	case p.Identity():
		err = n.ticket(ctx, v)
	case !p.NFS():
		credentials, err = n.credentials(ctx, v)
	}
	if err != nil {
		return err
	}
	if v.account.Name() == "" && credentials.Account != "" {
		v.account = n.config.Cluster.AccountID(share.Volume{Account: credentials.Account})
		if err := n.check(v); err != nil {
			return err
		}
	}
	// The folder may exist: the mount shows whether it does.
	noFolder := n.createFolder(ctx, v, credentials)
	if noFolder != nil {
		n.config.Log.WarnContext(ctx, "the folder of a volume cannot be created", "volume", v.id, "folder", p.Folder, "error", noFolder)
	}
	m := n.wanted(v)
	err = mountError(n.mountWith(ctx, v, m, path, credentials), v.id, m)
	if err != nil && noFolder != nil {
		failed := status.Convert(err)
		return status.Errorf(failed.Code(), "%s; folder %s cannot be created: %v", failed.Message(), p.Folder, noFolder)
	}
	return err
}

// check refuses a volume if its names or mount options mean more than one name or option to a mount program.
func (n *Node) check(v *volume) error {
	if err := n.mounting(v).Check(); err != nil {
		return csi.Invalid("volume %.256q: %v", v.id, err)
	}
	return nil
}

// wanted returns how a volume is to be mounted.
func (n *Node) wanted(v *volume) share.Mount { return n.mounting(v).Mount() }

func (n *Node) mounting(v *volume) share.Mounting {
	return share.Mounting{
		Parameters: v.parameters, Account: v.account.Name(), Share: v.name, Host: n.host(v), Options: v.options, Group: v.group,
		ReadOnly: v.readOnly, Defaults: n.config.Defaults,
	}
}

// mountWith mounts a share. A key that was read from Azure can be up to a minute old. If the file server refuses it,
// mountWith reads the key again and uses it if it has changed.
func (n *Node) mountWith(ctx context.Context, v *volume, m share.Mount, path string, c file.Credentials) error {
	err := n.config.Mounter.Mount(ctx, m, path, c)
	failed, ok := errors.AsType[*MountError](err)
	if !ok || !strings.Contains(failed.Error(), wrongKey) || !v.azureKey || c.Key.IsZero() || n.config.Refused == nil {
		return err
	}
	n.config.Refused(v.account, c.Key)
	now, unread := n.credentials(ctx, v)
	if unread != nil || now == c {
		return errors.Join(err, unread)
	}
	return n.config.Mounter.Mount(ctx, m, path, now)
}

// wrongKey is in the output of mount.cifs if the server refuses the key.
const wrongKey = "mount error(13)"

// mountError returns the status of a failed mount, with what to do about it.
func mountError(err error, id string, m share.Mount) error {
	if err == nil {
		return nil
	}
	var failed *MountError
	if !errors.As(err, &failed) {
		return csi.Status(err, "mount volume %s", id)
	}
	code, advice := codes.Internal, ""
	for _, known := range []struct {
		text   string
		code   codes.Code
		advice string
	}{
		{wrongKey, codes.Unauthenticated,
			"the server refuses the key: it may have been changed; update the Secret of the storage account"},
		{"mount error(2)", codes.NotFound, "the share or the folder does not exist"},
		{"No such file or directory", codes.NotFound, "the share or the folder does not exist"},
		{"mount error(115)", codes.Unavailable, "the server does not answer: check port 445, the network rules and the name in DNS"},
		{"mount error(113)", codes.Unavailable, "the server does not answer: check port 445, the network rules and the name in DNS"},
		{"could not resolve address", codes.Unavailable, "the name of the server is not known: check DNS"},
		{"unknown filesystem type", codes.FailedPrecondition, "the kernel of the node has no module for " + m.Type},
		{"No such device", codes.FailedPrecondition, "the kernel of the node has no module for " + m.Type},
		{"mount error(19)", codes.FailedPrecondition, "the kernel of the node has no module for " + m.Type},
		{"executable file not found", codes.FailedPrecondition, "install the mount program of " + m.Type + " in the driver's image"},
	} {
		if strings.Contains(failed.Error(), known.text) {
			code, advice = known.code, ": "+known.advice
			break
		}
	}
	return status.Errorf(code, "mount volume %s: %s as %s%s: %v", id, m.Source, m.Type, advice, err)
}

// NodeUnstageVolume unmounts the staging path.
func (n *Node) NodeUnstageVolume(_ context.Context, r *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	err := n.unmount("NodeUnstageVolume", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath())
	return &csispec.NodeUnstageVolumeResponse{}, err
}

// unmount unmounts a path of a volume and removes it. A path that does not exist is no error.
func (n *Node) unmount(request, id, field, path string) error {
	if err := csi.Missing(request, "volume_id", id, field, path); err != nil {
		return err
	}
	release, err := n.locks.Take(path)
	if err != nil {
		return err
	}
	defer release()
	err = n.config.Mounts.Unmount(path)
	if err == nil && n.config.Tickets != nil {
		err = n.config.Tickets.Forget(id)
	}
	return csi.Status(err, "unmount volume %s", id)
}
