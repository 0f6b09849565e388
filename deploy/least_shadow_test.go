package deploy_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/autoscale"
	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/dns"
	gateways "kaz/internal/gateway/explain"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/share"
	"kaz/internal/shadow"
	shadowgateways "kaz/internal/shadow/gateways"
	"kaz/internal/shadow/names"
	"kaz/internal/shadow/nodegroups"
	"kaz/internal/shadow/volumes"
	"kaz/internal/testkit"
	"kaz/internal/testkit/kubeclient"
)

// TestShadowReads checks that the roles of kaz shadow have rights to read alone, and that all kinds are read with exactly them.
func TestShadowReads(t *testing.T) {
	const role = "kaz-shadow"
	for _, action := range roleActions(role) {
		if !strings.HasSuffix(action, "/read") {
			t.Errorf("role %s: %s is no right to read", role, action)
		}
	}
	for name, c := range map[string]struct {
		state   string
		sources func(*cluster) []shadow.Source
	}{
		"a cluster":              {layShadowed(t), (*cluster).shadowSources},
		"an application gateway": {layGateway(t), (*cluster).shadowGateways},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := openCluster(t, c.state, role, "")
			report := shadow.Run(t.Context(), c.sources(c1), shadow.Options{Say: func(string) {}})
			if report.Unknown() || len(report.Kinds) == 0 {
				t.Errorf("%s", report)
			}
			for _, k := range report.Kinds {
				if k.Objects == 0 && k.Name != "Ingresses and Gateways" {
					t.Errorf("%s: no object", k.Name)
				}
			}
			if denied := c1.way.list(); len(denied) > 0 {
				t.Errorf("denied: %q", denied)
			}
		})
	}
}

// layShadowed creates a cluster with a disk, a share and a zone, and returns its state file.
func layShadowed(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	a := testkit.NewAzure(t, core.Options{}, 1)
	a.AddMachine(testkit.VirtualMachine{Name: "single"})
	a.Put(madeDisk, object{"location": testkit.Location, "sku": object{"name": "Premium_LRS"}, "properties": object{
		"diskSizeGB": 10, "creationData": object{"createOption": "Empty"},
	}})
	account := testkit.Group.Resource(storage.Accounts, "files")
	a.Put(account, object{"location": testkit.Location, "kind": "StorageV2", "sku": object{"name": "Standard_LRS"}, "properties": object{}})
	a.Put(storage.ShareOf(account, "pvc-2"), object{"properties": object{"shareQuota": 10}})
	a.Put(publicZone, object{"location": "global"})
	a.Put(publicZone+"/TXT/a-web", object{"properties": object{"TTL": 300, "TXTRecords": []object{{
		"value": []string{"heritage=external-dns,external-dns/owner=prod,external-dns/resource=service/shop/web"},
	}}}})
	return save(t, a)
}

// shadowSources decide about all kinds of the state of layShadowed but Ingresses.
func (c *cluster) shadowSources() []shadow.Source {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "11112222-0000-0000-0000-000000000000"}}
	web.Spec.Type, web.Spec.IPFamilies = corev1.ServiceTypeLoadBalancer, []corev1.IPFamily{corev1.IPv4Protocol}
	web.Spec.Ports = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}}
	objects := []runtime.Object{web, volumeOf("pvc-1", "disk.csi.azure.com", string(madeDisk)),
		volumeOf("pvc-2", "file.csi.azure.com", testkit.ResourceGroup+"#files#pvc-2###default")}
	for _, n := range c.machines() {
		n.Spec.PodCIDRs = []string{"10.244.1.0/24"}
		objects = append(objects, n)
	}
	kube := fake.NewClientset(objects...)
	log := slog.New(slog.DiscardHandler)
	cloud := c.cloud("table")
	machines, _ := cloud.InstancesV2()
	nodes := shadow.Cluster{Kubernetes: kube, Managed: cloudprovider.Managed}
	inspector, err := explain.NewInspector(c.t.Context(), explain.Config{LoadBalancer: balancerConfig(), Classes: decision.Classes{""}}, c.client.Fresh(), kube)
	if err != nil {
		c.t.Fatal(err)
	}
	config := volumes.Config{Kubernetes: kube, Azure: c.client.Fresh(), Log: log}
	ctx, stop := context.WithCancel(c.t.Context())
	c.t.Cleanup(stop)
	return []shadow.Source{
		shadow.Services(inspector.ExplainAll), shadow.Nodes(nodes, machines), shadow.Routes(nodes, routesOf("table"), c.client.Fresh()),
		volumes.Disks(ctx, config, kubeclient.Of(kube), plandisk.Cluster{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		}),
		volumes.Shares(config, kubeclient.Of(kube), share.Cluster{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup}),
		nodegroups.Source(kube, autoscale.Config{
			Azure: shadow.Unwritten{Reader: c.client.Fresh()}, ResourceGroup: testkit.Group, Location: testkit.Location, Log: log,
			Selection: nodegroup.Selection{Named: []nodegroup.Named{{Name: testkit.ScaleSet, Limits: nodegroup.Limits{Max: 3}}}},
		}),
		names.Source(kube, dns.Config{
			Azure: shadow.Unwritten{Reader: c.client.Fresh()}, Refresh: dns.Refresh, Log: log,
			Zones: dns.Zones{Groups: []azure.ID{testkit.Group}, Public: true, Private: true},
		}, "prod"),
	}
}

func volumeOf(name, driver, handle string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return v
}

// shadowGateways decides about the state of layGateway.
func (c *cluster) shadowGateways() []shadow.Source {
	clients := gateways.Clients{Kube: fake.NewClientset()}
	return []shadow.Source{shadowgateways.Source(clients, c.client.Fresh(), func(context.Context) (gateways.Config, error) {
		return gateways.Config{
			Config: planner.Config{Gateway: azure.ID(gate), Ownership: merge.Ownership{Prefix: naming.Of("0c1d2e3f")}, Identity: "cluster-uid"},
			Class:  ingress.Class{Value: ingress.ClassValue, Name: ingress.ClassName, Controller: ingress.ClassValue},
		}, nil
	})}
}
