package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/component/access"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/plan/nodes"
	"kaz/internal/plan/rights"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// patience is longer than any successful step.
const patience = 2 * time.Minute

const (
	clientID      = "aaaaaaaa-0000-0000-0000-000000000001"
	objectID      = "aaaaaaaa-0000-0000-0000-00000000000a"
	clientSecret  = "the-s3cret-of-the-test"
	networkTenant = "bbbbbbbb-0000-0000-0000-000000000000"
	networkSub    = "00000000-0000-0000-0000-00000000000b"
	machinesGroup = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg")
	networkGroup  = azure.ID("/subscriptions/" + networkSub + "/resourceGroups/rg")
	scaleSet      = machinesGroup + "/providers/Microsoft.Compute/virtualMachineScaleSets/nodes0"
)

type object = map[string]any

// layTenants creates a cluster with machines in one tenant and the network in another. Its service
// principal has exactly the rights of the table in each tenant, except those in without.
func layTenants(t *testing.T, c cloudconfig.Config, without ...string) *testkit.SignIn {
	t.Helper()
	w := testkit.NewSignIn(t, core.Options{
		Subscriptions: []core.Subscription{{ID: networkSub, Tenant: networkTenant}},
	}, token.Config{Applications: []token.Application{{ClientID: clientID, ObjectID: objectID, Secrets: []string{clientSecret}}}}, "")
	w.Put(t, machinesGroup, object{"location": "eastus"})
	w.Put(t, networkGroup, object{"location": "eastus"})
	w.Put(t, networkGroup.Resource(network.SecurityGroups, "nsg"), object{"location": "eastus"})
	vnet := networkGroup.Resource(network.VirtualNetworks, "vnet")
	w.Put(t, vnet, object{"location": "eastus", "properties": object{
		"addressSpace": object{"addressPrefixes": []string{"10.240.0.0/16"}},
		"subnets": []object{{"name": "nodes", "properties": object{
			"addressPrefix": "10.240.0.0/16", "networkSecurityGroup": object{"id": networkGroup.Resource(network.SecurityGroups, "nsg")},
		}}},
	}})
	w.Put(t, scaleSet, object{
		"location": "eastus", "sku": object{"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 2},
		"properties": object{
			"orchestrationMode": "Uniform", "upgradePolicy": object{"mode": "Manual"},
			"virtualMachineProfile": object{
				"osProfile": object{"computerNamePrefix": "nodes0-", "adminUsername": "kaz",
					"linuxConfiguration": object{"disablePasswordAuthentication": true}},
				"storageProfile": object{
					"osDisk":         object{"createOption": "FromImage", "managedDisk": object{"storageAccountType": "Premium_LRS"}},
					"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
				},
				"networkProfile": object{"networkInterfaceConfigurations": []object{{"name": "nic", "properties": object{
					"primary": true,
					"ipConfigurations": []object{{"name": "ipconfig",
						"properties": object{"subnet": object{"id": vnet.Child("subnets", "nodes")}, "primary": true}}},
				}}}},
			},
		},
	})
	actions := map[azure.ID][]string{}
	places := placesOf(c)
	for _, n := range rights.Needed(append(featuresOf(c), rights.Zones)...) {
		at := places[n.Scope].Group
		if n.Scope == rights.NetworkSubscription {
			at = azure.SubscriptionID(networkSub)
		}
		if at != "" && !slices.Contains(actions[at], n.Action) && !slices.Contains(without, n.Action) {
			actions[at] = append(actions[at], n.Action)
		}
	}
	for at, all := range actions {
		w.Grant(t, objectID, at, all...)
	}
	return w
}

func tenantsConfig(t *testing.T, own ...object) cloudconfig.Config {
	t.Helper()
	all := object{
		"tenantId": core.DefaultTenant, "subscriptionId": core.DefaultSubscription,
		"networkResourceTenantID": networkTenant, "networkResourceSubscriptionID": networkSub,
		"aadClientId": clientID, "aadClientSecret": clientSecret,
		"resourceGroup": "rg", "location": "eastus", "vnetName": "vnet", "subnetName": "nodes",
		"securityGroupName": "nsg", "routeTableName": "rt",
	}
	for _, o := range own {
		maps.Copy(all, o)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c, err := source{cluster: "kubernetes"}.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNetworkOfAnotherTenant has machines in one tenant, and load balancer, public IP, security group
// and routes in another. Each request uses the identity of its tenant, with exactly the rights of the
// table.
func TestNetworkOfAnotherTenant(t *testing.T) {
	for _, pool := range []cloudconfig.BackendPoolType{cloudconfig.PoolNodeIPConfiguration, cloudconfig.PoolNodeIP} {
		t.Run(string(pool), func(t *testing.T) { networkOfAnotherTenant(t, pool) })
	}
}

func networkOfAnotherTenant(t *testing.T, pool cloudconfig.BackendPoolType) {
	c := tenantsConfig(t, object{"loadBalancerBackendPoolConfigurationType": pool})
	w := layTenants(t, c)
	cloud, lacks,
		err := openCloud(t.Context(), c, access.ClientOptions{Transport: w, Registerer: prometheus.NewRegistry()}, asItIs,
		newMissingRights())
	if err != nil || lacks != nil {
		t.Fatalf("missing rights: %v, %v", lacks, err)
	}
	client := fake.NewClientset()
	names := addNodes(t, w, client)
	serve(t, cloud, client)

	ingress := addressOf(t, client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "11112222-0000-0000-0000-000000000000"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}},
		},
	})
	routes, _ := cloud.Routes()
	if err := routes.CreateRoute(t.Context(), "kubernetes", "",
		&framework.Route{TargetNode: types.NodeName(names[0]), DestinationCIDR: "10.244.1.0/24"}); err != nil {
		t.Error(err)
	}
	w.Look(func(world behaviour.World) {
		for _, id := range []azure.ID{networkGroup.Resource(network.LoadBalancers, "kubernetes"),
			networkGroup.Resource(network.RouteTables, "rt")} {
			if _, ok := world.Get(id); !ok {
				t.Errorf("there is no %s", id)
			}
		}
		found := false
		for _, ip := range world.List(networkGroup, network.PublicIPAddresses) {
			found = found || behaviour.Text(ip, "properties.ipAddress") == ingress
		}
		if !found {
			t.Errorf("no public IP of the network's tenant has the address %s", ingress)
		}
		addresses := 0
		lb, _ := world.Get(networkGroup.Resource(network.LoadBalancers, "kubernetes"))
		for _, p := range behaviour.Objects(lb, "properties.backendAddressPools") {
			addresses += len(behaviour.Objects(p, "properties.loadBalancerBackendAddresses"))
		}
		if pool == cloudconfig.PoolNodeIP && addresses == 0 {
			t.Error("the pool lists no addresses")
		}
		nsg, _ := world.Get(networkGroup.Resource(network.SecurityGroups, "nsg"))
		if rules := behaviour.Objects(nsg, "properties.securityRules"); len(rules) == 0 {
			t.Error("the security group allows no source")
		}
		for id, vm := range world.List(scaleSet, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines") {
			text, _ := json.Marshal(vm)
			if pool == cloudconfig.PoolNodeIPConfiguration &&
				!strings.Contains(strings.ToLower(string(text)), strings.ToLower(string(networkGroup))+
					"/providers/microsoft.network/loadbalancers/kubernetes/backendaddresspools/") {
				t.Errorf("%s is not in the pool", id)
			}
		}
	})
}

