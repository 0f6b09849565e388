package disk

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/azure"
	"kaz/internal/csi/kube"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/nodes"
)

// Use is how a node uses a disk, as Kubernetes knows it. The zero value is a disk that Kubernetes does not want there.
type Use struct {
	// Attached says that a VolumeAttachment exists. Leaving says that it is being deleted.
	Attached, Leaving bool
	// Mounted says that the kubelet reports the volume in use. It is false for a node that is out of service.
	Mounted bool
}

// Uses knows which disks Kubernetes wants at which nodes.
type Uses interface {
	// Use returns how a node uses a disk.
	Use(ctx context.Context, id azure.ID, node string) (Use, error)
	// LUNs returns the disks by the LUNs that Kubernetes has given to a node's kubelet, nil if that is not known. The
	// kubelet may look for a disk there late.
	LUNs(ctx context.Context, node string) map[int]azure.ID
	// OutOfService reports whether an administrator or a controller has declared that a node's machine is off: the node
	// has the taint node.kubernetes.io/out-of-service.
	OutOfService(ctx context.Context, node string) (bool, error)
	// Volumes returns the persistent volumes that have a disk as their handle.
	Volumes(ctx context.Context, id azure.ID) ([]disk.PersistentVolume, error)
}

// Attachments finds uses of disks in VolumeAttachments, persistent volumes and Nodes.
type Attachments struct {
	driver               string
	client               *kube.Client
	attachments, volumes cache.SharedIndexInformer
}

var _ Uses = (*Attachments)(nil)

const byNode = "node"

// NewAttachments watches the VolumeAttachments and persistent volumes until ctx ends. It does not wait for the first list.
func NewAttachments(ctx context.Context, client *kube.Client, driver string) (*Attachments, error) {
	a := &Attachments{
		driver: driver, client: client,
		attachments: kube.NewInformer(client.VolumeAttachments, &storagev1.VolumeAttachment{},
			cache.Indexers{byNode: func(object any) ([]string, error) {
				return []string{strings.ToLower(object.(*storagev1.VolumeAttachment).Spec.NodeName)}, nil
			}}),
		volumes: kube.NewInformer(client.PersistentVolumes, &corev1.PersistentVolume{}, cache.Indexers{}),
	}
	for _, informer := range []cache.SharedIndexInformer{a.attachments, a.volumes} {
		if err := informer.SetTransform(onlyDisks); err != nil {
			return nil, err
		}
		go informer.RunWithContext(ctx)
	}
	return a, nil
}

// Synced returns nil once the watches have read all objects.
func (a *Attachments) Synced(context.Context) error {
	if !a.attachments.HasSynced() || !a.volumes.HasSynced() {
		return &azure.Error{Kind: azure.Unavailable, Message: "VolumeAttachments and persistent volumes are not read yet"}
	}
	return nil
}

// onlyDisks drops what [Attachments] does not need, so that thousands of volumes need little memory.
func onlyDisks(object any) (any, error) {
	meta := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp}
	}
	switch o := object.(type) {
	case *storagev1.VolumeAttachment:
		spec := o.Spec
		if inline := spec.Source.InlineVolumeSpec; inline != nil {
			spec.Source.InlineVolumeSpec = onlySource(inline)
		}
		status := storagev1.VolumeAttachmentStatus{Attached: o.Status.Attached}
		if lun, ok := o.Status.AttachmentMetadata[lunKey]; ok {
			status.AttachmentMetadata = map[string]string{lunKey: lun}
		}
		return &storagev1.VolumeAttachment{ObjectMeta: meta(o.ObjectMeta), Spec: spec, Status: status}, nil
	case *corev1.PersistentVolume:
		spec := onlySource(&o.Spec)
		spec.PersistentVolumeReclaimPolicy = o.Spec.PersistentVolumeReclaimPolicy
		status := corev1.PersistentVolumeStatus{Phase: o.Status.Phase}
		return &corev1.PersistentVolume{ObjectMeta: meta(o.ObjectMeta), Spec: *spec, Status: status}, nil
	}
	return object, nil
}

