package check

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/rights"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	group   = azure.ID("/subscriptions/s/resourceGroups/g")
	other   = azure.ID("/subscriptions/s/resourceGroups/other")
	set     = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
	machine = set + "/virtualMachines/0"
	diskID  = group + "/providers/Microsoft.Compute/disks/d"
	lb      = group + "/providers/Microsoft.Network/loadBalancers/prod"
	ipID    = group + "/providers/Microsoft.Network/publicIPAddresses/prod-a000000000000000000000000000000a"
	base    = "a000000000000000000000000000000a"
)

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
		Attachments: []storagev1.VolumeAttachment{attached}, Machines: []Machine{{ID: machine, InSet: true}},
		LoadBalancers: []azure.Resource[network.LoadBalancer]{balancer}, PublicIPs: []azure.Resource[network.PublicIPAddress]{ip},
		Disks: []Disk{{ID: diskID, Ours: true, Owner: disk.Owner{Volume: "pv"}, Created: old.Time, Holders: []azure.ID{machine}}},
		Usages: []Usage{{"Compute cores", 9, 10}, {"Compute unlimited", 5, -1}, {"Compute not granted", 0, 0},
			{"Network huge", 5, 9223372036854775807}},
	}
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

// broken are clusters with a fault each, and the areas that must show it.
func broken() map[string]struct {
	spoil func(*Facts)
	state State
	areas []string
} {
	type cluster = struct {
		spoil func(*Facts)
		state State
		areas []string
	}
	svc := func(f *Facts) *v1.Service { return &f.Services[0] }
	return map[string]cluster{
		"mistake in azure.json": {func(f *Facts) {
			f.Config.Problems = []Mistake{{"resourceGroup", "is missing"}}
		}, Problem, []string{"azure.json"}},
		"unknown key in azure.json": {func(f *Facts) {
			f.Config.Warnings = []Mistake{{"resourcegroop", "is no key"}}
		}, Warning, []string{"azure.json"}},
		"no token":       {func(f *Facts) { f.TokenFault = "AADSTS7000215: the secret is wrong" }, Problem, []string{"identity"}},
		"login not made": {func(f *Facts) { f.Note(SignIn, errors.New("no answer in time")) }, Unknown, []string{"identity", "rights"}},
		"right missing": {func(f *Facts) {
			f.Rights.Missing = []Lack{{"Microsoft.Network/loadBalancers/write", group, "create load balancers", false}}
		}, Problem, []string{"rights"}},
		"optional right missing": {func(f *Facts) {
			f.Rights.Missing = []Lack{{"Microsoft.Network/networkSecurityGroups/join/action", group, "write interfaces", true}}
		}, Warning, []string{"rights"}},
		"rights not readable": {func(f *Facts) { f.Rights.Unread = []UnreadScope{{group, "403"}} }, Unknown, []string{"rights"}},
		"clock ahead":         {func(f *Facts) { f.Skew = 6 * time.Minute }, Problem, []string{"clock"}},
		"clock behind":        {func(f *Facts) { f.Skew = -time.Hour }, Problem, []string{"clock"}},
		"old component":       {func(f *Facts) { f.Components[1].Version = "v1.34.0" }, Warning, []string{"versions"}},
		"components apart": {func(f *Facts) {
			f.Components[0].Version, f.Components[1].Version = "v1.37.0", "v1.35.0"
		}, Warning, []string{"versions"}},
		"version unknown": {func(f *Facts) { f.Components[0].Version = "devel" }, Unknown, []string{"versions"}},
		"no component":    {func(f *Facts) { f.Components = nil }, Unknown, []string{"versions"}},
		"machine gone":    {func(f *Facts) { f.Machines = nil }, Problem, []string{"nodes"}},
		"machine off":     {func(f *Facts) { f.Machines[0].Off = true }, Warning, []string{"nodes"}},
		"machine without Node": {func(f *Facts) {
			f.Machines = append(f.Machines, Machine{ID: set + "/virtualMachines/1", InSet: true},
				Machine{ID: set + "/virtualMachines/2", InSet: true, Off: true},
				Machine{ID: group + "/providers/Microsoft.Compute/virtualMachines/jump"})
		}, Warning, []string{"nodes"}},
		"Node not initialized": {func(f *Facts) {
			f.Nodes[0].Spec.Taints = []v1.Taint{{Key: uninitialized}}
		}, Warning, []string{"nodes"}},
		"Node of another subscription": {func(f *Facts) {
			f.Nodes[0].Spec.ProviderID = strings.Replace(f.Nodes[0].Spec.ProviderID, "/s/", "/x/", 1)
			f.Machines, f.Attachments = nil, nil
		}, Warning, []string{"nodes"}},
		"Node of another group": {func(f *Facts) {
			f.Nodes[0].Spec.ProviderID = "azure://" + string(other) + "/providers/Microsoft.Compute/virtualMachines/m"
			f.Machines, f.Attachments = nil, nil
		}, Unknown, []string{"nodes"}},
		"Service without address": {func(f *Facts) { svc(f).Status = v1.ServiceStatus{} }, Problem, []string{"services"}},
		"Service not deleted": {func(f *Facts) {
			svc(f).DeletionTimestamp, svc(f).Finalizers = new(svc(f).CreationTimestamp), []string{"service.kubernetes.io/load-balancer-cleanup"}
		}, Problem, []string{"services"}},
		"address without frontend": {func(f *Facts) { f.LoadBalancers = nil }, Problem, []string{"services"}},
		"frontend not readable":    {func(f *Facts) { f.PublicIPs = nil }, Unknown, []string{"services"}},
		"disk gone":                {func(f *Facts) { f.Disks = nil }, Problem, []string{"volumes"}},
		"disk of another group": {func(f *Facts) {
			f.Volumes[0].Spec.CSI.VolumeHandle = string(other) + "/providers/Microsoft.Compute/disks/d"
			f.Disks = nil
		}, Unknown, []string{"volumes"}},
		"disk without volume": {func(f *Facts) { f.Volumes = nil }, Warning, []string{"volumes"}},
		"disk detached behind Kubernetes": {func(f *Facts) {
			f.Disks[0].Holders = nil
		}, Problem, []string{"volumes"}},
		"disk not attached": {func(f *Facts) {
			f.Attachments[0].Status = storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no LUN\nis free"}}
		}, Warning, []string{"volumes"}},
		"quota nearly used": {func(f *Facts) { f.Usages[0] = Usage{"Compute cores", 91, 100} }, Warning, []string{"quotas"}},
		"quota used up":     {func(f *Facts) { f.Usages[0].Used = 10 }, Problem, []string{"quotas"}},
		"orphans":           {func(f *Facts) { f.Services, f.Present = nil, nil }, Warning, []string{"orphans"}},
		"failed read":       {func(f *Facts) { f.Note(Machines, errors.New("403")) }, Unknown, []string{"nodes"}},
		"read not made":     {func(f *Facts) { delete(f.Done, Disks) }, Unknown, []string{"volumes"}},
	}
}

// TestBroken checks that each fault is shown in its areas with what mends it, and that all other areas stay ok.
func TestBroken(t *testing.T) {
	for name, c := range broken() {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			c.spoil(f)
			var text strings.Builder
			var found []string
			for _, one := range Judge(f, "").Findings {
				if one.State == OK {
					continue
				}
				if one.State != c.state || one.Mend == "" {
					t.Errorf("%+v, want the state %s and what mends it", one, c.state)
				}
				if !slices.Contains(found, one.Area) {
					found = append(found, one.Area)
				}
				text.WriteString(Report{Findings: []Finding{one}}.String())
			}
			if !slices.Equal(found, c.areas) {
				t.Errorf("found in %q, want %q", found, c.areas)
			}
			golden(t, name, text.String())
		})
	}
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
		"install": "azure.json identity rights clock quotas",
		"switch":  "azure.json identity rights clock nodes services volumes quotas orphans",
		"upgrade": "azure.json identity rights clock versions nodes services volumes quotas orphans",
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
