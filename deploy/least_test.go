package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	framework "k8s.io/cloud-provider"

	"kaz/deploy"
	"kaz/internal/arm"
	"kaz/internal/arm/cache"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
	"kaz/internal/plan/rights"
	"kaz/internal/plan/routes"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// story is a use of Azure by the real controllers.
type story struct {
	name string
	// needs are the actions without which the story fails with an error that names the action. They
	// are removed one at a time.
	needs []string
	// without are actions that may be denied: the story succeeds.
	without []string
	tell    func(*cluster) error
}

const (
	computeActions = "Microsoft.Compute/"
	networkActions = "Microsoft.Network/"
	instanceOf     = computeActions + "virtualMachineScaleSets/virtualMachines/"
)

func stories() []story {
	const lb, ip, nsg, pls = networkActions + "loadBalancers/", networkActions + "publicIPAddresses/", networkActions +
		"networkSecurityGroups/", networkActions + "privateLinkServices/"
	const vnet = networkActions + "virtualNetworks/"
	return []story{
		{name: "nodes are described", tell: (*cluster).describe, needs: []string{
			computeActions + "virtualMachineScaleSets/read", instanceOf + "read", computeActions +
				"virtualMachineScaleSets/networkInterfaces/read",
			computeActions + "virtualMachines/read", networkActions + "networkInterfaces/read",
		}},
		{name: "nodes with public addresses", tell: (*cluster).public, needs: []string{
			computeActions + "virtualMachineScaleSets/publicIPAddresses/read", ip + "read",
		}},
		{name: "nodes do not answer", tell: (*cluster).silent,
			needs: []string{instanceOf + "instanceView/read", computeActions + "virtualMachines/instanceView/read"}},
		{name: "tags of sets", tell: (*cluster).tags, needs: []string{computeActions + "availabilitySets/read"}},
		{name: "routes", tell: (*cluster).route,
			needs: []string{networkActions + "routeTables/read", networkActions + "routeTables/write"}},
		{name: "a route table that is nearly full", tell: (*cluster).lastRoute,
			without: []string{networkActions + "locations/usages/read"}},
		{name: "external Service", tell: (*cluster).external, needs: []string{
			lb + "read", lb + "write", lb + "delete", lb + "backendAddressPools/join/action", ip + "read", ip + "write", ip + "delete",
			ip + "join/action",
			nsg + "read", nsg + "write", nsg + "join/action", computeActions + "virtualMachineScaleSets/write", instanceOf + "write",
			networkActions + "networkInterfaces/write", vnet + "subnets/join/action",
		}},
		{name: "internal Service", tell: (*cluster).internal, needs: []string{vnet + "subnets/read"}},
		{name: "Service with an address out of a prefix", tell: (*cluster).prefix,
			needs: []string{networkActions + "publicIPPrefixes/join/action"}},
		{name: "pools of addresses", tell: (*cluster).poolOfAddresses, needs: []string{vnet + "joinLoadBalancer/action"}},
		{name: "pools that Azure migrates", tell: (*cluster).migrate, needs: []string{lb + "migrateToIpBased/action"}},
		{name: "private link", tell: (*cluster).privateLink, needs: []string{
			pls + "read", pls + "write", pls + "delete", pls + "privateEndpointConnections/read", pls + "privateEndpointConnections/delete",
			lb + "frontendIPConfigurations/join/action", vnet + "subnets/write",
		}},
	}
}

// elsewhere are actions that only the program needs and not its controllers, with the tests that
// remove them.
func elsewhere() map[string]string {
	return map[string]string{
		"Microsoft.Authorization/permissions/read":         "kaz/internal/component/access TestRights",
		"Microsoft.Resources/subscriptions/providers/read": "kaz/cmd/cloud-controller-manager/app TestZonesThatMayNotBeRead",
	}
}

// TestLeastPrivilege checks that every story succeeds with exactly the roles of deploy/roles, and
// that each action is necessary.
func TestLeastPrivilege(t *testing.T) {
	const role = "cloud-controller-manager"
	state := layCluster(t)
	taken := checkStories(t, stories(), func(t *testing.T, without string) *cluster { return openCluster(t, state, role, without) })
	for _, a := range roleActions(role) {
		if !taken[a] && elsewhere()[a] == "" {
			t.Errorf("role %s: action %s is not needed by any story", role, a)
		}
	}
}

