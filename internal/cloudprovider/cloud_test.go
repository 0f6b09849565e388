package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	framework "k8s.io/cloud-provider"
	"k8s.io/klog/v2"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider"
	"kaz/internal/emulator"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	quiet := slog.New(slog.DiscardHandler)
	slog.SetDefault(quiet)
	klog.SetSlogLogger(quiet) // before anything runs: it is a global of klog
	goleak.VerifyTestMain(m)
}

// world is a cloud provider on a local Azure, with the Nodes of a scale set.
type world struct {
	*testkit.Azure
	cloud  *cloudprovider.Cloud
	client *fake.Clientset
	uids   map[string]types.UID
}

func newWorld(t *testing.T, o emulator.Options, count int) *world {
	t.Helper()
	return newWorldWith(t, o, count, func(*loadbalancer.Config) {})
}

// newWorldWith is newWorld with another configuration of load balancers.
func newWorldWith(t *testing.T, o emulator.Options, count int, change func(*loadbalancer.Config)) *world {
	t.Helper()
	w := &world{Azure: testkit.NewAzure(t, o, count), client: fake.NewClientset(), uids: map[string]types.UID{}}
	config := cloudprovider.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		LoadBalancer: loadbalancer.Config{
			Location: testkit.Location, Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			NetworkSubscription: testkit.Subscription, LoadBalancerResourceGroup: testkit.ResourceGroup,
			SecurityGroupName: testkit.SecurityGroup.Name(), SecurityGroupResourceGroup: testkit.ResourceGroup,
			Zones: []string{"1", "2", "3"}, VirtualNetwork: testkit.VNet.Name(), VirtualNetworkResourceGroup: testkit.ResourceGroup, Subnet: "nodes",
			PrivateLinkResourceGroup: testkit.ResourceGroup,
		},
	}
	change(&config.LoadBalancer)
	w.cloud = cloudprovider.New(config, w.Door)
	t.Cleanup(w.cloud.Close)
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		w.addNode(t, vm)
	}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	w.cloud.SetInformers(factory)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	return w
}

func (w *world) addNode(t *testing.T, vm azure.Resource[compute.Instance]) *corev1.Node {
	t.Helper()
	id, err := nodes.ProviderID(vm.ID)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.NodeName(vm)}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, card := range testkit.List[network.Interface](w.Azure, vm.ID, compute.ScaleSetInstances+"/networkInterfaces") {
		for _, c := range card.Properties.IPConfigurations {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: c.Properties.PrivateIPAddress})
		}
	}
	if len(node.Status.Addresses) == 0 {
		t.Fatalf("%s has no address", node.Name)
	}
	if _, err := w.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return node
}

// env lets the scenarios drive the cloud provider as the framework does.
func (w *world) env() testkit.Env {
	return testkit.Env{
		Azure: w.Door.Fresh(), Group: testkit.Group, SecurityGroup: testkit.SecurityGroup,
		ScaleSets: []azure.ID{testkit.Nodes}, ClusterName: testkit.ClusterName,
		Serve: w.serve, Remove: w.remove,
	}
}

func (w *world) serve(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	s = s.DeepCopy()
	key := s.Namespace + "/" + s.Name
	if w.uids[key] == "" {
		w.uids[key] = types.UID(fmt.Sprintf("3d2c1b0a-1111-2222-3333-%012x", len(w.uids)<<4))
	}
	s.UID = w.uids[key]
	balancers, _ := w.cloud.LoadBalancer()
	status, err := balancers.EnsureLoadBalancer(ctx, testkit.ClusterName, s, nil)
	if err != nil {
		return nil, err
	}
	s.Status.LoadBalancer = *status
	return s, nil
}

func (w *world) remove(ctx context.Context, s *corev1.Service) error {
	balancers, _ := w.cloud.LoadBalancer()
	return balancers.EnsureLoadBalancerDeleted(ctx, testkit.ClusterName, s)
}

