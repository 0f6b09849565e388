// Package csi checks the CSI drivers with csi-sanity, the conformance test of the CSI community, on the local Azure and
// on real loop devices.
package csi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/block"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
	"kaz/test/csi/driver"
)

// oneNode is a cluster with one node.
type oneNode struct {
	name    string
	machine azure.ID
}

func (n oneNode) Machine(_ context.Context, node string) (azure.ID, error) {
	if node != n.name {
		return "", &azure.Error{Kind: azure.NotFound, Message: "there is no node " + node}
	}
	return n.machine, nil
}

func (n oneNode) Node(_ context.Context, machine azure.ID) string {
	if machine.Equal(n.machine) {
		return n.name
	}
	return ""
}

func TestDiskSanity(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loop devices and mounts need root")
	}
	const limit = 4 // of the size of the machine
	a := testkit.NewAzure(t, core.Options{}, 0)
	only := oneNode{name: "node-0", machine: a.AddMachine(testkit.VirtualMachine{Name: "node-0"})}
	dir := t.TempDir()
	root := filepath.Join(dir, "machine")
	physical, err := block.Start(t.Context(), block.Options{
		Azure: a.Emulator, Dir: filepath.Join(dir, "disks"),
		Root: func(id azure.ID, _ behaviour.Object) (string, bool) { return root, id.Equal(only.machine) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(physical.Close)
	endpoint := "unix://" + filepath.Join(dir, "csi.sock")
	serve(t, endpoint, disk.Config{
		Name: disk.DefaultName, Version: "test",
		Cluster: plandisk.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location},
		Azure:   a.Client, Nodes: only,
		Limit:        func(context.Context, string) int { return limit },
		OnlineResize: true, ListVolumes: true,
	}, node.Config{
		Driver: disk.DefaultName, Node: only.name, System: node.Linux{Devices: node.Devices{Root: root}, Mounts: mount.New(2)},
		Attached: func(ctx context.Context) (map[int]azure.ID, error) {
			return attached(ctx, a.Client.Fresh(), only.machine)
		},
		Place: func(context.Context) (string, int64, error) { return "", limit, nil },
	})
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath, config.StagingPath = filepath.Join(dir, "mnt"), filepath.Join(dir, "staging")
	config.TestVolumeSize = 1 << 30
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeMutableParametersFile = driver.Write(t, dir, "mutable.yaml", "skuName: Premium_LRS\n")
	config.TestSnapshotParametersFile = driver.Write(t, dir, "snapshot.yaml", "incremental: \"true\"\n")
	var took times
	ginkgo.ReportAfterSuite("times", func(r ginkgo.Report) { took = times(r.SpecReports) })
	sanity.Test(t, config)
	// Row 198: with an Azure that takes no time. A quiet machine needs a third of it.
	took.atMost(t, "Node Service should be idempotent", 5*time.Second)
	took.atMost(t, "ControllerPublishVolume should fail when publishing more volumes than the node max attach limit", 8*time.Second)
}

// times are the reports of specs.
type times types.SpecReports

// atMost fails the test if a spec took longer, or did not run.
func (all times) atMost(t *testing.T, spec string, most time.Duration) {
	t.Helper()
	for _, r := range all {
		if !strings.Contains(r.FullText(), spec) || r.State != types.SpecStatePassed {
			continue
		}
		t.Logf("%s: %.2f s", spec, r.RunTime.Seconds())
		if r.RunTime > most {
			t.Errorf("%s: %s, want at most %s", spec, r.RunTime, most)
		}
		return
	}
	t.Errorf("no spec named %q passed", spec)
}

// attached returns the disks of a machine by LUN, as the metadata service of the machine shows them.
func attached(ctx context.Context, from azure.Reader, machine azure.ID) (map[int]azure.ID, error) {
	doc, err := from.Get(ctx, machine)
	if err != nil {
		return nil, err
	}
	m, err := azure.Decode[compute.MachineDisks](doc)
	if err != nil {
		return nil, err
	}
	disks := map[int]azure.ID{}
	for _, d := range m.Properties.StorageProfile.DataDisks {
		disks[d.LUN] = d.ManagedDisk.ID
	}
	return disks, nil
}

// serve serves the disk driver until the test ends.
func serve(t *testing.T, endpoint string, c disk.Config, n node.Config) {
	t.Helper()
	controller := disk.NewController(c)
	t.Cleanup(controller.Close)
	driver.Serve(t, endpoint, csi.Services{Identity: &disk.Identity{Config: c}, Controller: controller, Node: node.New(n)}, driver.Log(t))
}
