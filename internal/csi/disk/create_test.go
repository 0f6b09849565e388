package disk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const set = string(testkit.Group) + "/providers/Microsoft.Compute/diskEncryptionSets/des"

// TestCreateVolume has the rows of the scenario table about one CreateVolume, by number. A row has the request, and the code
// with a part of the message or the created disk.
func TestCreateVolume(t *testing.T) {
	const usual = "create=Empty network=DenyAll public=Disabled"
	for _, c := range []struct {
		row        string
		parameters []string
		change     func(r *csispec.CreateVolumeRequest)
		code       codes.Code
		want       string
	}{
		{"1 no name", nil, func(r *csispec.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument, "name is missing"},
		{"1 no capabilities", nil, func(r *csispec.CreateVolumeRequest) { r.VolumeCapabilities = nil }, codes.InvalidArgument,
			"volume_capabilities is missing"},
		{"2", []string{"maxShares", "5"}, capability(many(false)), codes.InvalidArgument, "use volumeMode Block"},
		{"3", nil, capability(many(true)), codes.InvalidArgument, "maxShares of 2 or more"},
		{"4", []string{"maxShares", "2", "skuName", "Premium_LRS"}, capability(many(true)), codes.OK,
			"10 GiB Premium_LRS create=Empty network=DenyAll public=Disabled shares=2"},
		{"5", []string{"foo", "bar"}, nil, codes.InvalidArgument, `parameter foo: "bar" is not allowed: the key is not known`},
		{"6", []string{"SKUNAME", "Premium_LRS"}, nil, codes.OK, "10 GiB Premium_LRS " + usual},
		{"7", []string{"skuName", "premium_lrs"}, nil, codes.InvalidArgument, `skuName: "premium_lrs" is not allowed: want Standard_LRS,`},
		{"8", []string{"skuName", "Premium_LRS", "storageAccountType", "Standard_LRS"}, nil, codes.InvalidArgument, "skuName is also set"},
		{"9", nil, size(1, 0), codes.OK, "1 GiB StandardSSD_LRS " + usual},
		{"10", nil, size(10*gib+1, 0), codes.OK, "11 GiB StandardSSD_LRS " + usual},
		{"11", nil, size(10*gib, 5*gib), codes.OutOfRange, "the disk would have 10 GiB"},
		{"12", nil, size(gib*3/2, gib*17/10), codes.OutOfRange, "the disk would have 2 GiB"},
		{"13", []string{"enablePerformancePlus", "true"}, nil, codes.OK, "513 GiB StandardSSD_LRS " + usual},
		{"14", []string{"enablePerformancePlus", "maybe"}, nil, codes.InvalidArgument, "want true or false"},
		{"15", []string{"skuName", "PremiumV2_LRS", "cachingMode", "ReadOnly"}, nil, codes.InvalidArgument, "has no cache"},
		{"17", []string{"skuName", "UltraSSD_LRS"}, size(200*gib, 0), codes.OK,
			"200 GiB UltraSSD_LRS create=Empty iops=500 mbps=100 network=DenyAll public=Disabled"},
		{"18", []string{"skuName", "UltraSSD_LRS"}, size(1024*gib, 0), codes.OK,
			"1024 GiB UltraSSD_LRS create=Empty iops=1024 mbps=100 network=DenyAll public=Disabled"},
		{"19", []string{"skuName", "UltraSSD_LRS", "DiskIOPSReadWrite", "5000"}, nil, codes.OK,
			"10 GiB UltraSSD_LRS create=Empty iops=5000 mbps=100 network=DenyAll public=Disabled"},
		{"20", []string{"skuName", "Premium_LRS", "DiskIOPSReadWrite", "500"}, nil, codes.InvalidArgument, "only with skuName UltraSSD_LRS"},
		{"21", []string{"DiskIOPSReadWrite", "abc"}, nil, codes.InvalidArgument, "want a whole number"},
		{"22", []string{"skuName", "UltraSSD_LRS", "LogicalSectorSize", "513"}, nil, codes.InvalidArgument, "want 512 or 4096"},
		{"23", []string{"maxShares", "0"}, nil, codes.InvalidArgument, "want a whole number from 1 on"},
		{"24", []string{"networkAccessPolicy", "AllowPrivate"}, nil, codes.InvalidArgument, "diskAccessID is missing"},
		{"25", []string{"networkAccessPolicy", "DenyAll", "diskAccessID", set}, nil, codes.InvalidArgument, "only with networkAccessPolicy"},
		{"26", []string{"diskEncryptionType", "EncryptionAtRestWithCustomerKey"}, nil, codes.InvalidArgument, "diskEncryptionSetID is missing"},
		{"27", []string{"diskEncryptionSetID", "foo"}, nil, codes.InvalidArgument, "want the id of a resource"},
		{"29", []string{"tags", "a=b,c"}, nil, codes.InvalidArgument, "want KEY=VALUE"},
		{"29 no key", []string{"tags", "=b"}, nil, codes.InvalidArgument, "want KEY=VALUE"},
		{"29 forbidden", []string{"tags", "a<b=c"}, nil, codes.InvalidArgument, "want KEY=VALUE"},
		{"30", []string{"tags", "a=b;c=d=e", "tagValueDelimiter", ";"}, nil, codes.OK, "10 GiB StandardSSD_LRS " + usual + " tag a=b tag c=d=e"},
		{"31", []string{"tags", "team=${pvc.metadata.namespace}", "csi.storage.k8s.io/pvc/namespace", "red"}, nil, codes.OK,
			"10 GiB StandardSSD_LRS " + usual + " tag kubernetes.io-created-for-pvc-namespace=red tag team=red"},
		{"35", []string{"attachDiskInitialDelay", "x"}, nil, codes.InvalidArgument,
			`parameter attachDiskInitialDelay: "x" is not allowed: want a whole number from 0 on`},
		{"35 negative", []string{"attachDiskInitialDelay", "-1"}, nil, codes.InvalidArgument, "want a whole number from 0 on"},
		{"35 a number", []string{"attachDiskInitialDelay", "1000"}, nil, codes.OK, "10 GiB StandardSSD_LRS " + usual},
		{"37", []string{"perfProfile", "turbo"}, nil, codes.InvalidArgument, "perfProfile"},
		{"48", nil, zones("westeurope-2", "westeurope-1"), codes.OK, "10 GiB StandardSSD_LRS " + usual + ` zones=["2"]`},
		{"49", []string{"skuName", "Premium_ZRS"}, zones("westeurope-2"), codes.OK, "10 GiB Premium_ZRS " + usual},
		{"50", nil, zones(""), codes.OK, "10 GiB StandardSSD_LRS " + usual},
		{"51", nil, zones("westus2-1"), codes.InvalidArgument, `zone "westus2-1" is not in region westeurope`},
		{"53", []string{"resourceGroup", "none"}, nil, codes.NotFound, "Resource group 'none' could not be found"},
		{"61", []string{"skuName", "Standard_LRS"}, func(r *csispec.CreateVolumeRequest) {
			r.MutableParameters = map[string]string{"skuName": "Premium_LRS"}
		}, codes.OK, "10 GiB Premium_LRS " + usual},
	} {
		t.Run(c.row, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{})
			r := request("v", c.parameters...)
			if c.change != nil {
				c.change(r)
			}
			answer, err := w.CreateVolume(t.Context(), r)
			wantCode(t, "create", err, c.code)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = summary(w.disk(answer.GetVolume().GetVolumeId()))
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if writes := w.Writes(); c.code == codes.InvalidArgument && len(writes) > 0 {
				t.Errorf("a request that is not allowed wrote %v", writes)
			}
		})
	}
}

