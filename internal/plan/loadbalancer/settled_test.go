package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// dualProfile is an interface with an address of each family.
var dualProfile = strings.Replace(profile, `"ipConfigurations":[`,
	`"ipConfigurations":[{"name":"ipconfig6","properties":{"privateIPAddressVersion":"IPv6"}},`, 1)

// TestMembersOfPoolsAreReadFromLoadBalancers checks a decision from the load balancers' documents, with any members in
// the pools. It is the same as if all instances were known. No instance needs to be read once all members are in their
// places. subscription.commit checks that both are the same.
func TestMembersOfPoolsAreReadFromLoadBalancers(t *testing.T) {
	const sets, each = 2, 2
	rapid.Check(t, func(t *rapid.T) {
		w := newSubscription(0)
		in := loadbalancer.Input{Config: config(), Complete: true}
		for i := range sets {
			set := azure.ID(fmt.Sprintf("%s%d", vmss, i))
			w.put(set, parse(string(text(w.docs[azure.ID(vmss).Key()]))))
			sub(sub(w.docs[set.Key()], "properties"), "virtualMachineProfile")["networkProfile"] = parse(dualProfile)
			if rapid.IntRange(0, 5).Draw(t, "windows") == 0 {
				sub(sub(sub(w.docs[set.Key()], "properties"), "virtualMachineProfile"),
					"storageProfile")["osDisk"] = object{"osType": "Windows"}
				sub(sub(sub(w.docs[set.Key()], "properties"), "virtualMachineProfile"),
					"storageProfile")["imageReference"] = object{"id": "/x/images/windows-2019-containerd/versions/17763.1.2"}
			}
			for k := range each {
				vm := set.Child("virtualMachines", fmt.Sprint(k))
				power := rapid.SampledFrom([]string{"running", "running", "deallocated"}).Draw(t, "power")
				w.put(vm, parse(`{"location":"westeurope","sku":{"name":"Standard_D2s_v3"},"properties":{"hardwareProfile":{},"networkProfileConfiguration":`+dualProfile+`,
					"instanceView":{"statuses":[{"code":"PowerState/`+power+`"}]}}}`))
				in.Nodes = append(in.Nodes, &v1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("np%d-%d", i, k)},
					Spec:       v1.NodeSpec{ProviderID: "azure://" + string(vm)},
				})
			}
		}
		delete(w.docs, azure.ID(vmss).Key())
		for _, name := range []string{"a", "b"} {
			in.Services = append(in.Services, loadbalancer.Service{Service: genService(t, name)})
		}
		settle(t, w, in)

		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			in.DeletedNodes = nil
			var nodes []*v1.Node
			for _, n := range in.Nodes {
				n.Labels = nil
				switch rapid.IntRange(0, 5).Draw(t, n.Name) {
				case 0:
					n.Labels = map[string]string{v1.LabelNodeExcludeBalancers: "true"}
				case 1:
					n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
				case 2:
					in.DeletedNodes = append(in.DeletedNodes, azure.ID(strings.TrimPrefix(n.Spec.ProviderID, "azure://")))
					continue
				}
				nodes = append(nodes, n)
			}
			in.Nodes = nodes
			for _, key := range slices.Sorted(maps.Keys(w.docs)) { // members are put into other pools by hand
				id := azure.ID(key)
				if !strings.Contains(key, "/virtualmachinescalesets/") || rapid.IntRange(0, 3).Draw(t, "by hand "+id.Name()) > 0 {
					continue
				}
				var in []any
				for _, lb := range []string{lbID, innerID} {
					if pool := lb + "/backendAddressPools/kubernetes"; w.dangling(id, object{"pool": pool}) == "" &&
						rapid.Bool().Draw(t, "in") {
						in = append(in, ref(azure.ID(pool)))
					}
				}
				ipConfiguration(w.docs[key], false)["loadBalancerBackendAddressPools"] = in
				w.put(azure.ID(w.docs[key]["id"].(string)), w.docs[key])
			}
			for i := range in.Services {
				in.Services[i].Gone = rapid.IntRange(0, 3).Draw(t, "gone") == 0
			}
			settle(t, w, in)
		}
	})
}

// TestAPoolIsNotEmptiedForTheSakeOfWindows checks that nodes that cannot be in a pool do not count there. The last
// members that can be in it stay, though they are excluded.
func TestAPoolIsNotEmptiedForTheSakeOfWindows(t *testing.T) {
	w := newSubscription(0)
	in := loadbalancer.Input{Config: config(), Complete: true}
	for i, storage := range []string{`{"osDisk":{"osType":"Linux"}}`,
		`{"osDisk":{"osType":"Windows"},"imageReference":{"id":"/x/images/windows-2019-containerd/versions/17763.1.2"}}`} {
		set := azure.ID(fmt.Sprintf("%s%d", vmss, i))
		w.put(set, parse(`{"location":"westeurope","properties":{"virtualMachineProfile":{"storageProfile":`+storage+`,"networkProfile":`+
			dualProfile+`}}}`))
		vm := set.Child("virtualMachines", "0")
		w.put(vm, parse(`{"location":"westeurope","properties":{"hardwareProfile":{},"networkProfileConfiguration":`+dualProfile+`}}`))
		in.Nodes = append(in.Nodes,
			&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: set.Name()}, Spec: v1.NodeSpec{ProviderID: "azure://" + string(vm)}})
	}
	s := service("a", tcp(80, 30080))
	s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	in.Services = []loadbalancer.Service{{Service: s}}
	play := func() {
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
	}
	play()
	in.Nodes[0].Labels = map[string]string{v1.LabelNodeExcludeBalancers: "true"}
	play()
	w.settle()
	members := map[string]string{}
	for _, pool := range children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "backendAddressPools") {
		for _, c := range children(sub(pool, "properties"), "backendIPConfigurations") {
			members[pool["name"].(string)] += azure.ID(c["id"].(string)).Parent().Parent().Parent().Name() + " "
		}
	}
	if want := map[string]string{"kubernetes": "np1 ", "kubernetes-IPv6": "np0 "}; !maps.Equal(members, want) {
		t.Errorf("in the pools are %v, want %v", members, want)
	}
}

// TestALoadBalancerOfTheLastGuestGoes checks the last Service of a load balancer that is not configured any more, at
// another Service's frontend. The members of that load balancer leave it first.
func TestALoadBalancerOfTheLastGuestGoes(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	in.Config.LoadBalancerName = "old"
	api, web := service("api", tcp(81, 30081)), service("web", tcp(80, 30080)) // the first one's is the frontend
	for _, s := range []*v1.Service{web, api} {
		s.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: "10.0.9.9"}
	}
	w := linkedSubscription(t, in, api, web)
	play := func(s *v1.Service, others ...*v1.Service) {
		t.Helper()
		in.Services, in.Others = []loadbalancer.Service{{Service: s, Gone: true}}, others
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
	}
	play(api, web)
	in.Config.LoadBalancerName = "kubernetes"
	play(web)
	if text := w.everyone(); strings.Contains(text, "old-internal") {
		t.Errorf("there is %s", text)
	}
}
