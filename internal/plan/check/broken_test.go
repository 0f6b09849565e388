package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/gateway/health"
)

// broken is a cluster with a fault.
type broken struct {
	name  string
	spoil func(*Facts)
	state State
	area  string // that shows it
}

// TestBroken checks that each fault is shown in its area with what mends it, and that all other areas stay ok. The file says what is shown
// for each cluster.
func TestBroken(t *testing.T) {
	var text strings.Builder
	all := slices.Concat(brokenAccess(), brokenCluster(), brokenStorage(), brokenNeighbours(), brokenRest())
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			f := healthy()
			c.spoil(f)
			var areas []string
			fmt.Fprintf(&text, "# %s\n", c.name)
			for _, one := range Judge(f, "").Findings {
				if one.State == OK {
					continue
				}
				if one.State != c.state || one.Mend == "" {
					t.Errorf("%+v, want the state %s and what mends it", one, c.state)
				}
				if !slices.Contains(areas, one.Area) {
					areas = append(areas, one.Area)
				}
				fmt.Fprintf(&text, "%s: %s %s: %s\n  mend: %s\n", one.Area, one.State, one.Subject, one.Why, one.Mend)
			}
			fmt.Fprintln(&text)
			if got := strings.Join(areas, ", "); got != c.area {
				t.Errorf("found in %q, want %q", got, c.area)
			}
		})
	}
	golden(t, "broken", text.String())
}

// brokenAccess are clusters with faults of the way to Azure and of the rights there.
func brokenAccess() []broken {
	path := func(n int, fault string, o Obstacle) func(*Facts) {
		return func(f *Facts) { f.Paths[n].Fault, f.Paths[n].Obstacle = fault, o }
	}
	return []broken{
		{"API server behind a firewall", path(0, "dial tcp 10.0.0.4:6443: i/o timeout", NoAnswer), Problem, "network"},
		{"API of Azure without a name", path(1, "dial tcp: lookup management.azure.com: no such host", NoName), Problem, "network"},
		{"API of Azure behind a proxy", path(1, "x509: certificate signed by unknown authority", NoCertificate), Problem, "network"},
		{"token endpoint refused", path(2, "dial tcp 20.0.0.1:443: connection refused", NoConnection), Problem, "network"},
		{"mistake in azure.json", func(f *Facts) {
			f.Config.Problems = []Mistake{{"resourceGroup", "is missing"}}
		}, Problem, "azure.json"},
		{"unknown key in azure.json", func(f *Facts) {
			f.Config.Warnings = []Mistake{{"resourcegroop", "is no key"}}
		}, Warning, "azure.json"},
		{"no token", func(f *Facts) { f.TokenFault = "AADSTS7000215: the secret is wrong" }, Problem, "identity"},
		{"login not made", func(f *Facts) { f.Note(SignIn, errors.New("no answer in time")) }, Unknown, "identity, rights"},
		{"right missing", func(f *Facts) {
			f.Rights.Missing = []Lack{{"Microsoft.Network/loadBalancers/write", group, "create load balancers", false}}
		}, Problem, "rights"},
		{"optional right missing", func(f *Facts) {
			f.Rights.Missing = []Lack{{"Microsoft.Network/networkSecurityGroups/join/action", group, "write interfaces", true}}
		}, Warning, "rights"},
		{"rights not readable", func(f *Facts) { f.Rights.Unread = []UnreadScope{{group, "403"}} }, Unknown, "rights"},
		{"clock ahead", func(f *Facts) { f.Skew = 6 * time.Minute }, Problem, "clock"},
		{"clock behind", func(f *Facts) { f.Skew = -time.Hour }, Problem, "clock"},
		{"old component", func(f *Facts) { f.Components[1].Version = "v1.34.0" }, Warning, "versions"},
		{"components apart", func(f *Facts) {
			f.Components[0].Version, f.Components[1].Version = "v1.37.0", "v1.35.0"
		}, Warning, "versions"},
		{"version unknown", func(f *Facts) { f.Components[0].Version = "devel" }, Unknown, "versions"},
		{"no component", func(f *Facts) { f.Components = nil }, Unknown, "versions"},
	}
}