// checkStories checks the stories in clusters with a role, and without each action that they need. It returns the
// needed actions.
func checkStories(t *testing.T, stories []story, open func(t *testing.T, without string) *cluster) (taken map[string]bool) {
	t.Helper()
	taken = map[string]bool{}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, "")
				if err := s.tell(c); err != nil {
					t.Errorf("with all rights: %v", err)
				}
				if refused := c.way.list(); len(refused) > 0 {
					t.Errorf("with all rights it was refused %q", refused)
				}
			})
			for _, action := range slices.Concat(s.needs, s.without) {
				taken[action] = true
				t.Run("without "+strings.ReplaceAll(action, "/", "."), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { s.tellWithout(t, open(t, action), action) })
				})
			}
		})
	}
	return taken
}

// tellWithout tells a story in a cluster without the right to an action.
func (s story) tellWithout(t *testing.T, c *cluster, action string) {
	t.Helper()
	err := s.tell(c)
	if refused := c.way.list(); !slices.Equal(refused, []string{action}) {
		t.Errorf("it was refused %q; %v", refused, err)
	}
	switch {
	case slices.Contains(s.without, action) && err != nil:
		t.Errorf("it does not do without: %v", err)
	case slices.Contains(s.needs, action) && (err == nil || !strings.Contains(err.Error(), action)):
		t.Errorf("the error does not name the action: %v", err)
	}
}

// TestNodeManagersRole: the machines are described with the role of the node manager.
func TestNodeManagersRole(t *testing.T) {
	state := layCluster(t)
	role := deploy.Roles()["cloud-node-manager"].Actions
	synctest.Test(t, func(t *testing.T) {
		c := grantedCluster(t, state, role, nil)
		if err := errors.Join(c.describe(), c.silent()); err != nil {
			t.Error(err)
		}
		if refused := c.way.list(); len(refused) > 0 {
			t.Errorf("it was refused %q", refused)
		}
	})
	if !slices.Equal(role, actions(rights.Nodes)) {
		t.Errorf("role %q", role)
	}
}

func actions(f rights.Feature) []string {
	var all []string
	for _, n := range rights.Needed(f) {
		all = append(all, n.Action)
	}
	slices.Sort(all)
	return all
}

type object = map[string]any

// Resources in the cluster's group besides the infrastructure of testkit.
const (
	tableName  = "rt"
	fullTable  = "full"
	prefixName = "prefix"
)

const publicSet = testkit.Group + "/providers/" + compute.ScaleSets + "/public"

