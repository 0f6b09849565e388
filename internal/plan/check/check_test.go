package check

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/rights"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	group   = azure.ID("/subscriptions/s/resourceGroups/g")
	other   = azure.ID("/subscriptions/s/resourceGroups/other")
	set     = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
	scaled  = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/scaled"
	machine = set + "/virtualMachines/0"
	diskID  = group + "/providers/Microsoft.Compute/disks/d"
	lb      = group + "/providers/Microsoft.Network/loadBalancers/prod"
	ipID    = group + "/providers/Microsoft.Network/publicIPAddresses/prod-a000000000000000000000000000000a"
	account = group + "/providers/Microsoft.Storage/storageAccounts/account"
	gateID  = group + "/providers/Microsoft.Network/applicationGateways/gate"
	zoneID  = group + "/providers/Microsoft.Network/dnszones/example.com"
	base    = "a000000000000000000000000000000a"
)

func usage(name string, used, limit int64) Usage {
	return Usage{name, nodegroup.Usage{Used: used, Limit: limit}}
}

// addNeighbours adds what other programs than the cloud-controller-manager use: a share, a node group, an application gateway, and a zone.
func addNeighbours(f *Facts) {
	files := v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "files"}}
	files.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("5Gi")}
	files.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: claim.Shares, VolumeHandle: "g#account#share#"}
	f.Volumes = append(f.Volumes, files)
	shared := azure.Resource[storage.Share]{ID: storage.ShareOf(account, "share"), Name: "share"}
	shared.Properties = storage.Share{QuotaGiB: 5, Metadata: map[string]string{"createdBy": claim.Shares, "volumeName": "files"}}
	f.Accounts = []Account{{ID: account, Shares: []azure.Resource[storage.Share]{shared}}}
	pool := azure.Resource[compute.ScaleSetModel]{ID: scaled, Name: "scaled", Tags: azure.Tags{"min": "0", "max": "3", "autoscaled": "true"},
		SKU: &azure.SKU{Name: "Standard_D2s_v5", Capacity: new(int64(0))}}
	pool.Properties = compute.ScaleSetModel{ProvisioningState: succeeded, Overprovision: new(false),
		VirtualMachineProfile: &compute.ScaleSetPrototype{}}
	f.ScaleSets = []azure.Resource[compute.ScaleSetModel]{pool}
	gate := azure.Resource[network.ApplicationGateway]{ID: gateID, Name: "gate"}
	gate.Properties = network.ApplicationGateway{OperationalState: "Running", ProvisioningState: succeeded}
	f.Gateways = []Gateway{{ID: gateID, Doc: gate, Health: []health.Backend{{Pool: "web", Settings: "http", Address: "10.0.0.4",
		State: health.Healthy}}}}
	zone := azure.Resource[network.DNSZone]{ID: zoneID, Name: "example.com"}
	zone.Properties = network.DNSZone{NumberOfRecordSets: 9000, MaxNumberOfRecordSets: 10000}
	f.Zones = []Zone{{ID: zoneID, Doc: zone}}
	f.Arguments = map[string]Arguments{
		scalerProvider:    {"node-group-auto-discovery": {"label:autoscaled=true"}},
		gatewayController: {"gateway": {"gate"}}, dnsWebhook: {},
	}
	f.Paths = []Path{{Name: "API server", At: "https://api:6443"}, {Name: "API of Azure", At: "https://management.azure.com"},
		{Name: "token endpoint", At: "https://login.microsoftonline.com"}}
	f.Classes = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: claim.Disks}}
}

// healthy returns the facts of a cluster without faults.
func healthy() *Facts {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	old := metav1.NewTime(now.Add(-time.Hour))
	node := v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: old}, Spec: v1.NodeSpec{ProviderID: "azure://" + string(machine)}}
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	web := v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", CreationTimestamp: old,
		UID: "00000000-0000-0000-0000-0000000000ab"}}
	web.Spec.Type = v1.ServiceTypeLoadBalancer
	web.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	pv := v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: string(diskID)}
	attached := storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", CreationTimestamp: old}}
	attached.Spec = storagev1.VolumeAttachmentSpec{Attacher: diskDriver, NodeName: "n",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}}
	attached.Status.Attached = true
	balancer := azure.Resource[network.LoadBalancer]{ID: lb}
	balancer.Properties.FrontendIPConfigurations = []azure.Child[network.FrontendIPConfiguration]{
		{Name: base, Properties: network.FrontendIPConfiguration{PublicIPAddress: azure.Ref(ipID)}},
	}
	ip := azure.Resource[network.PublicIPAddress]{ID: ipID,
		Tags: azure.Tags{"k8s-azure-cluster-name": "prod", "k8s-azure-service": "default/web"}}
	ip.Properties.IPAddress = "192.0.2.1"
	f := &Facts{
		Now: now, Group: group, ClusterName: "prod", Balancers: []string{"prod"}, Config: Config{Path: "azure.json"},
		APIServer: "v1.36.2", Components: []Component{{"cloud-controller-manager", "v1.36.0", 1}, {"azuredisk-csi-driver", "v1.35.1", 4}},
		Nodes: []v1.Node{node}, Services: []v1.Service{web}, Present: []v1.Service{web}, Volumes: []v1.PersistentVolume{pv},
		Attachments: []storagev1.VolumeAttachment{attached}, Machines: []Machine{{ID: machine, Set: set}},
		LoadBalancers: []azure.Resource[network.LoadBalancer]{balancer}, PublicIPs: []azure.Resource[network.PublicIPAddress]{ip},
		Disks: []Disk{{ID: diskID, Ours: true, Owner: disk.Owner{Volume: "pv"}, Created: old.Time, Holders: []azure.ID{machine}}},
		Usages: []Usage{usage("Compute cores", 9, 10), usage("Compute unlimited", 5, -1), usage("Compute not granted", 0, 0),
			usage("Network huge", 5, 9223372036854775807)},
	}
	addNeighbours(f)
	for s := range Needs("") {
		f.Note(s, nil)
	}
	return f
}

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
	}
}

