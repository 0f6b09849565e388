package volumes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/kube"
	"kaz/internal/pause"
	"kaz/internal/plan/claim"
	plandisk "kaz/internal/plan/disk"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Disks decides about the volumes of the driver of managed disks. The driver's watches run until ctx ends, from the first round on.
func Disks(ctx context.Context, c Config, client *kube.Client, cluster plandisk.Cluster) shadow.Source {
	open := sync.OnceValues(func() (*watches, error) { return watch(ctx, client) })
	return shadow.Source{Kind: "disks", Decide: func(ctx context.Context) ([]plan.Verdict, error) {
		d := driver{
			Config: c, name: claim.Disks, inTree: claim.InTreeDisk, what: "a disk", attaches: true, before: disksOf,
			check: func(parameters map[string]string) error {
				_, err := plandisk.ReadParameters(parameters, nil)
				return err
			},
			unnamed: func(*corev1.PersistentVolume) bool { return false },
		}
		if _, err := d.read(ctx); err != nil { // a missing right is named at once, where a watch would try again
			return nil, err
		}
		w, err := open()
		if err == nil {
			err = w.wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		d.open = func(from azure.Reader, to azure.Writer) (controller, func()) {
			controller := disk.NewController(disk.Config{
				Name: disk.DefaultName, Cluster: cluster, Nodes: w.nodes, Uses: w.uses, OnlineResize: true, Log: c.Log,
				Azure: struct {
					azure.Reader
					azure.Writer
				}{from, to},
			})
			return controller, controller.Close
		}
		return d.decide(ctx)
	}}
}

// watches are the driver's watches of Kubernetes.
type watches struct {
	nodes *disk.KubernetesNodes
	uses  *disk.Attachments
}

func watch(ctx context.Context, client *kube.Client) (*watches, error) {
	uses, err := disk.NewAttachments(ctx, client, disk.DefaultName)
	if err != nil {
		return nil, err
	}
	nodes, err := disk.NewKubernetesNodes(ctx, client)
	return &watches{nodes, uses}, err
}

// wait waits until the watches have read all objects.
func (w *watches) wait(ctx context.Context) error {
	const longest, look = 30 * time.Second, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for {
		err := w.uses.Synced(ctx)
		if err == nil {
			err = w.nodes.Synced(ctx)
		}
		if err == nil {
			return nil
		}
		if pause.For(ctx, look) != nil {
			return fmt.Errorf("watch Nodes, VolumeAttachments and PersistentVolumes: %w", err)
		}
	}
}

// disksOf are the lists of the disks in the groups of the volumes.
func disksOf(volumes []*corev1.PersistentVolume) (all []azure.Query) {
	for _, v := range volumes {
		id, err := azure.ParseID(v.Spec.CSI.VolumeHandle)
		if err != nil || !id.Is(compute.Disks) {
			continue
		}
		group := azure.GroupID(id.Subscription(), id.Group())
		if !slices.ContainsFunc(all, func(q azure.Query) bool { return q.Scope.Equal(group) }) && len(all) < mostLists {
			all = append(all, azure.Query{Scope: group, Type: compute.Disks})
		}
	}
	return all
}

// mostLists bounds the lists of a round. What is not in them is read alone.
const mostLists = 50