// layPublic creates a scale set of machines with public addresses.
func layPublic(a *testkit.Azure) {
	a.Put(publicSet, object{
		"location": testkit.Location, "sku": object{"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 1},
		"properties": object{
			"orchestrationMode": testkit.Uniform, "upgradePolicy": object{"mode": "Manual"},
			"virtualMachineProfile": object{
				"osProfile": object{"computerNamePrefix": "public-", "adminUsername": "kaz",
					"linuxConfiguration": object{"disablePasswordAuthentication": true}},
				"storageProfile": object{
					"osDisk":         object{"createOption": "FromImage", "managedDisk": object{"storageAccountType": "Premium_LRS"}},
					"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
				},
				"networkProfile": object{"networkInterfaceConfigurations": []object{{"name": "nic", "properties": object{
					"primary": true, "ipConfigurations": []object{{"name": "ipconfig", "properties": object{
						"subnet": object{"id": testkit.VNet.Child("subnets", "nodes")}, "primary": true,
						"publicIPAddressConfiguration": object{"name": "public", "sku": object{"name": "Standard"}},
					}}},
				}}}},
			},
		},
	})
}

// layCluster creates a cluster with machines of every kind and returns its state file.
func layCluster(t *testing.T) string {
	t.Helper()
	a := testkit.NewAzure(t, core.Options{}, 1)
	layPublic(a)
	set := a.AddAvailabilitySet("as")
	single := a.AddMachine(testkit.VirtualMachine{Name: "single", AvailabilitySet: set})
	a.AddMachine(testkit.VirtualMachine{Name: "outside", Public: true})
	nic := testkit.Group.Resource(network.Interfaces, single.Name()+"-nic")
	subnet := testkit.VNet.Child("subnets", "nodes")
	// The interface's own security group, which each write of the interface repeats.
	a.Put(nic, object{"location": testkit.Location, "properties": object{
		"networkSecurityGroup": object{"id": testkit.SecurityGroup},
		"ipConfigurations":     []object{{"name": "ipv4", "properties": object{"subnet": object{"id": subnet}, "primary": true}}},
	}})
	a.Put(testkit.Group.Resource("Microsoft.Network/publicIPPrefixes", prefixName), object{
		"location": testkit.Location, "sku": object{"name": "Standard"}, "zones": []string{"1", "2", "3"},
		"properties": object{"prefixLength": 28},
	})
	a.Put(testkit.Group.Resource(network.RouteTables, tableName), object{"location": testkit.Location})
	var many []object
	for i := range 399 {
		many = append(many, object{"name": fmt.Sprintf("other%d", i), "properties": object{
			"addressPrefix": fmt.Sprintf("10.%d.%d.0/24", 100+i/256, i%256), "nextHopType": "VirtualAppliance",
			"nextHopIpAddress": "10.9.9.9",
		}})
	}
	a.Put(testkit.Group.Resource(network.RouteTables, fullTable),
		object{"location": testkit.Location, "properties": object{"routes": many}})
	return save(t, a)
}

// save saves a local Azure and returns its state file.
func save(t *testing.T, a *testkit.Azure) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state.json")
	if err := a.SaveFile(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// cluster is a local Azure with the rights of a cluster's identity.
type cluster struct {
	t      *testing.T
	azur   *core.Emulator
	client *cache.Cache
	way    *bearer
}

const principal = "aaaaaaaa-0000-4000-8000-000000000001"

// openCluster loads a cluster and grants its identity a role with its part at the subscription, except one action.
func openCluster(t *testing.T, state, role, without string) *cluster {
	t.Helper()
	granted := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(deploy.Roles()[name].Actions), func(a string) bool { return a == without })
	}
	return grantedCluster(t, state, granted(role), granted(role+"-subscription"))
}

// roleActions returns the actions of a role and its part at the subscription.
func roleActions(role string) []string {
	return slices.Concat(deploy.Roles()[role].Actions, deploy.Roles()[role+"-subscription"].Actions)
}

func grantedCluster(t *testing.T, state string, group, subscription []string) *cluster {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All(), Authenticator: anyToken{}, AccessControl: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.LoadFile(state); err != nil {
		t.Fatal(err)
	}
	s := &testkit.SignIn{Emulator: e}
	s.Grant(t, principal, testkit.Group, group...)
	s.Grant(t, principal, azure.SubscriptionID(testkit.Subscription), subscription...)
	c := &cluster{t: t, azur: e, way: &bearer{next: e.Transport(), refused: map[string]bool{}}}
	client, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: c.way})
	if err == nil {
		c.client, err = cache.Over(client, cache.Options{TTL: map[string]time.Duration{"": time.Minute}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyToken identifies every token as the identity of the cluster.
type anyToken struct{}

func (anyToken) Authenticate(string) (*behaviour.Principal, error) {
	return &behaviour.Principal{ObjectID: principal, ApplicationID: principal}, nil
}

// bearer sends requests with a token and records denied ones.
type bearer struct {
	next    http.RoundTripper
	mu      sync.Mutex
	refused map[string]bool
}

var actionIn = regexp.MustCompile(`to perform action(?:\(s\))? '([^']+)' o(?:ver|n the linked) scope`)

func (b *bearer) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer x")
	resp, err := b.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range actionIn.FindAllSubmatch(text, -1) {
		b.refused[string(m[1])] = true
	}
	return resp, nil
}

func (b *bearer) list() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.refused))
}

// machines are the nodes of the cluster's machines.
func (c *cluster) machines() map[string]*corev1.Node {
	return map[string]*corev1.Node{
		"nodes0-000000": newNode("nodes0-000000", testkit.Nodes.Child("virtualMachines", "0"), "10.240.0.4"),
		"single":        newNode("single", testkit.Group.Resource(compute.VirtualMachines, "single"), "10.240.0.5"),
	}
}

func newNode(name string, machine azure.ID, address string) *corev1.Node {
	id, err := nodes.ProviderID(machine)
	if err != nil {
		panic(err) // the test's own id
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.NodeSpec{ProviderID: id}}
	n.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	return n
}

