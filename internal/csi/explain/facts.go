package explain

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/nodes"
	"kaz/internal/plan/share"
)

// Facts are what Kubernetes and Azure say about one claim.
type Facts struct {
	Claim       *corev1.PersistentVolumeClaim
	Class       *storagev1.StorageClass   // nil if it does not exist
	Volume      *corev1.PersistentVolume  // nil without one
	Disk        azure.Document            // nil if it was not read
	DiskError   error                     // of reading the disk
	Share       *ShareFacts               // nil if the volume is no share
	Machines    map[string]azure.Document // that have the disk, by the key of the id
	Attachments []storagev1.VolumeAttachment
	Pods        []corev1.Pod
	Nodes       map[string]*corev1.Node // of attachments and pods; nil for a deleted node
	Warnings    []corev1.Event          // about the claim and its pods
}

// Gather reads the facts about a claim. home has the subscription and the resource group of shares with ids that
// name neither.
func Gather(ctx context.Context, client kubernetes.Interface, from azure.Reader, home share.Cluster, namespace, name string) (*Facts,
	error) {
	f := &Facts{Machines: map[string]azure.Document{}, Nodes: map[string]*corev1.Node{}}
	var err error
	if f.Claim, err = client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("read persistentvolumeclaim %s/%s: %w", namespace, name, err)
	}
	if err := f.readKubernetes(ctx, client); err != nil {
		return nil, err
	}
	if f.Volume != nil && f.ofFiles() {
		return f, f.readShare(ctx, from, home)
	}
	return f, f.readAzure(ctx, from)
}

func (f *Facts) readKubernetes(ctx context.Context, client kubernetes.Interface) error {
	if name := claim.ClassName(f.Claim); name != "" {
		class, err := client.StorageV1().StorageClasses().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read storageclass %s: %w", name, err)
		} else if err == nil {
			f.Class = class
		}
	}
	if err := f.readVolume(ctx, client); err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(f.Claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		if uses(p, f.Claim.Name) {
			f.Pods = append(f.Pods, p)
		}
	}
	events, err := client.CoreV1().Events(f.Claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && f.concerns(e.InvolvedObject) {
			f.Warnings = append(f.Warnings, e)
		}
	}
	return f.readNodes(ctx, client)
}

// readVolume reads the persistent volume and its attachments.
func (f *Facts) readVolume(ctx context.Context, client kubernetes.Interface) error {
	name := f.Claim.Spec.VolumeName
	if name == "" {
		return nil
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read persistentvolume %s: %w", name, err)
	}
	f.Volume = volume
	if f.ofFiles() {
		return nil // shares are not attached
	}
	if f.handle() == "" {
		return fmt.Errorf("persistentvolumeclaim %s/%s: persistentvolume %s is neither a disk of %s nor a share of %s",
			f.Claim.Namespace, f.Claim.Name, name, claim.Disks, claim.Shares)
	}
	all, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volumeattachments: %w", err)
	}
	for _, a := range all.Items {
		if source := a.Spec.Source.PersistentVolumeName; source != nil && *source == name {
			f.Attachments = append(f.Attachments, a)
		}
	}
	return nil
}

// readNodes reads the nodes of pods and attachments.
func (f *Facts) readNodes(ctx context.Context, client kubernetes.Interface) error {
	var names []string
	for _, p := range f.Pods {
		names = append(names, p.Spec.NodeName)
	}
	for _, a := range f.Attachments {
		names = append(names, a.Spec.NodeName)
	}
	for _, name := range names {
		if _, known := f.Nodes[name]; known || name == "" {
			continue
		}
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			node = nil
		case err != nil:
			return fmt.Errorf("read node %s: %w", name, err)
		}
		f.Nodes[name] = node
	}
	return nil
}

// readAzure reads the disk and the machines that have it. A disk that cannot be read is a fact.
func (f *Facts) readAzure(ctx context.Context, from azure.Reader) error {
	id := azure.ID(f.handle())
	if id == "" {
		return nil
	}
	if f.Disk, f.DiskError = from.Get(ctx, id); f.DiskError != nil {
		return ctx.Err()
	}
	holders, err := nodes.Holders(f.Disk)
	if err != nil {
		return err
	}
	for _, machine := range append(holders, f.machines()...) {
		if f.Machines[machine.Key()] != nil {
			continue
		}
		doc, err := from.Get(ctx, machine)
		if err != nil && !azure.IsNotFound(err) {
			return fmt.Errorf("read machine %s: %w", nodes.MachineName(machine), err)
		} else if err == nil {
			f.Machines[machine.Key()] = doc
		}
	}
	return nil
}

// machines are the machines of the nodes to which the volume is attached.
func (f *Facts) machines() []azure.ID {
	var all []azure.ID
	for _, a := range f.Attachments {
		if id, ok := f.machine(a.Spec.NodeName); ok {
			all = append(all, id)
		}
	}
	return all
}

func (f *Facts) machine(node string) (azure.ID, bool) {
	if f.Nodes[node] == nil {
		return "", false
	}
	return nodes.MachineID(f.Nodes[node].Spec.ProviderID)
}

// node returns the name of the node of a machine, "" if no node of the facts has it.
func (f *Facts) node(machine azure.ID) string {
	for name := range f.Nodes {
		if id, ok := f.machine(name); ok && id.Equal(machine) {
			return name
		}
	}
	return ""
}

// handle is the id of the volume's disk, "" if the volume is no Azure disk or there is none.
func (f *Facts) handle() string {
	if f.Volume == nil {
		return ""
	}
	switch source := f.Volume.Spec; {
	case source.CSI != nil && strings.Contains(strings.ToLower(source.CSI.VolumeHandle), strings.ToLower(compute.Disks)):
		return source.CSI.VolumeHandle
	case source.AzureDisk != nil:
		return source.AzureDisk.DataDiskURI
	}
	return ""
}

func uses(p corev1.Pod, claim string) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim ||
			v.Ephemeral != nil && p.Name+"-"+v.Name == claim {
			return true
		}
	}
	return false
}

func (f *Facts) concerns(o corev1.ObjectReference) bool {
	if o.Kind == "PersistentVolumeClaim" {
		return o.Name == f.Claim.Name
	}
	for _, p := range f.Pods {
		if o.Kind == "Pod" && o.Name == p.Name {
			return true
		}
	}
	return false
}
