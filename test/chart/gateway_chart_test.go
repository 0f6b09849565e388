package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const gatewayController = "Deployment application-gateway-controller"

func gatewayObjects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, gatewayFolder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// alsoNamed returns values with the name of a gateway.
func alsoNamed(more map[string]any) map[string]any {
	all := named()
	maps.Copy(all, more)
	return all
}

// TestGatewayObjects checks which objects the values create.
func TestGatewayObjects(t *testing.T) {
	roles := map[string]int{"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 1, "RoleBinding": 1}
	with := func(more map[string]int) map[string]int {
		all := maps.Clone(roles)
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		values map[string]any
		want   map[string]int
	}{
		"defaults": {nil, with(map[string]int{
			"IngressClass": 1, "Deployment": 1, "NetworkPolicy": 1, "PodDisruptionBudget": 1, "Service": 1,
		})},
		"one replica": {set("replicas", 1), with(map[string]int{"IngressClass": 1, "Deployment": 1, "NetworkPolicy": 1, "Service": 1})},
		"a class of Gateways and no answers": {map[string]any{
			"replicas": 1, "gatewayClass": map[string]any{"create": true}, "answers": map[string]any{"enabled": false},
		}, with(map[string]int{"IngressClass": 1, "GatewayClass": 1, "Deployment": 1, "NetworkPolicy": 1})},
		"objects of the user": {map[string]any{
			"serviceAccount": map[string]any{"create": false}, "rbac": map[string]any{"create": false},
			"ingressClass": map[string]any{"create": false, "name": "mine"},
		}, map[string]int{"Deployment": 1, "NetworkPolicy": 1, "PodDisruptionBudget": 1, "Service": 1}},
	} {
		got := map[string]int{}
		for _, o := range gatewayObjects(t, alsoNamed(c.values)) {
			got[o.Kind]++
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestGatewayRights checks that the pod has what the program needs, and nothing else: in all namespaces, or in those of the Ingresses.
func TestGatewayRights(t *testing.T) {
	in := func(namespace string, all []string) []string {
		for i := range all {
			all[i] += " in " + namespace
		}
		return all
	}
	events := func() []string { return can("create patch", "events") }
	served := func() []string {
		return slices.Concat(events(), can("update", "networking.k8s.io/ingresses/status"), can("patch", "pods/status"),
			can("list watch", "networking.k8s.io/ingresses", "services", "pods", "secrets", "discovery.k8s.io/endpointslices",
				"appgw.ingress.azure.io/azureapplicationgatewayrewrites", "appgw.ingress.k8s.io/azureingressprohibitedtargets"))
	}
	routes := func() []string {
		return slices.Concat(can("list watch", "configmaps", "gateway.networking.k8s.io/gateways", "gateway.networking.k8s.io/httproutes",
			"gateway.networking.k8s.io/referencegrants", "gateway.networking.k8s.io/backendtlspolicies", "gateway.networking.k8s.io/listenersets",
			"gateway.networking.k8s.io/tcproutes", "gateway.networking.k8s.io/tlsroutes"),
			can("update", "gateway.networking.k8s.io/gateways/status", "gateway.networking.k8s.io/listenersets/status", "gateway.networking.k8s.io/httproutes/status",
				"gateway.networking.k8s.io/tcproutes/status", "gateway.networking.k8s.io/tlsroutes/status",
				"gateway.networking.k8s.io/backendtlspolicies/status"))
	}
	classes := slices.Concat(can("list watch", "gateway.networking.k8s.io/gatewayclasses", "namespaces"),
		can("update", "gateway.networking.k8s.io/gatewayclasses/status"))
	ownService := func() []string {
		return in("kube-system", can("list watch", "services application-gateway-controller-answers", "discovery.k8s.io/endpointslices"))
	}
	always := slices.Concat(can("list watch", "networking.k8s.io/ingressclasses"), can("get", "namespaces kube-system"),
		in("kube-system", slices.Concat(can("create", "coordination.k8s.io/leases"),
			can("get update", "coordination.k8s.io/leases application-gateway-controller"))))
	for _, c := range []struct {
		namespaces []any
		ingresses  bool // alone
		want       []string
	}{
		{nil, false, slices.Concat(always, classes, served(), routes())},
		{nil, true, slices.Concat(always, served())},
		{[]any{"shop"}, false, slices.Concat(always, classes, ownService(), in("kube-system", events()), in("shop", slices.Concat(served(), routes())))},
	} {
		slices.Sort(c.want)
		values := alsoNamed(map[string]any{"watchNamespaces": c.namespaces})
		if c.namespaces == nil {
			values = named()
		}
		values["gatewayAPI"] = map[string]any{"enabled": !c.ingresses}
		if got := rights(t, gatewayFolder, values, "application-gateway-controller"); !slices.Equal(got, c.want) {
			t.Errorf("%v:\ngot  %q\nwant %q", c.namespaces, got, c.want)
		}
	}
}

// TestGatewayConfined checks that the container has no rights on the machine.
func TestGatewayConfined(t *testing.T) {
	p := gatewayObjects(t, named())[gatewayController].Spec.Template.Spec
	if p.HostNetwork || p.SecurityContext.RunAsNonRoot == nil || !*p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser == 0 {
		t.Errorf("pod %+v", p.SecurityContext)
	}
	s := p.Containers[0].SecurityContext
	if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("container %+v", s)
	}
}

// TestGatewayFlags checks that the program knows every flag that the chart sets.
func TestGatewayFlags(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "application-gateway-controller.md"))
	if err != nil {
		t.Fatal(err)
	}
	id := "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/a"
	for _, values := range []map[string]any{
		alsoNamed(map[string]any{"watchNamespaces": []any{"a"}, "clusterID": "abc"}),
		{"gateway": map[string]any{"id": id, "furtherIDs": []any{id + "2"}}, "cloudConfig": ""},
	} {
		for _, arg := range gatewayObjects(t, values)[gatewayController].Spec.Template.Spec.Containers[0].Args {
			if flag, _, _ := strings.Cut(arg, "="); flag != "--v" && !strings.Contains(string(page), "| `"+flag+"` |") {
				t.Errorf("the program has no %s", flag)
			}
		}
	}
}