func (c *cluster) cloud(table string) *cloudprovider.Cloud {
	cloud := cloudprovider.New(cloudprovider.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		Routes:       routesOf(table),
		LoadBalancer: balancerConfig(),
	}, c.client)
	c.t.Cleanup(cloud.Close)
	return cloud
}

func routesOf(table string) routes.Config {
	return routes.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Table: table,
		Location: testkit.Location, ClusterGroup: testkit.ResourceGroup,
	}
}

func (c *cluster) describe() error {
	instances, _ := c.cloud("").InstancesV2()
	var errs []error
	for _, n := range c.machines() {
		n.Spec.ProviderID = "" // as a new node's
		_, err := instances.InstanceMetadata(c.t.Context(), n)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// public describes nodes of machines with public addresses.
func (c *cluster) public() error {
	instances, _ := c.cloud("").InstancesV2()
	var errs []error
	for _, n := range []*corev1.Node{
		newNode("public-000000", publicSet.Child("virtualMachines", "0"), ""),
		newNode("outside", testkit.Group.Resource(compute.VirtualMachines, "outside"), ""),
	} {
		m, err := instances.InstanceMetadata(c.t.Context(), n)
		if err == nil && !slices.ContainsFunc(m.NodeAddresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeExternalIP }) {
			err = fmt.Errorf("%s has the addresses %v", n.Name, m.NodeAddresses)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// silent checks that nodes that are not ready exist and their machines run.
func (c *cluster) silent() error {
	cloud := c.cloud("")
	cloud.SetInformers(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	instances, _ := cloud.InstancesV2()
	var errs []error
	for _, n := range c.machines() {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
			LastTransitionTime: metav1.Now()}}
		there, err := instances.InstanceExists(c.t.Context(), n)
		if err == nil && !there {
			err = fmt.Errorf("%s does not exist", n.Name)
		}
		errs = append(errs, err)
		off, err := instances.InstanceShutdown(c.t.Context(), n)
		if err == nil && off {
			err = fmt.Errorf("%s is off", n.Name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *cluster) tags() error {
	cloud := c.cloud("")
	var errs []error
	for _, n := range c.machines() {
		_, err := cloud.SetTags(c.t.Context(), n.Spec.ProviderID)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *cluster) route() error { return c.addRoute(tableName) }

func (c *cluster) lastRoute() error { return c.addRoute(fullTable) }

func (c *cluster) addRoute(table string) error {
	cloud := c.cloud(table)
	client := fake.NewClientset(c.machines()["nodes0-000000"])
	factory := informers.NewSharedInformerFactory(client, 0)
	cloud.SetInformers(factory)
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	all, _ := cloud.Routes()
	_, err := all.ListRoutes(c.t.Context(), testkit.ClusterName)
	return errors.Join(err, all.CreateRoute(c.t.Context(), testkit.ClusterName, "u", &framework.Route{
		TargetNode: "nodes0-000000", DestinationCIDR: "10.200.0.0/24",
		TargetNodeAddresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.240.0.4"}},
	}))
}

func balancerConfig() loadbalancer.Config {
	return loadbalancer.Config{
		ClusterName: testkit.ClusterName, LoadBalancerName: testkit.ClusterName,
		Location: testkit.Location, Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
		NetworkSubscription: testkit.Subscription, LoadBalancerResourceGroup: testkit.ResourceGroup,
		SecurityGroupName: testkit.SecurityGroup.Name(), SecurityGroupResourceGroup: testkit.ResourceGroup,
		Zones: []string{"1", "2", "3"}, VirtualNetwork: testkit.VNet.Name(), VirtualNetworkResourceGroup: testkit.ResourceGroup,
		Subnet:                   "nodes",
		PrivateLinkResourceGroup: testkit.ResourceGroup,
	}
}

func (c *cluster) external() error { return c.serve(balancerConfig(), nil, nil) }

func (c *cluster) internal() error {
	return c.serve(balancerConfig(), map[string]string{"azure-load-balancer-internal": "true"}, nil)
}

func (c *cluster) prefix() error {
	return c.serve(balancerConfig(),
		map[string]string{"azure-pip-prefix-id": string(testkit.Group.Resource("Microsoft.Network/publicIPPrefixes", prefixName))}, nil)
}

func (c *cluster) poolOfAddresses() error {
	config := balancerConfig()
	config.PoolByIP = true
	return c.serve(config, nil, nil)
}

// privateLink has a connection when it is deleted.
func (c *cluster) privateLink() error {
	return c.serve(balancerConfig(), map[string]string{
		"azure-load-balancer-internal": "true", "azure-pls-create": "true", "azure-pls-name": "link",
		"azure-pls-auto-approval": testkit.Subscription, "azure-pls-visibility": "*",
	}, func() {
		s := &testkit.SignIn{Emulator: c.azur}
		s.Put(c.t, testkit.Group.Resource("Microsoft.Network/privateEndpoints", "guest"),
			object{"location": testkit.Location, "properties": object{
				"subnet": object{"id": testkit.VNet.Child("subnets", "nodes")},
				"privateLinkServiceConnections": []any{object{"name": "c", "properties": object{
					"privateLinkServiceId": testkit.Group.Resource(network.PrivateLinkServices, "link"),
				}}},
			}})
	})
}

// migrate lets Azure convert the pools of a served Service to pools of addresses.
func (c *cluster) migrate() error {
	config := balancerConfig()
	config.PoolByIP, config.MigrateByAPI = true, true
	var migrated error
	served := c.serve(balancerConfig(), nil, func() {
		_, told, stop := c.begin(config, nil)
		defer stop()
		migrated = told.await("EnsuredLoadBalancer")
	})
	return errors.Join(migrated, served)
}

// serve serves a Service and deletes it.
func (c *cluster) serve(config loadbalancer.Config, annotations map[string]string, meanwhile func()) error {
	c.t.Helper()
	client, told, stop := c.begin(config, annotations)
	defer stop()
	if err := told.await("EnsuredLoadBalancer"); err != nil {
		return err
	}
	if meanwhile != nil {
		meanwhile()
	}
	services := client.CoreV1().Services(metav1.NamespaceDefault)
	now, err := services.Get(c.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err := services.Update(c.t.Context(), now, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return errors.Join(told.await("DeletedLoadBalancer"), told.failed("UpdateLoadBalancerFailed"))
}

// begin serves a Service until stop is called.
func (c *cluster) begin(config loadbalancer.Config, annotations map[string]string) (client *fake.Clientset, told *events, stop func()) {
	c.t.Helper()
	s := testkit.NewService("web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080})
	s.UID = "3d2c1b0a-1111-2222-3333-444455556666"
	s.Annotations = map[string]string{}
	for key, value := range annotations {
		s.Annotations["service.beta.kubernetes.io/"+key] = value
	}
	client = fake.NewClientset(s)
	for _, n := range c.machines() {
		if err := client.Tracker().Add(n); err != nil {
			c.t.Fatal(err)
		}
	}
	told = &events{all: map[string][]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := service.New(service.Config{Classes: service.Classes{""}, Syncs: 1, LoadBalancer: config},
		service.Deps{Azure: c.client, Client: client, Informers: factory, Events: told})
	if err != nil {
		c.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
	factory.Start(ctx.Done())
	return client, told, func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	}
}

// events are the messages of events by reason.
type events struct {
	mu    sync.Mutex
	all   map[string][]string
	wrong []string
}

func (e *events) Event(_ runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all[reason] = append(e.all[reason], message)
	if kind == corev1.EventTypeWarning {
		e.wrong = append(e.wrong, message)
	}
}

func (e *events) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	e.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(o, kind, reason, format, args...)
}

// failed returns the event about single machines that could not be added: the other machines serve
// the Service.
func (e *events) failed(reason string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all[reason]) == 0 {
		return nil
	}
	return errors.New(strings.Join(e.all[reason], "\n"))
}

// await waits, in simulated time, for an event; otherwise it returns the warnings.
func (e *events) await(reason string) error {
	const minutes = 3
	var wrong string
	for range minutes * 60 {
		<-time.After(time.Second)
		e.mu.Lock()
		done := len(e.all[reason]) > 0
		wrong = strings.Join(e.wrong, "\n")
		e.mu.Unlock()
		if done {
			return nil
		}
	}
	return fmt.Errorf("no event %s: %s", reason, wrong)
}
