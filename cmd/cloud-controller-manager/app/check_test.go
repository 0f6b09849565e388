package app

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/localazure/core"
	plan "kaz/internal/plan/check"
	"kaz/internal/testkit"
)

// dated is an Azure with a clock. It counts the requests that are no GET, without those for tokens.
type dated struct {
	*testkit.SignIn

	ahead  time.Duration
	writes atomic.Int32
}

func (d *dated) Do(r *http.Request) (*http.Response, error) {
	azureRequest := strings.HasPrefix(strings.ToLower(r.URL.Path), "/subscriptions/")
	if azureRequest && r.Method != http.MethodGet {
		d.writes.Add(1)
	}
	answer, err := d.SignIn.Do(r)
	if err == nil && azureRequest {
		answer.Header.Set("Date", time.Now().Add(d.ahead).UTC().Format(http.TimeFormat))
	}
	return answer, err
}

// checked is a cluster with a Service in a local Azure.
type checked struct {
	azure  *dated
	client *fake.Clientset
	keys   object // of azure.json
}

// layChecked makes a cluster with two Nodes, a Service that is served, and a disk. The identity has the rights that the check needs, but
// for those in without.
func layChecked(t *testing.T, without ...string) *checked {
	t.Helper()
	c := tenantsConfig(t)
	w := layTenants(t, c, without...)
	w.Grant(t, objectID, azure.SubscriptionID(core.DefaultSubscription),
		"Microsoft.Compute/disks/read", "Microsoft.Compute/locations/usages/read")
	w.Grant(t, objectID, azure.SubscriptionID(networkSub), "Microsoft.Network/locations/usages/read",
		"Microsoft.Resources/subscriptions/providers/read")
	cloud, _, err := openCloud(t.Context(), c, access.ClientOptions{Transport: w, Registerer: prometheus.NewRegistry()}, asItIs,
		newMissingRights())
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	addNodes(t, w, client)
	serve(t, cloud, client)
	addressOf(t, client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "11112222-0000-0000-0000-000000000000"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	})
	disk := machinesGroup.Resource("Microsoft.Compute/disks", "pvc-1")
	w.Put(t, disk, object{"location": "eastus", "sku": object{"name": "Premium_LRS"},
		"properties": object{"creationData": object{"createOption": "Empty"}, "diskSizeGB": 4, "timeCreated": "2026-01-01T00:00:00Z"},
		"tags":       object{"k8s-azure-created-by": "kubernetes-azure-dd", "kubernetes.io-created-for-pv-name": "pvc-1"}})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.azure.com", VolumeHandle: string(disk)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cloud-controller-manager-0",
		Labels: map[string]string{"component": "cloud-controller-manager"}}}
	pod.Spec.Containers = []corev1.Container{{Image: "registry.example/kaz/cloud-controller-manager:v1.36.0"}}
	for _, o := range []runtime.Object{pv, pod} {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return &checked{azure: &dated{SignIn: w}, client: client, keys: object{
		"tenantId": core.DefaultTenant, "subscriptionId": core.DefaultSubscription,
		"networkResourceTenantID": networkTenant, "networkResourceSubscriptionID": networkSub,
		"aadClientId": clientID, "aadClientSecret": clientSecret,
		"resourceGroup": "rg", "location": "East US", "vnetName": "vnet", "subnetName": "nodes",
		"securityGroupName": "nsg", "routeTableName": "rt",
	}}
}

// run checks the cluster.
func (c *checked) run(t *testing.T, before string) plan.Report {
	t.Helper()
	discovery, ok := c.client.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		t.Fatal("the client has no fake discovery")
	}
	discovery.FakedServerVersion = &version.Info{GitVersion: "v1.36.1"}
	return checkWith(t.Context(), c.client, Cluster{CloudConfig: writeFile(t, azureJSON(t, c.keys)), Name: "kubernetes"}, before, nothing,
		access.ClientOptions{Transport: c.azure, ThrottleWait: time.Second})
}