func onlySource(spec *corev1.PersistentVolumeSpec) *corev1.PersistentVolumeSpec {
	kept := &corev1.PersistentVolumeSpec{}
	if csi := spec.CSI; csi != nil {
		kept.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	if disk := spec.AzureDisk; disk != nil {
		kept.AzureDisk = &corev1.AzureDiskVolumeSource{DataDiskURI: disk.DataDiskURI}
	}
	return kept
}

// handle returns the disk of a volume as the volume names it, "" for a volume of another driver. The name of a disk of the
// in-tree driver is its id, too.
func (a *Attachments) handle(spec *corev1.PersistentVolumeSpec) string {
	switch {
	case spec.CSI != nil && spec.CSI.Driver == a.driver:
		return spec.CSI.VolumeHandle
	case spec.AzureDisk != nil:
		return spec.AzureDisk.DataDiskURI
	}
	return ""
}

// Volumes implements [Uses].
func (a *Attachments) Volumes(ctx context.Context, id azure.ID) ([]disk.PersistentVolume, error) {
	if err := a.Synced(ctx); err != nil {
		return nil, err
	}
	var all []disk.PersistentVolume
	for _, object := range a.volumes.GetStore().List() {
		v := object.(*corev1.PersistentVolume)
		if azure.ID(a.handle(&v.Spec)).Equal(id) {
			released := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
				(v.DeletionTimestamp != nil || v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed)
			all = append(all, disk.PersistentVolume{Name: v.Name, Released: released})
		}
	}
	slices.SortFunc(all, func(a, b disk.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Use implements [Uses]. It reads from the API server what the watch does not show. A decision to take a disk from a node
// must not rely on old information.
func (a *Attachments) Use(ctx context.Context, disk azure.ID, node string) (Use, error) {
	if err := a.Synced(ctx); err != nil {
		return Use{}, err
	}
	objects, err := a.attachments.GetIndexer().ByIndex(byNode, strings.ToLower(node))
	if err != nil {
		return Use{}, err
	}
	use := Use{Leaving: true}
	note := func(attachment *storagev1.VolumeAttachment) {
		use.Attached, use.Leaving = true, use.Leaving && attachment.DeletionTimestamp != nil
	}
	for _, object := range objects {
		attachment := object.(*storagev1.VolumeAttachment)
		handle, err := a.handleOf(ctx, attachment)
		if err != nil {
			return Use{}, err
		}
		if azure.ID(handle).Equal(disk) {
			note(attachment)
		}
	}
	if !use.Attached {
		if attachment, err := a.newest(ctx, disk, node); err != nil {
			return Use{}, err
		} else if attachment != nil {
			note(attachment)
		}
	}
	if use.Attached {
		return use, nil
	}
	mounted, err := a.mounted(ctx, disk, node)
	return Use{Mounted: mounted}, err
}

// LUNs implements [Uses].
func (a *Attachments) LUNs(ctx context.Context, node string) map[int]azure.ID {
	objects, err := a.attachments.GetIndexer().ByIndex(byNode, strings.ToLower(node))
	if err != nil || a.Synced(ctx) != nil {
		return nil
	}
	published := map[int]azure.ID{}
	for _, object := range objects {
		attachment := object.(*storagev1.VolumeAttachment)
		lun, err := strconv.Atoi(attachment.Status.AttachmentMetadata[lunKey])
		if err != nil || !attachment.Status.Attached {
			continue
		}
		if handle, err := a.handleOf(ctx, attachment); err == nil && handle != "" {
			published[lun] = azure.ID(handle)
		}
	}
	return published
}

// handleOf returns the disk of a VolumeAttachment as its volume names it, "" if it is not of this driver.
func (a *Attachments) handleOf(ctx context.Context, attachment *storagev1.VolumeAttachment) (string, error) {
	source := attachment.Spec.Source
	switch {
	case attachment.Spec.Attacher != a.driver:
		return "", nil
	case source.InlineVolumeSpec != nil:
		return a.handle(source.InlineVolumeSpec), nil
	case source.PersistentVolumeName == nil:
		return "", nil
	}
	name := *source.PersistentVolumeName
	if object, found, err := a.volumes.GetStore().GetByKey(name); err == nil && found {
		return a.handle(&object.(*corev1.PersistentVolume).Spec), nil
	}
	volume, err := a.client.PersistentVolumes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", unread(err, "persistent volume %s", name)
	}
	return a.handle(&volume.Spec), nil
}

// newest reads the VolumeAttachment of a disk at a node by the name that Kubernetes gives it, nil if there is none. The
// watch may not have shown it yet. Its name has the volume handle in the letter case of the volume, so all are tried.
func (a *Attachments) newest(ctx context.Context, disk azure.ID, node string) (*storagev1.VolumeAttachment, error) {
	handles := map[string]bool{string(disk): true}
	for _, object := range a.volumes.GetStore().List() {
		if handle := a.handle(&object.(*corev1.PersistentVolume).Spec); azure.ID(handle).Equal(disk) {
			handles[handle] = true
		}
	}
	for handle := range handles {
		attachment, err := a.client.VolumeAttachments.Get(ctx, AttachmentName(handle, a.driver, node), metav1.GetOptions{})
		if err == nil {
			return attachment, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, unread(err, "the VolumeAttachment of %s at node %s", disk.Name(), node)
		}
	}
	return nil, nil
}

// AttachmentName returns the name that Kubernetes gives the VolumeAttachment of a volume at a node.
func AttachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// mounted reports whether the kubelet of a node says that it uses a disk. It returns false for a node that is out of
// service: the kubelet does not run there.
func (a *Attachments) mounted(ctx context.Context, disk azure.ID, name string) (bool, error) {
	node, err := a.node(ctx, name)
	if node == nil || isOutOfService(node) {
		return false, err
	}
	for _, volume := range node.Status.VolumesInUse {
		if handle, ok := strings.CutPrefix(string(volume), "kubernetes.io/csi/"+a.driver+"^"); ok && azure.ID(handle).Equal(disk) {
			return true, nil
		}
	}
	return false, nil
}

// node reads a Node, nil if it does not exist.
func (a *Attachments) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := a.client.Nodes.Get(ctx, strings.ToLower(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unread(err, "node %s", name)
	}
	return node, nil
}

func isOutOfService(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == nodes.OutOfService().Key {
			return true
		}
	}
	return false
}

// OutOfService implements [Uses].
func (a *Attachments) OutOfService(ctx context.Context, name string) (bool, error) {
	node, err := a.node(ctx, name)
	return node != nil && isOutOfService(node), err
}