func asItIs(client reconcile.Azure) reconcile.Azure { return client }

// TestMissingRights checks that a missing right is in the metric and in an event and the program
// continues. If all rights are missing, the program ends.
func TestMissingRights(t *testing.T) {
	c := tenantsConfig(t)
	w := layTenants(t, c, "Microsoft.Network/routeTables/write", "Microsoft.Network/loadBalancers/delete")
	missing := newMissingRights()
	cloud, lacks, err := openCloud(t.Context(), c, access.ClientOptions{Transport: w}, asItIs, missing)
	if err != nil {
		t.Fatal(err)
	}
	cloud.Close()
	want := `
		# HELP kaz_azure_rights_missing 1 for each right that was found missing when the cloud configuration was read.
		# TYPE kaz_azure_rights_missing gauge
		kaz_azure_rights_missing{action="Microsoft.Network/loadBalancers/delete",scope="` + string(networkGroup) + `"} 1
		kaz_azure_rights_missing{action="Microsoft.Network/routeTables/write",scope="` + string(networkGroup) + `/providers/Microsoft.Network/routeTables/rt"} 1
	`
	if err := testutil.CollectAndCompare(missing, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	events := record.NewFakeRecorder(10)
	(&notices{recorder: events, about: &corev1.ObjectReference{Kind: "Lease"}}).missing(lacks)
	for _, words := range []string{"Microsoft.Network/loadBalancers/delete", "Microsoft.Network/routeTables/write"} {
		if event := <-events.Events; !strings.Contains(event, reasonRights) || !strings.Contains(event, words) {
			t.Errorf("event %q, want one of %s", event, words)
		}
	}
	all := actionsOf(rights.Needed())
	_, _, err = openCloud(t.Context(), c, access.ClientOptions{Transport: layTenants(t, c, all...)}, asItIs, missing)
	if err == nil || !strings.Contains(err.Error(), "no azure access") {
		t.Errorf("without any rights: %v", err)
	}
}

func actionsOf(needs []rights.Need) []string {
	var all []string
	for _, n := range needs {
		all = append(all, n.Action)
	}
	return all
}

// addNodes creates Nodes for the instances and returns their names.
func addNodes(t *testing.T, w *testkit.SignIn, client *fake.Clientset) []string {
	t.Helper()
	var names []string
	w.Look(func(world behaviour.World) {
		for id, vm := range world.List(scaleSet, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines") {
			provider, err := nodes.ProviderID(id)
			if err != nil {
				t.Fatal(err)
			}
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(behaviour.Text(vm, "properties.osProfile.computerName"))},
				Spec:       corev1.NodeSpec{ProviderID: provider, PodCIDRs: []string{"10.244.1.0/24"}},
				Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.240.0.4"}}},
			}
			if err := client.Tracker().Add(n); err != nil {
				t.Fatal(err)
			}
			names = append(names, n.Name)
		}
	})
	if len(names) != 2 {
		t.Fatalf("nodes %q", names)
	}
	return names
}

// serve runs the service controller until the test ends.
func serve(t *testing.T, cloud *cloudprovider.Cloud, client *fake.Clientset) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactory(client, 0)
	cloud.SetInformers(factory)
	controller, err := cloud.Services("kubernetes", service.Config{Classes: service.Classes{""}, Syncs: 4}, service.Deps{
		Client: client, Informers: factory, Events: &record.FakeRecorder{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		stop()
		cloud.Close()
		running.Wait()
		factory.Shutdown()
	})
}

// addressOf creates a Service and waits for its address.
func addressOf(t *testing.T, client *fake.Clientset, s *corev1.Service) string {
	t.Helper()
	watched, err := client.CoreV1().Services(s.Namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	if _, err := client.CoreV1().Services(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := time.After(patience)
	for {
		select {
		case event := <-watched.ResultChan():
			if now, ok := event.Object.(*corev1.Service); ok && len(now.Status.LoadBalancer.Ingress) > 0 {
				return now.Status.LoadBalancer.Ingress[0].IP
			}
		case <-limit:
			t.Fatal("the Service has no address")
		}
	}
}