// copyWithout returns a client with the objects of the cluster, but for Services and persistent volumes. It shows what is left of them.
func (c *checked) copyWithout(t *testing.T) *fake.Clientset {
	t.Helper()
	found, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientset(found, pods)
}

// guide returns the text block of the guide that begins after a line.
func guide(t *testing.T, after string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "check.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), after+"\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("the guide has no block after %q", after)
	}
	return block + "\n"
}

// TestCheckOfHealthyCluster checks that a cluster without faults is ok in all areas, as the guide shows it, and that nothing is written.
func TestCheckOfHealthyCluster(t *testing.T) {
	c := layChecked(t)
	c.client.ClearActions()
	report := c.run(t, "")
	if got, want := report.String(), guide(t, "$ kaz check"); got != want {
		t.Errorf("%s\nthe guide has\n%s", got, want)
	}
	if n := c.azure.writes.Load(); n > 0 {
		t.Errorf("%d writes to Azure", n)
	}
	for _, action := range c.client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "get" && verb != "watch" {
			t.Errorf("%s %s in Kubernetes", verb, action.GetResource())
		}
	}
}

// addGone adds a Node without a machine.
func addGone(t *testing.T, c *checked) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	n.Spec.ProviderID = "azure://" + string(scaleSet) + "/virtualMachines/7"
	if err := c.client.Tracker().Add(n); err != nil {
		t.Fatal(err)
	}
}

// TestCheckOfBrokenCluster checks the output of the guide for a cluster with several faults.
func TestCheckOfBrokenCluster(t *testing.T) {
	c := layChecked(t, "Microsoft.Network/loadBalancers/delete")
	c.azure.ahead = -time.Hour
	addGone(t, c)
	if got, want := c.run(t, "upgrade").String(), guide(t, "$ kaz check --before upgrade -o wide"); got != want {
		t.Errorf("%s\nthe guide has\n%s", got, want)
	}
}

// states returns the states of the findings that are not ok, by area.
func states(r plan.Report) map[string][]plan.State {
	all := map[string][]plan.State{}
	for _, f := range r.Findings {
		if f.State != plan.OK {
			all[f.Area] = append(all[f.Area], f.State)
		}
	}
	return all
}

func same(a, b map[string][]plan.State) bool {
	if len(a) != len(b) {
		return false
	}
	for area, one := range a {
		if !slices.Equal(one, b[area]) {
			return false
		}
	}
	return true
}

// TestCheckFindsFaults checks the faults that a cluster and its Azure can have.
func TestCheckFindsFaults(t *testing.T) {
	const problem, warning, unknown = plan.Problem, plan.Warning, plan.Unknown
	for name, test := range map[string]struct {
		without []string // rights
		spoil   func(*testing.T, *checked)
		want    map[string][]plan.State
		says    string
	}{
		"clock": {nil, func(_ *testing.T, c *checked) { c.azure.ahead = -time.Hour }, map[string][]plan.State{"clock": {problem}},
			"its clock is 1h0m0s ahead of Azure's"},
		"right": {[]string{"Microsoft.Network/loadBalancers/delete"}, nil, map[string][]plan.State{"rights": {problem}},
			"delete a load balancer with its last Service"},
		"secret": {nil, func(_ *testing.T, c *checked) { c.keys["aadClientSecret"] = "wrong" }, map[string][]plan.State{
			"identity": {problem}, "rights": {unknown}, "clock": {unknown}, "nodes": {unknown}, "services": {unknown, unknown},
			"volumes": {unknown}, "shares": {unknown}, "node groups": {unknown}, "gateways": {unknown}, "DNS zones": {unknown},
			"operations": {unknown, unknown, unknown, unknown}, "quotas": {unknown}, "orphans": {unknown, unknown},
		}, "AADSTS7000215"},
		"azure.json": {nil, func(_ *testing.T, c *checked) { c.keys["resourceGroup"] = "" }, map[string][]plan.State{
			"azure.json": {problem}, "identity": {unknown}, "rights": {unknown, unknown}, "clock": {unknown}, "nodes": {unknown},
			"services": {unknown, unknown}, "volumes": {unknown}, "shares": {unknown}, "node groups": {unknown}, "gateways": {unknown},
			"DNS zones": {unknown}, "operations": {unknown, unknown, unknown, unknown}, "quotas": {unknown}, "orphans": {unknown, unknown},
		}, "resourceGroup"},
		"unknown key": {nil, func(_ *testing.T, c *checked) { c.keys["resourceGrup"] = "rg" }, map[string][]plan.State{
			"azure.json": {warning}}, "resourceGrup"},
		"left in Azure": {nil, func(t *testing.T, c *checked) { c.client = c.copyWithout(t) },
			map[string][]plan.State{"orphans": {warning, warning}}, "default/web, which the cluster does not have"},
		"Nodes cannot be read": {nil, func(_ *testing.T, c *checked) {
			c.client.PrependReactor("list", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("nodes is forbidden")
			})
		}, map[string][]plan.State{"nodes": {unknown}, "volumes": {unknown}}, "nodes is forbidden"},
		"machine gone": {nil, addGone, map[string][]plan.State{"nodes": {problem}}, "virtualMachines/7"},
	} {
		t.Run(name, func(t *testing.T) {
			c := layChecked(t, test.without...)
			if test.spoil != nil {
				test.spoil(t, c)
			}
			report := c.run(t, "")
			if got := states(report); !same(got, test.want) || !strings.Contains(report.String(), test.says) {
				t.Errorf("%v, want %v and %q\n%s", got, test.want, test.says, report)
			}
		})
	}
}

