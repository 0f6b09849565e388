package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/network"
	"kaz/internal/component/access"
	"kaz/internal/localazure/behaviour"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// shadowed plays one round beside the controllers of a cluster.
func shadowed(t *testing.T, c *checked) *plan.Report {
	t.Helper()
	r, err := readersWith(t.Context(), c.client, Cluster{CloudConfig: writeFile(t, azureJSON(t, c.keys)), Name: "kubernetes"}, nothing,
		access.ClientOptions{Transport: c.azure, ThrottleWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	b := r.beside(Cluster{Name: "kubernetes"})
	defer b.Close()
	return shadow.Run(t.Context(), b.Sources, shadow.Options{Every: time.Minute, Say: func(string) {}})
}

// differences returns the writes of a kind, by object.
func differences(r *plan.Report, kind string) map[string]string {
	all := map[string]string{}
	for _, k := range r.Kinds {
		for _, d := range k.Differences {
			if k.Name == kind {
				all[d.Object] = strings.Join(append(d.Writes, d.Refused), "\n")
			}
		}
	}
	return all
}

// TestShadow is beside controllers that serve a Service and have neither labelled the Nodes nor made their routes. It sees that, and what
// another writer does to the load balancer, and writes nothing.
func TestShadow(t *testing.T) {
	c := layChecked(t)
	c.client.ClearActions()
	report := shadowed(t, c)
	if got := differences(report, "Services"); len(got) > 0 || report.Unknown() {
		t.Errorf("a Service that is served: %v\n%s", got, report)
	}
	nodes := differences(report, "nodes")
	if len(nodes) != 2 {
		t.Errorf("nodes without labels: %v", nodes)
	}
	for name, writes := range nodes {
		if !strings.Contains(writes, `label node.kubernetes.io/instance-type is "", and kaz sets "Standard_D2s_v5"`) {
			t.Errorf("node %s: %s", name, writes)
		}
	}
	for name, writes := range differences(report, "routes") {
		if !strings.Contains(writes, "create or change the route to 10.244.1.0/24") {
			t.Errorf("routes of %s: %s", name, writes)
		}
	}
	if err := c.azure.World.Do(func(w behaviour.World) error {
		w.Edit(networkGroup.Resource(network.LoadBalancers, "kubernetes"), func(doc behaviour.Object) {
			properties := behaviour.Sub(doc, "properties")
			properties["probes"], properties["loadBalancingRules"] = []any{}, []any{}
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := differences(shadowed(t, c), "Services")["default/web"]; !strings.Contains(got, "loadBalancers/kubernetes") {
		t.Errorf("a Service without its rule: %q", got)
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

// TestShadowWithoutRights says what cannot be read, and decides about the rest.
func TestShadowWithoutRights(t *testing.T) {
	report := shadowed(t, layChecked(t, "Microsoft.Network/routeTables/read"))
	if !report.Unknown() || len(differences(report, "nodes")) != 2 || !strings.Contains(report.String(), "routes: not read: ") {
		t.Errorf("%s", report)
	}
}

// TestShadowReadsAgain reads Services in each round: one that is made after the first round is in the second.
func TestShadowReadsAgain(t *testing.T) {
	c := layChecked(t)
	r, err := readersWith(t.Context(), c.client, Cluster{CloudConfig: writeFile(t, azureJSON(t, c.keys)), Name: "kubernetes"}, nothing,
		access.ClientOptions{Transport: c.azure, ThrottleWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	b := r.beside(Cluster{Name: "kubernetes"})
	defer b.Close()
	sees := func() bool {
		verdicts, err := b.Sources[0].Decide(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(verdicts, func(v plan.Verdict) bool { return v.Object == "default/later" && len(v.Writes) > 0 })
	}
	if sees() {
		t.Error("a Service is seen before it is there")
	}
	later := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "later", UID: "33334444-0000-0000-0000-000000000000"}}
	later.Spec.Type, later.Spec.IPFamilies = corev1.ServiceTypeLoadBalancer, []corev1.IPFamily{corev1.IPv4Protocol}
	later.Spec.Ports = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 81, NodePort: 30081}}
	if err := c.client.Tracker().Add(later); err != nil {
		t.Fatal(err)
	}
	if !sees() {
		t.Error("a Service that is made after the first round is not seen")
	}
}