func port(n int32) corev1.ServicePort {
	return corev1.ServicePort{Protocol: corev1.ProtocolTCP, Port: n, NodePort: 30000 + n}
}

func TestExternalService(t *testing.T) {
	for name, o := range map[string]emulator.Options{
		"at once":                   {},
		"with the latency of Azure": {Latency: 1, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				testkit.ExternalService(t, newWorld(t, o, 3).env())
			})
		})
	}
}

func TestServingAgainWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		s, err := w.serve(t.Context(), testkit.NewService("web", port(80)))
		if err != nil {
			t.Fatal(err)
		}
		w.Forget()
		balancers, _ := w.cloud.LoadBalancer()
		if err := balancers.UpdateLoadBalancer(t.Context(), testkit.ClusterName, s, nil); err != nil {
			t.Fatal(err)
		}
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("nothing changed and yet written: %v", writes)
		}
	})
}

func TestManyServicesShareTheWritesOfTheirDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = 100
		w := newWorld(t, emulator.Options{Latency: 1}, 3)
		var mu sync.Mutex
		addresses := map[string]bool{}
		var callers sync.WaitGroup
		for i := range services {
			s := testkit.NewService(fmt.Sprintf("web-%d", i), port(80))
			s.UID = types.UID(fmt.Sprintf("aaaaaaaa-1111-2222-3333-%012x", i<<4))
			callers.Go(func() {
				balancers, _ := w.cloud.LoadBalancer()
				status, err := balancers.EnsureLoadBalancer(t.Context(), testkit.ClusterName, s, nil)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", s.Name, err)
					return
				}
				addresses[status.Ingress[0].IP] = true
			})
		}
		callers.Wait()
		if len(addresses) != services {
			t.Errorf("%d addresses for %d Services", len(addresses), services)
		}
		count := map[string]int{}
		for _, line := range w.Writes() {
			count[strings.Fields(line)[1]]++
		}
		if count[testkit.ClusterName] > 3 || count["nsg"] > 3 {
			t.Errorf("%d writes of the load balancer and %d of the security group for %d Services", count[testkit.ClusterName], count["nsg"], services)
		}
	})
}

func TestBadServiceLeavesItsNeighboursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		bad := testkit.NewService("bad", port(80))
		bad.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "1000"}
		_, err := w.serve(t.Context(), bad)
		if err == nil || !strings.Contains(err.Error(), "azure-load-balancer-tcp-idle-timeout") || !strings.Contains(err.Error(), "1000") {
			t.Errorf("bad annotation: %v, want an error that names key and value", err)
		}
		if _, err := w.serve(t.Context(), testkit.NewService("good", port(80))); err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	})
}

// When Azure gives no address to one Service, the others of the same commit get theirs.
func TestServiceWithoutAnAddressLeavesItsNeighboursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{Latency: 1, Faults: []emulator.Fault{{
			Method: "PUT", Type: network.PublicIPAddresses, Name: "kubernetes-aaaaaaaaa11112222333300000000003",
			Fault: "error", Status: 400, Code: "PublicIPCountLimitReached",
		}}}, 1)
		errs := make([]error, 8)
		var callers sync.WaitGroup
		for i := range errs {
			s := testkit.NewService(fmt.Sprintf("web-%d", i), port(80))
			s.UID = types.UID(fmt.Sprintf("aaaaaaaa-1111-2222-3333-%012x", i<<4))
			callers.Go(func() {
				balancers, _ := w.cloud.LoadBalancer()
				_, errs[i] = balancers.EnsureLoadBalancer(t.Context(), testkit.ClusterName, s, nil)
			})
		}
		callers.Wait()
		for i, err := range errs {
			if i == 3 && azure.KindOf(err) != azure.Quota {
				t.Errorf("the one without an address: %v", err)
			}
			if i != 3 && err != nil {
				t.Errorf("web-%d: %v", i, err)
			}
		}
	})
}