func capability(c *csispec.VolumeCapability) func(*csispec.CreateVolumeRequest) {
	return func(r *csispec.CreateVolumeRequest) { r.VolumeCapabilities = []*csispec.VolumeCapability{c} }
}

func size(required, limit int64) func(*csispec.CreateVolumeRequest) {
	return func(r *csispec.CreateVolumeRequest) {
		r.CapacityRange = &csispec.CapacityRange{RequiredBytes: required, LimitBytes: limit}
	}
}

func zones(preferred ...string) func(*csispec.CreateVolumeRequest) {
	return func(r *csispec.CreateVolumeRequest) {
		r.AccessibilityRequirements = &csispec.TopologyRequirement{}
		for _, zone := range preferred {
			topology := &csispec.Topology{Segments: map[string]string{"topology.disk.csi.azure.com/zone": zone}}
			r.AccessibilityRequirements.Preferred = append(r.AccessibilityRequirements.Preferred, topology)
			r.AccessibilityRequirements.Requisite = append(r.AccessibilityRequirements.Requisite, topology)
		}
	}
}

// TestCreateVolumeAgain checks rows 38 to 41 and 59. A repeated request finds its disk, in another process too. A different
// request of the same name is refused.
func TestCreateVolumeAgain(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	first := w.volume("v")
	other := w.controller()
	defer other.Close()
	again, err := other.CreateVolume(t.Context(), request("v"))
	if err != nil || again.GetVolume().GetVolumeId() != first {
		t.Errorf("again: %v, %v", again, err)
	}
	for _, required := range []int64{20 * gib, 5 * gib} {
		r := request("v")
		size(required, 0)(r)
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, "other size", err, codes.AlreadyExists)
	}
	if got := w.disk(first).Properties.DiskSizeGB; got != 10 {
		t.Errorf("the disk has %d GiB now", got)
	}
	_, err = w.CreateVolume(t.Context(), request("v", "skuName", "Premium_LRS"))
	wantCode(t, "other SKU", err, codes.AlreadyExists)
}

