//go:build linux

package node_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/azure/metadata"
	"kaz/internal/csi/disk/node"
	plandisk "kaz/internal/plan/disk"
)

// instance is the metadata of a machine of a size in a zone of eastus.
func instance(size, zone string) metadata.Instance {
	return metadata.Instance{Compute: &metadata.Compute{Location: "eastus", Zone: zone, VMSize: size}}
}

// TestNodeGetInfo checks what a node reports of its machine (178-182).
func TestNodeGetInfo(t *testing.T) {
	limits := func(_ context.Context, size string) (int, plandisk.Speed) {
		return map[string]int{"Standard_D4s_v3": 8}[size], plandisk.Speed{}
	}
	const driverKey, wellKnown = "topology.disk.csi.azure.com/zone", "topology.kubernetes.io/zone"
	zone2 := map[string]string{driverKey: "eastus-2", wellKnown: "eastus-2"}
	for _, c := range []struct {
		row      string
		machine  node.Machine
		instance metadata.Instance
		most     int64
		segments map[string]string
	}{
		{"178", node.Machine{Zone: true, AttachLimit: -1}, instance("Standard_D4s_v3", "2"), 8, zone2},
		{"178: a region without zones", node.Machine{Zone: true, AttachLimit: -1}, instance("Standard_D4s_v3", ""), 8,
			map[string]string{driverKey: ""}},
		{"179", node.Machine{Zone: true, AttachLimit: -1, Reserved: 2}, instance("Standard_D4s_v3", "2"), 6, zone2},
		{"180", node.Machine{AttachLimit: -1}, instance("Standard_D4s_v3", "2"), 8, map[string]string{driverKey: ""}},
		{"180b", node.Machine{Zone: true, AttachLimit: -1, Reserved: 8}, instance("Standard_D4s_v3", "2"), 1, zone2},
		{"181", node.Machine{Zone: true, AttachLimit: 5}, instance("Standard_D4s_v3", "2"), 5, zone2},
		{"182: not known", node.Machine{Zone: true, AttachLimit: -1, Reserved: 2}, instance("Standard_New", "2"), 0, zone2},
	} {
		t.Run(c.row, func(t *testing.T) {
			c.machine.Limits, c.machine.Log = limits, slog.New(slog.DiscardHandler)
			c.machine.Metadata = func(context.Context) (metadata.Instance, error) { return c.instance, nil }
			n := node.New(node.Config{Driver: "disk.csi.azure.com", Node: "n", Place: c.machine.Place})
			info, err := n.NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
			if err != nil || info.GetNodeId() != "n" || info.GetMaxVolumesPerNode() != c.most ||
				!maps.Equal(info.GetAccessibleTopology().GetSegments(), c.segments) {
				t.Errorf("%v, %v; want %d disks and %v", info, err, c.most, c.segments)
			}
		})
	}
	failing := node.Machine{Zone: true, Metadata: func(context.Context) (metadata.Instance, error) {
		return metadata.Instance{}, &azure.Error{Kind: azure.Unavailable, Cause: errors.New("no route")}
	}}
	_, err := node.New(node.Config{Place: failing.Place}).NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
	want(t, "no metadata", err, codes.Unavailable, "no route")
}

// TestAttached checks how the disks of the machine are read from its metadata.
func TestAttached(t *testing.T) {
	machine := instance("Standard_D4s_v3", "2")
	m := node.Machine{Metadata: func(context.Context) (metadata.Instance, error) { return machine, nil }}
	add := func(lun, id string) {
		profile := &machine.Compute.StorageProfile
		profile.DataDisks = append(profile.DataDisks, metadata.DataDisk{LUN: lun, ManagedDisk: metadata.ManagedDisk{ID: id}})
	}
	add("0", volume)
	add("12", volume+"-2")
	add("3", "") // not a managed disk
	have, err := m.Attached(t.Context())
	if err != nil || !maps.Equal(have, map[int]azure.ID{0: volume, 12: volume + "-2"}) {
		t.Errorf("%v, %v", have, err)
	}
	add("x", volume)
	if _, err := m.Attached(t.Context()); err == nil {
		t.Error("LUN x is a LUN")
	}
}
