package disk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// driverCluster is a cluster with machines of every kind and the controller of a disk driver.
type driverCluster struct {
	*testkit.Azure
	*disk.Controller
	t     *testing.T
	nodes machines
	// convert is the driver's ConvertCaching.
	convert bool
}

// machines are the machines of nodes by the names of the nodes.
type machines struct {
	mu sync.Mutex
	of map[string]azure.ID
}

func (m *machines) Machine(_ context.Context, node string) (azure.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.of[strings.ToLower(node)]; ok {
		return id, nil
	}
	return "", &azure.Error{Kind: azure.NotFound, Message: "there is no node " + node}
}

func (m *machines) Node(_ context.Context, machine azure.ID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, id := range m.of {
		if id.Equal(machine) {
			return node
		}
	}
	return ""
}

// slots is the number of data disks that the machines of the tests can have.
const slots = 4

func newDriverCluster(t *testing.T, o core.Options) *driverCluster {
	t.Helper()
	w := &driverCluster{Azure: testkit.NewAzure(t, o, 0), t: t}
	w.nodes.of = map[string]azure.ID{}
	for _, name := range []string{"a", "b", "c"} {
		w.nodes.of[name] = w.AddMachine(testkit.VirtualMachine{Name: name})
	}
	w.Controller = w.controller()
	t.Cleanup(w.Close)
	w.Forget()
	return w
}

// controller returns a controller without memory, as a new process has it.
func (w *driverCluster) controller() *disk.Controller {
	return w.over(fresh{w.Client.Fresh(), w.Client})
}

// over returns a controller that uses another way to Azure.
func (w *driverCluster) over(to disk.Azure) *disk.Controller { return w.configured(to, nil) }

// with returns a controller that knows what Kubernetes wants.
func (w *driverCluster) with(uses disk.Uses) *disk.Controller {
	return w.configured(fresh{w.Client.Fresh(), w.Client}, uses)
}

func (w *driverCluster) configured(to disk.Azure, uses disk.Uses) *disk.Controller {
	return disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: to, Nodes: &w.nodes, Uses: uses, Cluster: cluster(),
		Limit: func(context.Context, string) int { return slots }, OnlineResize: true, ListVolumes: true,
		ConvertCaching: w.convert, Log: slog.New(slog.DiscardHandler),
	})
}

func cluster() plandisk.Cluster {
	return plandisk.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location}
}

// fresh reads past the cache.
type fresh struct {
	azure.Reader
	azure.Writer
}

// At reads with a priority, as the driver's program does.
func (f fresh) At(p azure.Priority) azure.Reader { return azure.At(f.Reader, p) }

const gib = 1 << 30

// writer is the capability of a volume with a file system for one node.
func writer() *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// many is the capability of a volume for several nodes.
func many(block bool) *csispec.VolumeCapability {
	c := writer()
	c.AccessMode.Mode = csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	if block {
		c.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	}
	return c
}

// request is a CreateVolume request for 10 GiB.
func request(name string, parameters ...string) *csispec.CreateVolumeRequest {
	r := &csispec.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csispec.VolumeCapability{writer()},
		CapacityRange: &csispec.CapacityRange{RequiredBytes: 10 * gib}, Parameters: map[string]string{},
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		r.Parameters[parameters[i]] = parameters[i+1]
	}
	return r
}

// volume creates a volume and returns its id.
func (w *driverCluster) volume(name string, parameters ...string) string {
	w.t.Helper()
	answer, err := w.CreateVolume(w.t.Context(), request(name, parameters...))
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.GetVolume().GetVolumeId()
}

// disk reads the disk of a volume.
func (w *driverCluster) disk(volume string) azure.Resource[compute.Disk] {
	w.t.Helper()
	return testkit.Must[compute.Disk](w.Azure, azure.ID(volume))
}

// publish attaches a volume to a node and returns the LUN.
func (w *driverCluster) publish(c *disk.Controller, volume, node string) (string, error) {
	answer, err := c.ControllerPublishVolume(w.t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: volume, NodeId: node, VolumeCapability: writer(), VolumeContext: map[string]string{plandisk.RequestedSize: "10"},
	})
	return answer.GetPublishContext()["LUN"], err
}

func (w *driverCluster) unpublish(c *disk.Controller, volume, node string) error {
	_, err := c.ControllerUnpublishVolume(w.t.Context(), &csispec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: node})
	return err
}

// unpublishWithin is unpublish with a deadline, as the attacher has it.
func (w *driverCluster) unpublishWithin(c *disk.Controller, volume, node string, limit time.Duration) error {
	ctx, end := context.WithTimeout(w.t.Context(), limit)
	defer end()
	_, err := c.ControllerUnpublishVolume(ctx, &csispec.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: node})
	return err
}

// accepted returns the writes that Azure accepted.
func (w *driverCluster) accepted() (all []string) {
	for _, r := range w.Requests() {
		if r.Method != http.MethodGet && r.Status < http.StatusBadRequest {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// attached returns the names of the disks of a node's machine by LUN.
func (w *driverCluster) attached(node string) map[int]string {
	w.t.Helper()
	luns := map[int]string{}
	for _, d := range testkit.Must[compute.MachineDisks](w.Azure, w.nodes.of[node]).Properties.StorageProfile.DataDisks {
		luns[d.LUN] = d.ManagedDisk.ID.Name()
	}
	return luns
}

// wantCode fails the test if err has another code.
func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%s: %v, want code %s", what, err, want)
	}
}

// summary is a disk's document in one line, without what Azure adds.
func summary(d azure.Resource[compute.Disk]) string {
	p := d.Properties
	facts := []string{fmt.Sprintf("%d GiB", p.DiskSizeGB)}
	if d.SKU != nil {
		facts = append(facts, d.SKU.Name)
	}
	if p.Encryption != nil && p.Encryption.DiskEncryptionSetID == "" {
		p.Encryption = nil
	}
	if d.SKU == nil || d.SKU.Name != "UltraSSD_LRS" { // Azure fills them in
		p.DiskIOPSReadWrite, p.DiskMBpsReadWrite = nil, nil
	}
	for name, value := range map[string]any{
		"iops": p.DiskIOPSReadWrite, "mbps": p.DiskMBpsReadWrite, "shares": p.MaxShares, "network": p.NetworkAccessPolicy,
		"public": p.PublicNetworkAccess, "zones": d.Zones, "create": p.CreationData.CreateOption, "encryption": p.Encryption,
	} {
		text, err := json.Marshal(value)
		if err == nil && !slices.Contains([]string{"null", `""`, "[]"}, string(text)) {
			facts = append(facts, name+"="+strings.Trim(string(text), `"`))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.Tags)) {
		if key != "k8s-azure-created-by" && key != "kubernetes.io-created-for-pv-name" {
			facts = append(facts, "tag "+key+"="+d.Tags[key])
		}
	}
	slices.Sort(facts[2:])
	return strings.Join(facts, " ")
}