// TestHealthy checks that a healthy cluster has one finding for each area, which is ok.
func TestHealthy(t *testing.T) {
	report := Judge(healthy(), "")
	if len(report.Findings) != len(areas()) || report.Has(Warning, Problem, Unknown) {
		t.Errorf("%d findings, want %d that are ok", len(report.Findings), len(areas()))
	}
	golden(t, "healthy", report.String())
}

// TestPatience checks that what is new is no fault: a Service, a disk and an attachment.
func TestPatience(t *testing.T) {
	f := healthy()
	f.Now = f.Services[0].CreationTimestamp.Add(time.Minute)
	f.Services[0].Status, f.Disks[0].Holders = v1.ServiceStatus{}, nil
	f.Disks = append(f.Disks, Disk{ID: diskID + "2", Ours: true, Created: f.Disks[0].Created})
	if r := Judge(f, ""); r.Has(Warning, Problem, Unknown) {
		t.Error(r)
	}
}

// TestOrphansAreSure checks that a Service that one of both lists has, and resources of other clusters and of users, are no orphans.
func TestOrphansAreSure(t *testing.T) {
	for name, spoil := range map[string]func(*Facts){
		"created while Azure was read": func(f *Facts) { f.Services = nil },
		"deleted while Azure was read": func(f *Facts) { f.Present = nil },
		"another cluster": func(f *Facts) {
			f.Services, f.Present, f.LoadBalancers[0].ID = nil, nil, lb+"2"
			f.PublicIPs[0].Tags["k8s-azure-cluster-name"] = "prod2"
		},
		"of a user": func(f *Facts) {
			f.Services, f.Present = nil, nil
			f.LoadBalancers[0].Properties.FrontendIPConfigurations[0].Name = "outbound"
			f.PublicIPs[0].Tags = nil
		},
	} {
		f := healthy()
		spoil(f)
		for _, one := range Judge(f, "").Findings {
			if one.Area == "orphans" && one.State != OK {
				t.Errorf("%s: %+v", name, one)
			}
		}
	}
}

// TestOccasions checks that an occasion selects areas, and the reads that they need.
func TestOccasions(t *testing.T) {
	for before, want := range map[string]string{
		"install": "network azure.json identity rights clock quotas",
		"switch": "network azure.json identity rights clock nodes services volumes shares node groups gateways DNS zones operations waits " +
			"quotas orphans",
		"upgrade": "network azure.json identity rights clock versions nodes services volumes shares node groups gateways DNS zones " +
			"operations waits quotas orphans",
	} {
		var got []string
		for _, one := range Judge(healthy(), before).Findings {
			got = append(got, one.Area)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", before, text, want)
		}
	}
	if needs := Needs("install"); needs[Nodes] || !needs[Usages] {
		t.Errorf("an installation needs %v", needs)
	}
}

// TestFindComponents checks which images are components of kaz, and the features that they need.
func TestFindComponents(t *testing.T) {
	pod := func(images ...string) (p v1.Pod) {
		for _, image := range images {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Image: image})
		}
		return p
	}
	got := FindComponents([]v1.Pod{
		pod("localhost:5000/kaz/azuredisk-csi-driver:v1.36.0@sha256:abc", "registry.k8s.io/sig-storage/livenessprobe:v2.19.0"),
		pod("localhost:5000/kaz/azuredisk-csi-driver:v1.36.0"), pod("kaz/cloud-controller-manager"),
		pod("mcr.microsoft.com/oss/kubernetes/azure-cloud-controller-manager:v1.30.0"),
	})
	want := []Component{{"azuredisk-csi-driver", "v1.36.0", 2}, {"cloud-controller-manager", "", 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := FeaturesOf(got); !slices.Equal(got, []rights.Feature{rights.Attachments, rights.Volumes}) {
		t.Errorf("%v", got)
	}
}
