package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/csi/mount"
)

// NodePublishVolume shows a volume at the path of a pod. The kubelet repeats the request for as long as the pod lives.
func (n *Node) NodePublishVolume(ctx context.Context, r *csispec.NodePublishVolumeRequest) (*csispec.NodePublishVolumeResponse, error) {
	const request = "NodePublishVolume"
	done := &csispec.NodePublishVolumeResponse{}
	if err := csi.Missing(request, "volume_id", r.GetVolumeId(), "target_path", r.GetTargetPath()); err != nil {
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
	v.readOnly = v.readOnly || r.GetReadonly()
	release, err := n.locks.Take(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	defer release()
	switch {
	case is(v.parameters.Ephemeral):
		return done, n.publishInline(ctx, request, &v, r)
	case v.needsToken() && !v.token.IsZero():
		return done, n.publishWithToken(ctx, &v, r.GetTargetPath())
	}
	return done, n.bind(ctx, request, &v, r)
}

// bind shows the staged share at the path of a pod. The share may have been staged for a pod with another group. By SMB, a
// pod that cannot use it then gets a mount of its own. By NFS, the files get the group of the new pod, as files of other
// volumes do.
func (n *Node) bind(ctx context.Context, request string, v *volume, r *csispec.NodePublishVolumeRequest) error {
	if err := csi.Missing(request, "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return err
	}
	mounted, err := n.whole(r.GetTargetPath())
	if mounted || err != nil {
		return err
	}
	staged, err := n.config.Mounts.Mounted(r.GetStagingTargetPath())
	if err != nil {
		return csi.Status(err, "publish volume %s", v.id)
	}
	if !staged {
		return status.Errorf(codes.FailedPrecondition, "publish volume %s: nothing is mounted at the staging path %s: the volume must be "+
			"staged first", v.id, r.GetStagingTargetPath())
	}
	if err := n.checkSingle(v, r); err != nil {
		return err
	}
	own, err := n.ownMount(v, r.GetStagingTargetPath())
	if err != nil {
		return err
	}
	if own {
		return n.mount(ctx, v, r.GetTargetPath())
	}
	if err := n.setGroupOf(ctx, v, r.GetStagingTargetPath(), false); err != nil {
		return err
	}
	var options []string
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	return csi.Status(n.config.Mounts.Bind(r.GetStagingTargetPath(), r.GetTargetPath(), options), "publish volume %s", v.id)
}

// checkSingle refuses a second path for a volume that one pod has for itself.
func (n *Node) checkSingle(v *volume, r *csispec.NodePublishVolumeRequest) error {
	if r.GetVolumeCapability().GetAccessMode().GetMode() != csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	others, err := n.config.Mounts.Others(r.GetStagingTargetPath())
	if err != nil {
		return csi.Status(err, "publish volume %s", v.id)
	}
	if len(others) > 0 {
		return status.Errorf(codes.FailedPrecondition, "publish volume %s: it is in use at %s, and access mode ReadWriteOncePod allows "+
			"one pod", v.id, others[0])
	}
	return nil
}

// whole reports whether something is mounted at the path of a pod. A mount that cannot be read stays: without it the pod would
// write to the node's own file system.
func (n *Node) whole(path string) (bool, error) {
	mounted, err := n.config.Mounts.Mounted(path)
	if err == nil && !mounted {
		return false, nil
	}
	fault, unknown := mount.Check(path)
	switch {
	case unknown == nil && fault != nil && fault.Lost:
		return true, status.Errorf(codes.Internal, "path %s: %s; it stays mounted: delete the pod", path, fault.Message)
	case err != nil:
		return mounted, csi.Status(err, "path %s", path)
	}
	return true, csi.Status(unknown, "path %s", path)
}

// publishWithToken mounts a share at the path of a pod with the token of its service account. If the share is mounted there
// and uses an identity, the file server's ticket is renewed.
func (n *Node) publishWithToken(ctx context.Context, v *volume, path string) error {
	mounted, err := n.whole(path)
	if err != nil {
		return err
	}
	if mounted {
		if v.parameters.Identity() {
			return n.ticket(ctx, v)
		}
		return nil
	}
	return n.mount(ctx, v, path)
}

// publishInline mounts a share that a pod names itself.
func (n *Node) publishInline(ctx context.Context, request string, v *volume, r *csispec.NodePublishVolumeRequest) error {
	p := &v.parameters
	if err := errors.Join(checkTwice(r.GetVolumeContext()), p.CheckInline()); err != nil {
		return csi.Invalid("%s: volume attributes: %v", request, err)
	}
	if mounted, err := n.whole(r.GetTargetPath()); err != nil || mounted && !v.needsToken() {
		return err
	}
	if err := n.mounting(v).CheckInlineNames(); err != nil {
		return csi.Invalid("%s: volume attributes: %v", request, err)
	}
	// Files of the share get no rights on the node.
	v.options = append(v.options, p.MountOptions, "nosuid", "nodev")
	p.SecretNamespace = p.PodNamespace
	yes := true
	// A server that the pod names never gets a key that Azure gave to the node.
	foreign := p.Server != "" || p.EndpointSuffix != ""
	if (!n.config.InlineKeys || foreign) && !is(p.WorkloadIdentity) {
		p.KeyFromSecret = &yes
		if p.SecretName == "" {
			return csi.Invalid("%s: volume attributes: secretName is missing: an inline volume gets its key from a Secret of the pod's "+
				"namespace", request)
		}
	}
	if n.config.Authorize != nil && p.SecretName != "" {
		if err := n.config.Authorize(ctx, p.PodNamespace, p.PodAccount, p.SecretName); err != nil {
			return err
		}
	}
	return n.mount(ctx, v, r.GetTargetPath())
}

// checkTwice returns an error if attributes have a key twice, in different letter case.
func checkTwice(attributes map[string]string) error {
	seen := map[string]string{}
	for key := range attributes {
		if other, twice := seen[strings.ToLower(key)]; twice {
			return fmt.Errorf("%s and %s are one key: give one of them", other, key)
		}
		seen[strings.ToLower(key)] = key
	}
	return nil
}

// NodeUnpublishVolume removes a volume from the path of a pod.
func (n *Node) NodeUnpublishVolume(_ context.Context, r *csispec.NodeUnpublishVolumeRequest) (
	*csispec.NodeUnpublishVolumeResponse, error,
) {
	err := n.unmount("NodeUnpublishVolume", r.GetVolumeId(), "target_path", r.GetTargetPath())
	return &csispec.NodeUnpublishVolumeResponse{}, err
}