// brokenCluster are clusters with faults of Nodes and Services.
func brokenCluster() []broken {
	svc := func(f *Facts) *v1.Service { return &f.Services[0] }
	return []broken{
		{"machine gone", func(f *Facts) { f.Machines = nil }, Problem, "nodes"},
		{"machine off", func(f *Facts) { f.Machines[0].Off = true }, Warning, "nodes"},
		{"machine without Node", func(f *Facts) {
			f.Machines = append(f.Machines, Machine{ID: set + "/virtualMachines/1", Set: set},
				Machine{ID: set + "/virtualMachines/2", Set: set, Off: true},
				Machine{ID: group + "/providers/Microsoft.Compute/virtualMachines/jump"})
		}, Warning, "nodes"},
		{"Node not initialized", func(f *Facts) {
			f.Nodes[0].Spec.Taints = []v1.Taint{{Key: uninitialized}}
		}, Warning, "nodes"},
		{"Node of another subscription", func(f *Facts) {
			f.Nodes[0].Spec.ProviderID = strings.Replace(f.Nodes[0].Spec.ProviderID, "/s/", "/x/", 1)
			f.Machines, f.Attachments = nil, nil
		}, Warning, "nodes"},
		{"Node of another group", func(f *Facts) {
			f.Nodes[0].Spec.ProviderID = "azure://" + string(other) + "/providers/Microsoft.Compute/virtualMachines/m"
			f.Machines, f.Attachments = nil, nil
		}, Unknown, "nodes"},
		{"Service without address", func(f *Facts) { svc(f).Status = v1.ServiceStatus{} }, Problem, "services"},
		{"Service not deleted", func(f *Facts) {
			svc(f).DeletionTimestamp, svc(f).Finalizers = new(svc(f).CreationTimestamp), []string{"service.kubernetes.io/load-balancer-cleanup"}
		}, Problem, "services"},
		{"address without frontend", func(f *Facts) { f.LoadBalancers = nil }, Problem, "services"},
		{"frontend not readable", func(f *Facts) { f.PublicIPs = nil }, Unknown, "services"},
		{"Service without address and its event", func(f *Facts) {
			svc(f).Status = v1.ServiceStatus{}
			f.Events = []v1.Event{
				warning(f, "Service", "default", "web", "SyncLoadBalancerFailed", "subnet \"a\" is\nnot found", -time.Minute),
				warning(f, "Service", "default", "web", "SyncLoadBalancerFailed", "an older one", -time.Hour),
			}
		}, Problem, "services"},
	}
}

// warning is an event about an object.
func warning(f *Facts, kind, namespace, name, reason, message string, at time.Duration) v1.Event {
	return v1.Event{InvolvedObject: v1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, Reason: reason, Message: message,
		LastTimestamp: metav1.NewTime(f.Now.Add(at))}
}

// waiting is a claim of a class that has waited for an hour, and a pod that uses it.
func waiting(f *Facts, class string) (*v1.PersistentVolumeClaim, *v1.Pod) {
	old := metav1.NewTime(f.Now.Add(-time.Hour))
	c := v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", CreationTimestamp: old}}
	c.Spec.StorageClassName, c.Status.Phase = &class, v1.ClaimPending
	f.Claims = []v1.PersistentVolumeClaim{c}
	p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", CreationTimestamp: old}}
	p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	f.Pending = []v1.Pod{p}
	return &f.Claims[0], &f.Pending[0]
}

// brokenStorage are clusters with faults of disks, shares and claims.
func brokenStorage() []broken {
	return []broken{
		{"disk gone", func(f *Facts) { f.Disks = nil }, Problem, "volumes"},
		{"disk of another group", func(f *Facts) {
			f.Volumes[0].Spec.CSI.VolumeHandle = string(other) + "/providers/Microsoft.Compute/disks/d"
			f.Disks = nil
		}, Unknown, "volumes"},
		{"disk without volume", func(f *Facts) { f.Volumes = f.Volumes[1:] }, Warning, "volumes"},
		{"disk detached behind Kubernetes", func(f *Facts) {
			f.Disks[0].Holders = nil
		}, Problem, "volumes"},
		{"disk not attached", func(f *Facts) {
			f.Attachments[0].Status = storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no LUN\nis free"}}
		}, Warning, "volumes"},
		{"account gone", func(f *Facts) { f.Accounts = []Account{{ID: account, Absent: true}} }, Problem, "shares"},
		{"account not readable", func(f *Facts) { f.Accounts = []Account{{ID: account, Fault: "403"}} }, Unknown, "shares"},
		{"share gone", func(f *Facts) { f.Accounts[0].Shares = nil }, Problem, "shares"},
		{"share deleted and kept", func(f *Facts) { f.Accounts[0].Shares[0].Properties.Deleted = true }, Problem, "shares"},
		{"share smaller than its volume", func(f *Facts) {
			f.Volumes[1].Spec.Capacity[v1.ResourceStorage] = resource.MustParse("10Gi")
		}, Warning, "shares"},
		{"share without volume", func(f *Facts) { f.Volumes = f.Volumes[:1] }, Warning, "shares"},
		{"volume with its account in a Secret", func(f *Facts) {
			f.Volumes[1].Spec.CSI.VolumeHandle, f.Volumes[1].Spec.CSI.VolumeAttributes = "any", map[string]string{"shareName": "s"}
			f.Accounts = nil
		}, Unknown, "shares"},
		{"claim that waits for its driver", func(f *Facts) {
			waiting(f, "disk")
			f.Pending = nil
			f.Events = []v1.Event{warning(f, "PersistentVolumeClaim", "default", "data", "ProvisioningFailed", "quota is used up", 0)}
		}, Warning, "waits"},
		{"claim of a class that does not exist", func(f *Facts) {
			waiting(f, "fast")
			f.Pending = nil
		}, Problem, "waits"},
		{"pod that fits on no node", func(f *Facts) {
			_, p := waiting(f, "disk")
			f.Classes[0].VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/1 nodes are available: 1 node(s) exceed max volume count"}}
		}, Warning, "waits"},
		{"pod whose volume is not mounted", func(f *Facts) {
			_, p := waiting(f, "disk")
			p.Spec.NodeName, f.Claims = "n", nil
			f.Events = []v1.Event{warning(f, "Pod", "default", "db-0", "FailedMount", "no such device", 0)}
		}, Warning, "waits"},
	}
}

