package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func shadowObjects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, shadowFolder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// allKinds are values with which kaz shadow compares all kinds.
func allKinds(readSecrets bool) map[string]any {
	const gateway = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/gate"
	return map[string]any{
		"nodeGroups": map[string]any{"named": []any{"1:3:pool"}, "discovery": []any{"label:a=b"}},
		"gateway":    map[string]any{"id": gateway, "adoptAGIC": true, "readSecrets": readSecrets},
		"names":      map[string]any{"zoneResourceGroups": []any{"dns", "/subscriptions/s/resourceGroups/g"}, "owner": "prod"},
	}
}

// TestShadowObjects checks which objects the values create.
func TestShadowObjects(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		want   map[string]int
	}{
		"defaults": {nil, map[string]int{"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Deployment": 1, "NetworkPolicy": 1}},
		"objects of the user": {map[string]any{
			"serviceAccount": map[string]any{"create": false}, "rbac": map[string]any{"create": false},
			"networkPolicy": map[string]any{"enabled": false},
		}, map[string]int{"Deployment": 1}},
	} {
		got := map[string]int{}
		for _, o := range shadowObjects(t, c.values) {
			got[o.Kind]++
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestShadowRights checks that the pod can read what it compares, and can write nothing. It reads Secrets only if it is asked to.
func TestShadowRights(t *testing.T) {
	always := slices.Concat(
		can("get list watch", "nodes", "persistentvolumes", "storage.k8s.io/volumeattachments"),
		can("list", "services", "namespaces", "discovery.k8s.io/endpointslices", "persistentvolumeclaims", "storage.k8s.io/storageclasses"))
	const api = "gateway.networking.k8s.io/"
	further := slices.Concat(
		can("get", "configmaps", "configmaps cluster-autoscaler-status", "namespaces kube-system"),
		can("list", "pods", "networking.k8s.io/ingresses", "networking.k8s.io/ingressclasses",
			"appgw.ingress.azure.io/azureapplicationgatewayrewrites", "appgw.ingress.k8s.io/azureingressprohibitedtargets",
			api+"gatewayclasses", api+"gateways", api+"listenersets", api+"httproutes", api+"tcproutes", api+"tlsroutes", api+"referencegrants",
			api+"backendtlspolicies"))
	for name, c := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"defaults":     {nil, always},
		"all kinds":    {allKinds(false), slices.Concat(always, further)},
		"with Secrets": {allKinds(true), slices.Concat(always, further, can("list", "secrets"))},
	} {
		slices.Sort(c.want)
		if got := rights(t, shadowFolder, c.values, "kaz-shadow"); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}

// TestShadowPod checks that the container has no rights on the machine, and the arguments of all kinds.
func TestShadowPod(t *testing.T) {
	p := shadowObjects(t, allKinds(true))["Deployment kaz-shadow"].Spec.Template.Spec
	if p.HostNetwork || p.SecurityContext.RunAsNonRoot == nil || !*p.SecurityContext.RunAsNonRoot {
		t.Errorf("pod %+v", p.SecurityContext)
	}
	c := p.Containers[0]
	if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil ||
		*s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("container %+v", s)
	}
	for _, want := range []string{
		"--nodes=1:3:pool", "--node-group-auto-discovery=label:a=b", "--adopt-agic=true", "--txt-owner-id=prod",
		"--zone-resource-group=dns,/subscriptions/s/resourceGroups/g",
	} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("arguments %q, want %s", c.Args, want)
		}
	}
	if args := shadowObjects(t, set("output", "markdown"))["Deployment kaz-shadow"].Spec.Template.Spec.Containers[0].Args; !slices.Contains(
		args, "--markdown") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--output") }) {
		t.Errorf("markdown: %q", args)
	}
}

// TestShadowMistakes checks that wrong values are refused.
func TestShadowMistakes(t *testing.T) {
	for want, values := range map[string]map[string]any{
		"cloudConfig and cloudConfigSecretName are both empty":     set("cloudConfig", ""),
		"names.owner is set and names.zoneResourceGroups is empty": set("names.owner", "prod"),
		"/skip/0": set("skip", []any{"pods"}),
		"/every":  set("every", "often"),
	} {
		if _, err := render(loadFrom(t, shadowFolder), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