// TestNamesOfDisks checks rows 32 to 34.
func TestNamesOfDisks(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	long := strings.Repeat("x", 100)
	for want, r := range map[string]*csispec.CreateVolumeRequest{
		"data-d":  request("v", "diskName", "${pvc.metadata.name}-d", "csi.storage.k8s.io/pvc/name", "data"),
		long[:80]: request(long),
	} {
		answer, err := w.CreateVolume(t.Context(), r)
		if err != nil || !strings.HasSuffix(answer.GetVolume().GetVolumeId(), "/"+want) {
			t.Errorf("%v, %v, want disk %s", answer, err, want)
		}
	}
	if a, b := w.volume("v", "diskName", "-bad"), w.volume("v", "diskName", "-bad"); a != b {
		t.Errorf("a name that Azure refuses became %s, then %s", a, b)
	}
}

// TestSources checks rows 42 to 46: copies of snapshots and disks.
func TestSources(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	source := w.volume("source")
	made, err := w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: source})
	if err != nil || !made.GetSnapshot().GetReadyToUse() || made.GetSnapshot().GetSizeBytes() != 10*gib {
		t.Fatal(made, err)
	}
	from := func(name, snapshot, volume string, required int64) (*csispec.CreateVolumeResponse, error) {
		r := request(name)
		size(required, 0)(r)
		r.VolumeContentSource = &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
			Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: snapshot},
		}}
		if volume != "" {
			r.VolumeContentSource.Type = &csispec.VolumeContentSource_Volume{
				Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: volume},
			}
		}
		return w.CreateVolume(t.Context(), r)
	}
	_, err = from("missing", string(testkit.Group)+"/providers/Microsoft.Compute/snapshots/none", "", 10*gib)
	wantCode(t, "42", err, codes.NotFound)
	_, err = from("small", made.GetSnapshot().GetSnapshotId(), "", 5*gib)
	wantCode(t, "43", err, codes.OutOfRange)
	_, err = from("malformed", "", "nonsense", 10*gib)
	wantCode(t, "45", err, codes.NotFound)
	restored, err := from("restored", made.GetSnapshot().GetSnapshotId(), "", 20*gib)
	if err != nil || restored.GetVolume().GetCapacityBytes() != 20*gib {
		t.Error(restored, err)
	}
	clone, err := from("clone", "", source, 20*gib)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.disk(clone.GetVolume().GetVolumeId()).Properties.CreationData; !got.SourceResourceID.Equal(w.disk(source).ID) {
		t.Errorf("the copy has the source %s", got.SourceResourceID)
	}
}