// brokenNeighbours are clusters with faults of node groups, application gateways and DNS zones.
func brokenNeighbours() []broken {
	capacity := func(f *Facts, n int64) { f.ScaleSets[0].SKU.Capacity = &n }
	return []broken{
		{"node group without its scale set", func(f *Facts) {
			f.Arguments[scalerProvider]["nodes"] = []string{"1:3:gone"}
		}, Problem, "node groups"},
		{"node group with a wrong flag", func(f *Facts) {
			f.Arguments[scalerProvider]["nodes"] = []string{"3:1:scaled"}
		}, Problem, "node groups"},
		{"node group without limits", func(f *Facts) { delete(f.ScaleSets[0].Tags, "max") }, Problem, "node groups"},
		{"node group beyond its limits", func(f *Facts) { capacity(f, 4) }, Warning, "node groups"},
		{"node group with fewer machines than asked for", func(f *Facts) { capacity(f, 2) }, Warning, "node groups"},
		{"node group with overprovisioning", func(f *Facts) { f.ScaleSets[0].Properties.Overprovision = new(true) }, Warning, "node groups"},
		{"no node group", func(f *Facts) { f.ScaleSets = nil }, Warning, "node groups"},
		{"gateway gone", func(f *Facts) { f.Gateways = []Gateway{{ID: gateID, Absent: true}} }, Problem, "gateways"},
		{"gateway stopped", func(f *Facts) { f.Gateways[0].Doc.Properties.OperationalState = "Stopped" }, Problem, "gateways"},
		{"gateway failed", func(f *Facts) { f.Gateways[0].Doc.Properties.ProvisioningState = "Failed" }, Problem, "gateways"},
		{"gateway with unhealthy backends", func(f *Facts) {
			f.Gateways[0].Health[0] = health.Backend{Pool: "web", Settings: "http", Address: "10.0.0.4", State: "Unhealthy", Log: "status 500"}
		}, Problem, "gateways"},
		{"gateway without the right to its health", func(f *Facts) {
			f.Gateways[0].Health, f.Gateways[0].HealthFault = nil, "403"
		}, Unknown, "gateways"},
		{"gateway not named", func(f *Facts) { f.Gateways, f.Arguments[gatewayController] = nil, Arguments{} }, Unknown, "gateways"},
		{"zone gone", func(f *Facts) { f.Zones = []Zone{{ID: zoneID, Absent: true}} }, Problem, "DNS zones"},
		{"zone nearly full", func(f *Facts) { f.Zones[0].Doc.Properties.NumberOfRecordSets = 9001 }, Warning, "DNS zones"},
		{"zone full", func(f *Facts) { f.Zones[0].Doc.Properties.NumberOfRecordSets = 10000 }, Problem, "DNS zones"},
		{"no zone", func(f *Facts) { f.Zones = nil }, Problem, "DNS zones"},
		{"names not written", func(f *Facts) { f.Arguments[dnsWebhook]["dry-run"] = []string{"true"} }, Warning, "DNS zones"},
	}
}

// brokenRest are clusters with operations that do not end, with full quotas and orphans, and such that cannot be read.
func brokenRest() []broken {
	operation := func(id azure.ID, state string) func(*Facts) {
		return func(f *Facts) { f.Operations = []Operation{{ID: id, State: state}} }
	}
	return []broken{
		{"operation under way", operation(lb, "Updating"), Warning, "operations"},
		{"operation failed", operation(machine, "Failed"), Problem, "operations"},
		{"quota nearly used", func(f *Facts) { f.Usages[0] = usage("Compute cores", 91, 100) }, Warning, "quotas"},
		{"quota used up", func(f *Facts) { f.Usages[0].Used = 10 }, Problem, "quotas"},
		{"orphans", func(f *Facts) { f.Services, f.Present = nil, nil }, Warning, "orphans"},
		{"failed read", func(f *Facts) { f.Note(Machines, errors.New("403")) }, Unknown, "nodes, node groups, operations"},
		{"read not made", func(f *Facts) { delete(f.Done, Disks) }, Unknown, "volumes, operations"},
	}
}