// TestCheckReadsWhatItNeeds checks that a check before an installation reads no Nodes and no load balancers.
func TestCheckReadsWhatItNeeds(t *testing.T) {
	c := layChecked(t)
	before := len(c.azure.Seen("/loadBalancers"))
	c.client.ClearActions()
	report := c.run(t, "install")
	if report.Has(plan.Problem, plan.Warning, plan.Unknown) || report.Before != "install" {
		t.Error(report)
	}
	if len(c.azure.Seen("/loadBalancers")) != before {
		t.Error("load balancers are read")
	}
}

// TestCheckValidates checks that a cluster name that cannot be is an error, not a finding.
func TestCheckValidates(t *testing.T) {
	_, err := Check(t.Context(), Cluster{Name: "a/b"}, "", nothing, access.ClientOptions{})
	if err == nil || !strings.Contains(err.Error(), "--cluster-name") {
		t.Error(err)
	}
}

// TestAbsentAzureJSON checks that a file that is absent is a finding.
func TestAbsentAzureJSON(t *testing.T) {
	_, found := checkedConfig(t.Context(), fake.NewClientset(), Cluster{CloudConfig: filepath.Join(t.TempDir(), "azure.json"), Name: "kubernetes"}, nothing)
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, "no such file") {
		t.Errorf("%+v", found)
	}
	var c cloudconfig.Config
	c.LoadBalancerName = "lb"
	if names := balancerNames(c, "kubernetes"); !slices.Equal(names, []string{"lb"}) {
		t.Errorf("%q", names)
	}
}

// TestCheckOfSecret checks that a configuration in a Secret is read, that its mistakes are found, and that an absent one is a finding.
func TestCheckOfSecret(t *testing.T) {
	keys := layChecked(t).keys
	client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "azure"},
		Data: map[string][]byte{"cloud-config": []byte(azureJSON(t, keys))}})
	read := func(name string) (cloudconfig.Config, plan.Config) {
		return checkedConfig(t.Context(), client, Cluster{Name: "kubernetes", Secret: Secret{Namespace: "kube-system", Name: name}}, nothing)
	}
	if c, found := read("azure"); len(found.Problems) > 0 || c.ResourceGroup != "rg" || found.Path != "secret kube-system/azure" {
		t.Errorf("%+v", found)
	}
	if _, found := read("none"); len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Message, "not found") {
		t.Errorf("an absent Secret: %+v", found)
	}
}
