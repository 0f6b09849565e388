// Package claim says what a PersistentVolumeClaim without a volume waits for. Layer L1: pure.
package claim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Provisioners of disks and of shares: the drivers, and those of volumes from before CSI.
const (
	Disks       = "disk.csi.azure.com"
	Shares      = "file.csi.azure.com"
	InTreeDisk  = "kubernetes.io/azure-disk"
	InTreeShare = "kubernetes.io/azure-file"
)

// selectedNode is the annotation of a claim with the node of its first pod.
const selectedNode = "volume.kubernetes.io/selected-node"

// ClassName returns the name of the storage class of a claim, "" for none.
func ClassName(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

// Unbound is what a claim without a volume waits for, or why it never gets one: one of both texts is empty.
type Unbound struct {
	Wait, Problem string
	// Ours is whether a provisioner of Azure's volumes is to make the volume.
	Ours bool
}

// Explain says why a claim has no volume. The class is nil if it does not exist. pods are the names of those that use the claim.
func Explain(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, pods []string) Unbound {
	name := ClassName(c)
	switch {
	case c.Spec.VolumeName != "":
		return Unbound{Problem: fmt.Sprintf("persistentvolume %s does not exist: the claim has lost its volume", c.Spec.VolumeName)}
	case name == "":
		return Unbound{Wait: "a persistentvolume: the claim has no storage class, so none is created for it"}
	case class == nil:
		return Unbound{Problem: fmt.Sprintf("storageclass %s does not exist", name)}
	}
	switch class.Provisioner {
	case Disks, InTreeDisk:
		return Unbound{Wait: disk(c, class, pods), Ours: true}
	case Shares, InTreeShare:
		return Unbound{Wait: share(c, class, pods), Ours: true}
	}
	return Unbound{Problem: fmt.Sprintf("storageclass %s is of neither driver, %s or %s: its provisioner is %s", name, Disks, Shares,
		class.Provisioner)}
}

func disk(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, pods []string) string {
	node := c.Annotations[selectedNode]
	switch {
	case !delayed(class):
		return "the csi-provisioner to create the disk"
	case node != "":
		return "the csi-provisioner to create the disk in the zone of node " + node
	case len(pods) == 0:
		return "a pod that uses the claim: the disk is created in the zone of the pod's node"
	}
	return fmt.Sprintf("the scheduler to choose a node for pod %s: the disk is created in the zone of that node", pods[0])
}

func share(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, pods []string) string {
	switch {
	case IsDue(c, class):
		return "the csi-provisioner to create the share"
	case len(pods) == 0:
		return "a pod that uses the claim: then the share is created"
	}
	return fmt.Sprintf("the scheduler to choose a node for pod %s: then the share is created", pods[0])
}

// IsDue reports whether the provisioner of a class is to make the volume of a claim now. A class can have it wait for a pod's node.
func IsDue(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	return !delayed(class) || c.Annotations[selectedNode] != ""
}

func delayed(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
