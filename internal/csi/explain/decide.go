package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/nodes"
)

// decision is an explanation in the making.
type decision struct {
	*Facts
	shared bool // several machines can have the disk
	out    Volume
}

func (d *decision) wait(format string, args ...any) {
	d.out.Waits = append(d.out.Waits, fmt.Sprintf(format, args...))
}

func (d *decision) problem(format string, args ...any) {
	d.out.Problems = append(d.out.Problems, fmt.Sprintf(format, args...))
}

func (d *decision) say(source, text string) {
	text = source + ": " + strings.Join(strings.Fields(text), " ")
	if !slices.Contains(d.out.Said, text) {
		d.out.Said = append(d.out.Said, text)
	}
}

// Explain decides what the facts mean.
func (f *Facts) Explain() (Volume, error) {
	d := &decision{Facts: f, out: Volume{
		Claim: f.Claim.Namespace + "/" + f.Claim.Name, Phase: string(f.Claim.Status.Phase), Class: claim.ClassName(f.Claim),
		Requested: quantity(f.Claim.Spec.Resources.Requests), Capacity: quantity(f.Claim.Status.Capacity),
	}}
	for _, p := range f.Pods {
		d.out.Pods = append(d.out.Pods, Pod{Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase)})
	}
	switch {
	case f.Volume == nil:
		d.unbound()
	case f.Share != nil:
		d.out.Volume = f.Volume.Name
		if err := d.share(); err != nil {
			return Volume{}, err
		}
		d.scheduling()
		d.starts()
	default:
		d.out.Volume = f.Volume.Name
		if err := d.disk(); err != nil {
			return Volume{}, err
		}
		d.attachments()
		d.unrequested()
		d.zones()
		d.resize()
		d.starts()
	}
	d.messages()
	return d.out, nil
}

func quantity(list corev1.ResourceList) string {
	if q, ok := list[corev1.ResourceStorage]; ok {
		return q.String()
	}
	return ""
}

// unbound says why a claim has no volume yet.
func (d *decision) unbound() {
	names := make([]string, len(d.Pods))
	for i, p := range d.Pods {
		names[i] = p.Name
	}
	u := claim.Explain(d.Claim, d.Class, names)
	if u.Problem != "" {
		d.problem("%s", u.Problem)
	} else {
		d.wait("%s", u.Wait)
	}
}

// disk says what Azure says about the disk.
func (d *decision) disk() error {
	d.out.Disk = &Disk{ID: d.handle()}
	if d.DiskError != nil {
		if azure.IsNotFound(d.DiskError) {
			d.problem("the disk does not exist in Azure: its data is lost unless there is a snapshot")
		} else {
			d.problem("the disk could not be read in Azure")
		}
		d.say("Azure", d.DiskError.Error())
		return nil
	}
	have, err := azure.Decode[compute.Disk](d.Disk)
	if err != nil {
		return fmt.Errorf("read disk: %w", err)
	}
	p, shown := have.Properties, d.out.Disk
	shown.Zones, shown.SizeGiB, shown.State = have.Zones, p.DiskSizeGB, p.DiskState
	if have.SKU != nil {
		shown.SKU = have.SKU.Name
	}
	d.shared = p.MaxShares != nil && *p.MaxShares > 1
	switch {
	case p.ProvisioningState == "Failed":
		d.problem("Azure's last operation on the disk failed (provisioning state Failed)")
	case p.ProvisioningState != "" && p.ProvisioningState != "Succeeded":
		d.wait("Azure to end an operation on the disk (provisioning state %s)", p.ProvisioningState)
	}
	if strings.HasPrefix(p.DiskState, "ActiveSAS") {
		d.problem("the disk has a shared access signature (state %s): revoke it with az disk revoke-access, or it cannot be attached",
			p.DiskState)
	}
	return d.holders()
}

// holders adds the machines that have the disk.
func (d *decision) holders() error {
	holders, err := nodes.Holders(d.Disk)
	if err != nil {
		return err
	}
	for _, machine := range holders {
		h := Holder{ID: string(machine), Node: d.node(machine)}
		if doc := d.Machines[machine.Key()]; doc != nil {
			m, err := azure.Decode[compute.MachineDisks](doc)
			if err != nil {
				return fmt.Errorf("read machine %s: %w", nodes.MachineName(machine), err)
			}
			for _, data := range m.Properties.StorageProfile.DataDisks {
				if data.ManagedDisk.ID.Equal(azure.ID(d.handle())) {
					h.LUN, h.Detaching = &data.LUN, data.ToBeDetached
				}
			}
		}
		d.out.Disk.Machines = append(d.out.Disk.Machines, h)
	}
	return nil
}

// attachments says what each VolumeAttachment waits for.
func (d *decision) attachments() {
	for _, a := range d.Attachments {
		deleted := a.DeletionTimestamp != nil
		d.out.Attachments = append(d.out.Attachments,
			Attachment{Name: a.Name, Node: a.Spec.NodeName, Attached: a.Status.Attached, Deleted: deleted})
		if e := a.Status.AttachError; e != nil {
			d.say("attachment to node "+a.Spec.NodeName, e.Message)
		}
		if e := a.Status.DetachError; e != nil {
			d.say("detachment from node "+a.Spec.NodeName, e.Message)
		}
		switch {
		case deleted && d.Nodes[a.Spec.NodeName] == nil:
			d.wait("the detachment from the machine of node %s, which is deleted", a.Spec.NodeName)
		case deleted:
			d.wait("the detachment from node %s", a.Spec.NodeName)
		case !a.Status.Attached:
			d.attaching(a.Spec.NodeName)
		}
	}
	for _, p := range d.Pods {
		if p.Spec.NodeName != "" && !d.attachedTo(p.Spec.NodeName) {
			d.wait("a VolumeAttachment to node %s for pod %s, which the attach-detach controller creates", p.Spec.NodeName, p.Name)
		}
		if p.Spec.NodeName == "" {
			d.wait("the scheduler to choose a node for pod %s", p.Name)
		}
	}
}

