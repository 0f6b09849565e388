package volumes

import (
	"context"
	"fmt"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// request is what a sidecar asks a controller.
type request func(context.Context, controller) error

// requests returns what sidecars ask of a volume: each attachment and detachment, the size that its claim wants, and the deletion of a
// volume that is released. A volume at rest is to be there.
func requests(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim, attachments []storagev1.VolumeAttachment) (all []request) {
	for _, a := range attachments {
		if a.DeletionTimestamp != nil {
			all = append(all, unpublish(v, a.Spec.NodeName))
		} else {
			all = append(all, publish(v, a.Spec.NodeName))
		}
	}
	switch want, grows := wanted(v, c); {
	case len(attachments) == 0 && isDeleted(v):
		return []request{remove(v)}
	case grows:
		return append(all, expand(v, want))
	case len(all) == 0:
		return []request{validate(v)}
	}
	return all
}

// isDeleted reports whether external-provisioner deletes a volume.
func isDeleted(v *corev1.PersistentVolume) bool {
	return v.Status.Phase == corev1.VolumeReleased && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// wanted returns the size that a claim wants, if it is more than the volume has.
func wanted(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) (int64, bool) {
	if c == nil || c.Status.Phase != corev1.ClaimBound {
		return 0, false
	}
	want, have := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	return want.Value(), want.Cmp(have) > 0
}

func publish(v *corev1.PersistentVolume, node string) request {
	return func(ctx context.Context, to controller) error {
		_, err := to.ControllerPublishVolume(ctx, &csispec.ControllerPublishVolumeRequest{
			VolumeId: v.Spec.CSI.VolumeHandle, NodeId: node, VolumeCapability: capability(v), Readonly: v.Spec.CSI.ReadOnly,
			VolumeContext: v.Spec.CSI.VolumeAttributes,
		})
		return err
	}
}

func unpublish(v *corev1.PersistentVolume, node string) request {
	return func(ctx context.Context, to controller) error {
		_, err := to.ControllerUnpublishVolume(ctx, &csispec.ControllerUnpublishVolumeRequest{
			VolumeId: v.Spec.CSI.VolumeHandle, NodeId: node,
		})
		return err
	}
}

func expand(v *corev1.PersistentVolume, size int64) request {
	return func(ctx context.Context, to controller) error {
		_, err := to.ControllerExpandVolume(ctx, &csispec.ControllerExpandVolumeRequest{
			VolumeId: v.Spec.CSI.VolumeHandle, CapacityRange: &csispec.CapacityRange{RequiredBytes: size}, VolumeCapability: capability(v),
		})
		return err
	}
}

func remove(v *corev1.PersistentVolume) request {
	return func(ctx context.Context, to controller) error {
		_, err := to.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: v.Spec.CSI.VolumeHandle})
		return err
	}
}

func validate(v *corev1.PersistentVolume) request {
	return func(ctx context.Context, to controller) error {
		answer, err := to.ValidateVolumeCapabilities(ctx, &csispec.ValidateVolumeCapabilitiesRequest{
			VolumeId: v.Spec.CSI.VolumeHandle, VolumeContext: v.Spec.CSI.VolumeAttributes,
			VolumeCapabilities: []*csispec.VolumeCapability{capability(v)},
		})
		if err == nil && answer.GetConfirmed() == nil {
			return fmt.Errorf("%w: %s", errUnconfirmed, answer.GetMessage())
		}
		return err
	}
}

// capability is what external-attacher asks for a volume with a driver that tells single writers apart.
func capability(v *corev1.PersistentVolume) *csispec.VolumeCapability {
	c := &csispec.VolumeCapability{AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode(v.Spec.AccessModes)}}
	if m := v.Spec.VolumeMode; m != nil && *m == corev1.PersistentVolumeBlock {
		c.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{
			FsType: v.Spec.CSI.FSType, MountFlags: v.Spec.MountOptions,
		}}
	}
	return c
}

func mode(modes []corev1.PersistentVolumeAccessMode) csispec.VolumeCapability_AccessMode_Mode {
	switch has := func(m corev1.PersistentVolumeAccessMode) bool { return slices.Contains(modes, m) }; {
	case has(corev1.ReadWriteMany):
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case has(corev1.ReadWriteOncePod):
		return csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case has(corev1.ReadOnlyMany) && !has(corev1.ReadWriteOnce):
		return csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	}
	return csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
}

// message is the text of an answer of a driver.
func message(err error) string { return status.Convert(err).Message() }