// TestZoneOfACopy checks row 47: a copy is in the zone of its source, or not at all.
func TestZoneOfACopy(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	zones := func(names ...string) *csispec.TopologyRequirement {
		r := &csispec.TopologyRequirement{}
		for _, name := range names {
			r.Requisite = append(r.Requisite, &csispec.Topology{Segments: map[string]string{"topology.disk.csi.azure.com/zone": name}})
		}
		return r
	}
	create := func(name, source string, where *csispec.TopologyRequirement, parameters ...string) (*csispec.Volume, error) {
		r := request(name, parameters...)
		r.AccessibilityRequirements = where
		if source != "" {
			r.VolumeContentSource = &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
				Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: source},
			}}
		}
		made, err := w.CreateVolume(t.Context(), r)
		return made.GetVolume(), err
	}
	source, err := create("source", "", zones(testkit.Location+"-2"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = create("elsewhere", source.GetVolumeId(), zones(testkit.Location+"-1"))
	wantCode(t, "47", err, codes.ResourceExhausted)
	if _, made := testkit.Read[compute.Disk](w.Azure, testkit.Group.Resource(compute.Disks, "elsewhere")); made {
		t.Error("a disk was made all the same")
	}
	for name, where := range map[string]*csispec.TopologyRequirement{
		"either": zones(testkit.Location+"-1", testkit.Location+"-2"), "anywhere": nil,
	} {
		clone, err := create(name, source.GetVolumeId(), where)
		if err != nil || w.disk(clone.GetVolumeId()).Zones[0] != "2" {
			t.Errorf("%s: %v, %v", name, clone, err)
		}
	}
	redundant, err := create("redundant", source.GetVolumeId(), zones(testkit.Location+"-1"), "skuName", "StandardSSD_ZRS")
	if err != nil || len(w.disk(redundant.GetVolumeId()).Zones) > 0 {
		t.Errorf("a zone-redundant copy: %v, %v", redundant, err)
	}
}

// TestAzureRefusesADisk checks rows 55 to 57: the codes of Azure's refusals.
func TestAzureRefusesADisk(t *testing.T) {
	for row, c := range map[string]struct {
		fault core.Fault
		want  codes.Code
	}{
		"56": {core.Fault{Fault: core.FaultError, Status: 409, Code: "QuotaExceeded"}, codes.ResourceExhausted},
		"57": {core.Fault{Fault: core.FaultError, Status: 409, Code: "ZonalAllocationFailed"}, codes.ResourceExhausted},
		"59": {core.Fault{Fault: core.FaultLost, Times: 1}, codes.OK},
	} {
		w := newDriverCluster(t, core.Options{})
		c.fault.Method, c.fault.Type = "PUT", compute.Disks
		if err := w.SetFaults([]core.Fault{c.fault}); err != nil {
			t.Fatal(err)
		}
		_, err := w.CreateVolume(t.Context(), request("v"))
		wantCode(t, row, err, c.want)
	}
}

// TestDeleteVolume checks rows 62 to 66.
func TestDeleteVolume(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("v")
	remove := func(id string) error {
		_, err := w.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
		return err
	}
	wantCode(t, "no id", remove(""), codes.InvalidArgument)
	wantCode(t, "62", remove("reallyfakevolumeid"), codes.OK)
	wantCode(t, "63", remove(string(testkit.Group)+"/providers/Microsoft.Compute/disks/none"), codes.OK)
	if _, err := w.publish(w.Controller, v, "a"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "64", remove(v), codes.FailedPrecondition)
	if err := w.unpublish(w.Controller, v, "a"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "66", remove(strings.ToUpper(v)), codes.OK)
	if disks := testkit.List[compute.Disk](w.Azure, testkit.Group, compute.Disks); len(disks) != 3 { // the machines' OS disks
		t.Errorf("%d disks are left", len(disks))
	}
}

// TestCreationUnderWay checks row 58: a request of a caller that gave up is found by the next one, which waits for the same
// creation.
func TestCreationUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
		for i := range 10 {
			name := fmt.Sprintf("v%d", i)
			w.Forget()
			ctx, giveUp := context.WithTimeout(t.Context(), time.Duration(i)*500*time.Millisecond)
			_, err := w.CreateVolume(ctx, request(name))
			giveUp()
			if v := w.volume(name); w.disk(v).Properties.ProvisioningState != "Succeeded" {
				t.Errorf("%s is %s (first request: %v)", v, w.disk(v).Properties.ProvisioningState, err)
			}
			made := 0
			for _, r := range w.Requests() {
				if r.Method == "PUT" && r.Status < 300 {
					made++
				}
			}
			if made > 1 {
				t.Errorf("%s was created %d times", name, made)
			}
		}
	})
}