// The local Azure judges what annotations ask for; and when everything is as asked
// for, serving again writes nothing.
func TestServiceScenarios(t *testing.T) {
	shared := &loadbalancer.SharedProbe{Port: 10256, Path: "/healthz"}
	for name, change := range map[string]func(*loadbalancer.Config){
		"interfaces":   func(*loadbalancer.Config) {},
		"addresses":    func(c *loadbalancer.Config) { c.PoolByIP = true },
		"shared probe": func(c *loadbalancer.Config) { c.PoolByIP, c.SharedProbe = true, shared },
	} {
		for _, scenario := range testkit.ServiceScenarios() {
			t.Run(name+"/"+scenario.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorldWith(t, emulator.Options{}, 2, change)
					scenario.Play(t, w.env(), w.Azure)
				})
			})
		}
	}
}

// Services are spread over two load balancers, move between them with their addresses
// and leave nothing.
func TestSeveralLoadBalancers(t *testing.T) {
	several := func(c *loadbalancer.Config) {
		c.PoolByIP = true
		c.Balancers = []loadbalancer.Balancer{{Name: testkit.ClusterName, AllowPlacement: true, PrimaryVMSet: testkit.ScaleSet}, {Name: "lb2", AllowPlacement: true, PrimaryVMSet: "other"}}
	}
	for _, scenario := range slices.Concat(testkit.ServiceScenarios(), testkit.SeveralScenarios()) {
		if slices.ContainsFunc(scenario.Turns, func(turn testkit.Turn) bool { return strings.Contains(turn.Refused, "IPv6") }) {
			continue // its families are at one load balancer
		}
		t.Run(scenario.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldWith(t, emulator.Options{}, 2, several)
				scenario.Play(t, w.env(), w.Azure)
			})
		})
	}
}

func TestMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		machines, _ := w.cloud.InstancesV2()
		// As a kubelet registers: without a provider id.
		got, err := machines.InstanceMetadata(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-000001"}})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", "1"))
		if got.ProviderID != id || got.InstanceType != "Standard_D2s_v5" || got.Region != "westeurope" || !strings.HasPrefix(got.Zone, "westeurope-") {
			t.Errorf("%+v", got)
		}
		var kinds []corev1.NodeAddressType
		for _, a := range got.NodeAddresses {
			kinds = append(kinds, a.Type)
		}
		if !slices.Equal(kinds, []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName}) {
			t.Errorf("addresses %v", got.NodeAddresses)
		}
		_, err = machines.InstanceMetadata(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-00zzzz"}})
		if !errors.Is(err, framework.InstanceNotFound) {
			t.Errorf("a node without a machine: %v", err)
		}
	})
}

func TestMachinesThatGoAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 3)
		machines, _ := w.cloud.InstancesV2()
		node := func(instance string) *corev1.Node {
			id, err := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", instance))
			if err != nil {
				t.Fatal(err)
			}
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-00000" + instance}, Spec: corev1.NodeSpec{ProviderID: id}}
		}
		expect := func(instance string, exists, off bool) {
			t.Helper()
			gotExists, err := machines.InstanceExists(t.Context(), node(instance))
			if err != nil || gotExists != exists {
				t.Errorf("instance %s exists: %v, %v", instance, gotExists, err)
			}
			gotOff, err := machines.InstanceShutdown(t.Context(), node(instance))
			if err != nil || gotOff != off {
				t.Errorf("instance %s is off: %v, %v", instance, gotOff, err)
			}
		}
		expect("0", true, false)
		if err := w.Door.Delete(t.Context(), testkit.Nodes.Child("virtualMachines", "0")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Door.Post(t.Context(), testkit.Nodes.Child("virtualMachines", "1"), "deallocate", nil); err != nil {
			t.Fatal(err)
		}
		expect("0", false, false)
		expect("1", true, true)
		expect("2", true, false)

		elsewhere := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-1"}}
		if exists, err := machines.InstanceExists(t.Context(), elsewhere); err != nil || !exists {
			t.Errorf("a node of somebody else's: %v, %v", exists, err)
		}
	})
}