// starts says which pods wait for the mount of the volume, or for what comes after it.
func (d *decision) starts() {
	for _, p := range d.Pods {
		if p.Spec.NodeName == "" || !isStarting(p) || d.Disk != nil && !d.isAttached(p.Spec.NodeName) {
			continue
		}
		if d.failsToMount(p.Name) {
			d.wait("the kubelet of node %s to mount the volume for pod %s: it tries again; the last message says why it failed",
				p.Spec.NodeName, p.Name)
		} else {
			d.wait("the kubelet of node %s to mount the volume and to start pod %s", p.Spec.NodeName, p.Name)
		}
	}
}

// isStarting reports whether the kubelet is still creating the first containers of a pod, which it does when all volumes are
// mounted.
func isStarting(p corev1.Pod) bool {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for _, c := range statuses {
		if w := c.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return false
		}
	}
	return len(statuses) > 0 || p.Status.Phase == corev1.PodPending
}

// failsToMount reports whether a warning says that the volumes of a pod cannot be mounted.
func (d *decision) failsToMount(pod string) bool {
	return slices.ContainsFunc(d.Warnings, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == pod &&
			(e.Reason == "FailedMount" || e.Reason == "FailedMapVolume")
	})
}

// attaching says what an attachment to a node waits for.
func (d *decision) attaching(node string) {
	for _, h := range d.out.Disk.Machines {
		switch {
		case h.Node == node && node != "":
			d.wait("the csi-attacher to report that the disk is attached to node %s: Azure has done it", node)
			return
		case d.shared:
		case h.Node != "":
			d.wait("node %s to release the disk: then it is attached to node %s", h.Node, node)
			return
		default:
			d.wait("machine %s to release the disk: then it is attached to node %s", nodes.MachineName(azure.ID(h.ID)), node)
			return
		}
	}
	d.wait("Azure to attach the disk to the machine of node %s", node)
}

func (d *decision) attachedTo(node string) bool {
	return slices.ContainsFunc(d.Attachments, func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
}

func (d *decision) isAttached(node string) bool {
	return slices.ContainsFunc(d.Attachments, func(a storagev1.VolumeAttachment) bool {
		return a.Spec.NodeName == node && a.Status.Attached && a.DeletionTimestamp == nil
	})
}

// unrequested says which machines have the disk although Kubernetes did not ask for that.
func (d *decision) unrequested() {
	for _, h := range d.out.Disk.Machines {
		if h.Node == "" || !d.attachedTo(h.Node) {
			d.problem("machine %s has the disk, and no VolumeAttachment asks for that", nodes.MachineName(azure.ID(h.ID)))
		}
	}
}

// zones says which pods are on nodes that cannot have the disk.
func (d *decision) zones() {
	if len(d.out.Disk.Zones) != 1 {
		return
	}
	for _, p := range d.Pods {
		node := d.Nodes[p.Spec.NodeName]
		if node == nil {
			continue
		}
		zone := node.Labels[corev1.LabelTopologyZone]
		if i := strings.LastIndexByte(zone, '-'); zone != "" && zone[i+1:] != d.out.Disk.Zones[0] {
			d.problem("pod %s is on node %s in zone %s, and the disk is in zone %s: a disk can only be attached in its zone",
				p.Name, p.Spec.NodeName, zone, d.out.Disk.Zones[0])
		}
	}
}

// resize says what a claim that wants more waits for.
func (d *decision) resize() {
	want, have := d.Claim.Spec.Resources.Requests[corev1.ResourceStorage], d.Claim.Status.Capacity[corev1.ResourceStorage]
	if d.Claim.Status.Phase != corev1.ClaimBound || want.Cmp(have) <= 0 {
		return
	}
	const gib = 1 << 30
	switch {
	case d.out.Disk.SizeGiB*gib < want.Value():
		d.wait("the csi-resizer to make the disk larger: it has %d GiB", d.out.Disk.SizeGiB)
	case len(d.Pods) == 0:
		d.wait("a pod that uses the claim: the disk is large enough, and its file system grows when it is mounted")
	default:
		d.wait("the node to make the file system larger: the disk is large enough")
	}
}

// messages adds the newest warning of each reason.
func (d *decision) messages() {
	last := map[string]corev1.Event{}
	for _, e := range d.Warnings {
		key := e.InvolvedObject.Name + " " + e.Reason
		if before, ok := last[key]; !ok || e.LastTimestamp.After(before.LastTimestamp.Time) {
			last[key] = e
		}
	}
	var all []corev1.Event
	for _, e := range last {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b corev1.Event) int {
		if c := a.LastTimestamp.Compare(b.LastTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	for _, e := range all {
		d.say(e.Reason+" of "+strings.ToLower(e.InvolvedObject.Kind)+" "+e.InvolvedObject.Name, e.Message)
	}
	for _, c := range d.Claim.Status.Conditions {
		if c.Message != "" && c.Status == corev1.ConditionTrue {
			d.say("condition "+string(c.Type), c.Message)
		}
	}
}
