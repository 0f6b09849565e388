package disk

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/pause"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/nodes"
)

// A machine releases a disk some moments after the detachment. An attachment elsewhere waits up to releaseWithin. It checks
// after firstLook, and then in intervals that double up to slowestLook.
const (
	releaseWithin = 30 * time.Second
	firstLook     = 500 * time.Millisecond
	slowestLook   = 4 * time.Second
)

// detachWithin is how long a normal detachment may take before the disk of a node that is out of service is detached by
// force. A detachment from a machine that runs takes some seconds. A longer one may never end, because the machine does not
// answer.
const detachWithin = time.Minute

// free waits until a machine may have a disk. It takes the disk from another machine where Kubernetes does not want it.
func (c *Controller) free(ctx context.Context, have attachedDisk, machine azure.ID) error {
	taken, why := false, "the machine is releasing it"
	deadline := time.Now().Add(releaseWithin)
	for look := firstLook; ; look = min(2*look, slowestLook) {
		other, ok := have.inTheWay(machine)
		if err := usable(have); err != nil || !ok {
			return err
		}
		wait := look
		if !taken {
			var err error
			taken, why, err = c.take(ctx, have.ID, other)
			if azure.IsNotFound(err) {
				return nil // the machine is gone: Azure decides
			}
			if err != nil {
				return csi.Status(err, "attach %s to %s", have.ID.Name(), nodes.MachineName(machine))
			}
			if taken { // which can take minutes
				wait, deadline, why = 0, time.Now().Add(releaseWithin), "it was detached there"
			}
		}
		if time.Now().Add(wait).After(deadline) {
			return status.Errorf(codes.FailedPrecondition, "attach %s to %s: the disk is attached to %s and a disk with maxShares 1 "+
				"can have one machine: %s; it is attached when that machine releases it", have.ID.Name(),
				nodes.MachineName(machine), nodes.MachineName(other), why)
		}
		if err := pause.For(ctx, wait); err != nil {
			return csi.Status(err, "attach %s to %s: waiting for %s to release it", have.ID.Name(),
				nodes.MachineName(machine), nodes.MachineName(other))
		}
		var err error
		if have, err = c.volumeAt(ctx, string(have.ID), azure.Attach); err != nil {
			return err
		}
	}
}

// usable returns an error if a disk is in a state in which no machine can have it.
func usable(have attachedDisk) error {
	switch state := have.Properties.DiskState; state {
	case "ActiveSAS", "ActiveSASFrozen", "ReadyToUpload", "ActiveUpload", "Frozen":
		return status.Errorf(codes.FailedPrecondition, "attach %s: the disk is in the state %s: end the access to its content, or its "+
			"upload, first", have.ID.Name(), state)
	}
	return nil
}

// inTheWay returns the machine that must release a disk before another one can have it.
func (d attachedDisk) inTheWay(machine azure.ID) (azure.ID, bool) {
	shared := d.Properties.MaxShares != nil && *d.Properties.MaxShares > 1
	if holder := d.holder(); !shared && holder != "" && !holder.Equal(machine) {
		return holder, true
	}
	return "", false
}

// take detaches a disk from a machine if no VolumeAttachment wants it there and the node's kubelet does not use it. The
// result taken reports whether it did. If not, why says what an attachment waits for. Without Kubernetes take detaches
// nothing.
func (c *Controller) take(ctx context.Context, id, machine azure.ID) (taken bool, why string, err error) {
	if c.config.Uses == nil {
		return false, "without Kubernetes nothing tells whether the disk is in use there", nil
	}
	node, ours, err := c.nodeOf(ctx, machine)
	if err != nil {
		return false, "", err
	}
	use, err := c.config.Uses.Use(ctx, id, node)
	switch {
	case err != nil:
		return false, "", err
	case use.Leaving:
		return false, "its VolumeAttachment at node " + node + " is being deleted", nil
	case use.Attached:
		return false, "", status.Errorf(codes.FailedPrecondition, "the disk is attached to %s: a VolumeAttachment at node %s wants it "+
			"there; it can be attached when the pods there are gone", nodes.MachineName(machine), node)
	case !ours:
		return false, "that machine is no node of this cluster", nil
	case use.Mounted:
		return false, "", status.Errorf(codes.FailedPrecondition, "the disk is attached to %s, and node %s reports it in use; "+
			"if the machine is off, taint the node with node.kubernetes.io/out-of-service", nodes.MachineName(machine), node)
	}
	c.config.Log.InfoContext(ctx, "detach a disk from a node where no VolumeAttachment wants it", "disk", id.Name(), "node", node)
	err = c.detach(ctx, machine, id, node)
	if azure.KindOf(err) == azure.Busy {
		return false, err.Error(), nil // such as a machine that is being deleted, which releases its disks
	}
	return true, "", err
}

// nodeOf returns the name of a machine's node. ours is false if the machine has no Node. The name is then the computer name
// of the machine, which a deleted or future Node has.
func (c *Controller) nodeOf(ctx context.Context, machine azure.ID) (name string, ours bool, err error) {
	if name = c.config.Nodes.Node(ctx, machine); name != "" {
		return name, true, nil
	}
	have, err := read[compute.Instance](ctx, azure.At(c.config.Azure, azure.Detach), machine)
	if err != nil {
		return "", false, err
	}
	if os := have.Properties.OSProfile; os != nil && os.ComputerName != "" {
		return strings.ToLower(os.ComputerName), false, nil
	}
	return strings.ToLower(machine.Name()), false, nil
}

// detach detaches a disk from a machine. If that fails or takes too long and the node is out of service, it detaches the
// disk by force. What the machine has not written is lost then, and the machine cannot write any more.
func (c *Controller) detach(ctx context.Context, machine, id azure.ID, node string) error {
	done := make(chan error, 1)
	go func() {
		_, err := c.attacher.change(ctx, machine, disk.Change{Disk: id})
		done <- err
	}()
	if c.config.Uses == nil {
		return <-done
	}
	select {
	case err := <-done:
		if err == nil || !didNotDetach(err) {
			return err
		}
		if out, asked := c.config.Uses.OutOfService(ctx, node); asked != nil || !out {
			return err
		}
	case <-time.After(detachWithin):
		if out, err := c.config.Uses.OutOfService(ctx, node); err != nil || !out {
			return <-done
		}
	}
	c.config.Log.WarnContext(ctx, "detach by force: the node is out of service and its machine did not release the disk", "disk", id.Name(),
		"node", node)
	return c.attacher.force(ctx, machine, id)
}

// didNotDetach reports whether Azure accepted a detachment and the machine kept the disk. Other errors, such as those of
// requests that Azure did not accept, say nothing of the machine.
func didNotDetach(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	const accepted = 200
	return ok && (e.Kind == azure.Changed && e.Status == 0 || e.Kind != azure.Changed && e.Status == accepted)
}

// detachFromLost detaches a disk from the machine of a deleted Node. Among the machines that have the disk it finds the one
// with the name of the node.
func (c *Controller) detachFromLost(ctx context.Context, id azure.ID, node string) error {
	have, err := readDisk(ctx, azure.At(c.config.Azure, azure.Detach), id)
	if azure.IsNotFound(err) || err == nil && have.holder() == "" {
		return nil
	}
	if err != nil {
		return err
	}
	for _, machine := range have.Machines {
		name, _, err := c.nodeOf(ctx, machine)
		if err == nil && strings.EqualFold(name, node) {
			err = c.detach(ctx, machine, id, node)
		}
		if err != nil && !azure.IsNotFound(err) {
			return err
		}
	}
	return nil
}
