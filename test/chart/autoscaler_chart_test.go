package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const autoscaler = "Deployment cluster-autoscaler-provider"

func autoscalerObjects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, autoscalerFolder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// alone are values for the provider without cluster-autoscaler.
func alone() map[string]any {
	return map[string]any{
		"clusterAutoscaler": map[string]any{"enabled": false}, "tls": map[string]any{"secretName": "certificates"},
	}
}

// TestAutoscalerObjects checks which objects the values create.
func TestAutoscalerObjects(t *testing.T) {
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
		"defaults":     {nil, with(map[string]int{"ConfigMap": 1, "Deployment": 1, "NetworkPolicy": 1})},
		"two replicas": {set("replicas", 2), with(map[string]int{"ConfigMap": 1, "Deployment": 1, "NetworkPolicy": 1, "PodDisruptionBudget": 1})},
		"the provider alone": {alone(),
			map[string]int{"ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Service": 1, "Deployment": 1,
				"NetworkPolicy": 1}},
		"accounts and roles of the user": {
			map[string]any{"serviceAccount": map[string]any{"create": false}, "rbac": map[string]any{"create": false}},
			map[string]int{"ConfigMap": 1, "Deployment": 1, "NetworkPolicy": 1},
		},
	} {
		got := map[string]int{}
		for _, o := range autoscalerObjects(t, c.values) {
			got[o.Kind]++
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAutoscalerRights checks that the pod has what its containers need, and nothing else. The needs of cluster-autoscaler
// are those of its own chart, without API groups that no longer exist.
func TestAutoscalerRights(t *testing.T) {
	const (
		read    = "get list watch"
		storage = "storage.k8s.io/"
		dynamic = "resource.k8s.io/"
	)
	in := func(namespaced []string) []string {
		for i := range namespaced {
			namespaced[i] += " in kube-system"
		}
		return namespaced
	}
	provider := can("list watch", "nodes")
	upstream := slices.Concat(
		can(read+" update", "nodes"), can("create", "pods/eviction"), can("create patch", "events"),
		can(read, "namespaces", "pods", "services", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes",
			"apps/daemonsets", "apps/replicasets", "apps/statefulsets", "batch/jobs", "batch/cronjobs", storage+"storageclasses",
			storage+"csinodes", storage+"csidrivers", storage+"csistoragecapacities", storage+"volumeattachments",
			dynamic+"deviceclasses", dynamic+"resourceclaims", dynamic+"resourceslices"),
		can("list watch", "policy/poddisruptionbudgets"),
		in(slices.Concat(can("create", "coordination.k8s.io/leases"), can("get update", "coordination.k8s.io/leases cluster-autoscaler"),
			can("create list watch", "configmaps"), can("get update delete", "configmaps cluster-autoscaler-status"),
			can("get", "configmaps cluster-autoscaler-priority-expander"))))
	for name, c := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"both":           {nil, upstream},
		"provider alone": {alone(), provider},
		"an extra rule": {set("rbac.extraRules", []any{map[string]any{
			"apiGroups": []any{"autoscaling.x-k8s.io"}, "resources": []any{"provisioningrequests"}, "verbs": []any{"get"},
		}}), append(can("get", "autoscaling.x-k8s.io/provisioningrequests"), upstream...)},
	} {
		slices.Sort(c.want)
		if got := rights(t, autoscalerFolder, c.values, "cluster-autoscaler-provider"); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}

// TestAutoscalerConfined checks that no container has rights on the machine, or a secret in its arguments.
func TestAutoscalerConfined(t *testing.T) {
	secret := regexp.MustCompile(`(?i)secret|password|token=`)
	for _, values := range []map[string]any{nil, alone()} {
		p := autoscalerObjects(t, values)[autoscaler].Spec.Template.Spec
		if p.HostNetwork || p.SecurityContext.RunAsNonRoot == nil || !*p.SecurityContext.RunAsNonRoot ||
			p.SecurityContext.RunAsUser == 0 || p.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
			t.Errorf("pod %+v", p.SecurityContext)
		}
		for _, c := range p.Containers {
			s := c.SecurityContext
			if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil ||
				*s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("container %+v", s)
			}
			for _, arg := range c.Args {
				if secret.MatchString(arg) {
					t.Errorf("argument %s", arg)
				}
			}
		}
	}
}

// TestAutoscalerFlags checks that the provider knows every flag that the chart sets, and what values change.
func TestAutoscalerFlags(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cluster-autoscaler-provider.md"))
	if err != nil {
		t.Fatal(err)
	}
	args := func(values map[string]any, container int) []string {
		return autoscalerObjects(t, values)[autoscaler].Spec.Template.Spec.Containers[container].Args
	}
	for _, values := range []map[string]any{nil, alone(), set("nodeGroups.named", []any{"1:2:a"})} {
		for _, arg := range args(values, 0) {
			flag, _, _ := strings.Cut(arg, "=")
			if flag != "--v" && !strings.Contains(string(page), "| `"+flag+"` |") {
				t.Errorf("the provider has no %s", flag)
			}
		}
	}
	for _, c := range []struct {
		container  int
		values     map[string]any
		want, lack string
	}{
		{0, nil, "--address=127.0.0.1:8086", "--cert=/etc/autoscaler/server/tls.crt"},
		{0, alone(), "--address=0.0.0.0:8086", "--address=127.0.0.1:8086"},
		{0, alone(), "--ca-cert=/etc/autoscaler/server/ca.crt", ""},
		{0, set("nodeGroups.named", []any{"1:2:a", "0:3:b"}), "--nodes=0:3:b", ""},
		{0, nil, "--node-group-auto-discovery=label:cluster-autoscaler-enabled=true", ""},
		{0, set("cloudConfigSecretName", "azure"), "--cloud-config=/etc/azure/cloud-config", "--cloud-config=/etc/kubernetes/azure.json"},
		{0, set("provider.extraArgs", []any{"--watch-nodes=false"}), "--watch-nodes=false", ""},
		{1, nil, "--cloud-provider=externalgrpc", ""},
		{1, nil, "--leader-elect=true", ""},
		{1, set("clusterAutoscaler.extraArgs", map[string]any{"expander": "least-waste"}), "--expander=least-waste", ""},
	} {
		if got := args(c.values, c.container); !slices.Contains(got, c.want) || slices.Contains(got, c.lack) {
			t.Errorf("%v: %q", c.values, got)
		}
	}
}

// TestAutoscalerConfig checks the cloud configuration of cluster-autoscaler, and that the certificates that it names are
// mounted.
func TestAutoscalerConfig(t *testing.T) {
	type configMap struct {
		Kind string
		Data map[string]string
	}
	read := func(values map[string]any) map[string]string {
		maps := objectsOf[configMap](t, autoscalerFolder, values, func(c configMap) string { return c.Kind + c.Data["externalgrpc.yaml"] })
		for _, m := range maps {
			if m.Kind == "ConfigMap" {
				var keys map[string]string
				if err := yaml.Unmarshal([]byte(m.Data["externalgrpc.yaml"]), &keys); err != nil {
					t.Fatal(err)
				}
				return keys
			}
		}
		t.Fatal("no ConfigMap")
		return nil
	}
	if got := read(nil); !maps.Equal(got, map[string]string{"address": "127.0.0.1:8086", "grpc_timeout": "5s"}) {
		t.Errorf("without certificates: %v", got)
	}
	const dir = "/etc/autoscaler/client/"
	certified := map[string]any{"tls": map[string]any{"secretName": "server", "clientSecretName": "client"},
		"provider": map[string]any{"port": 9000}}
	if got := read(certified); !maps.Equal(got, map[string]string{"address": "127.0.0.1:9000", "grpc_timeout": "5s",
		"cert": dir + "tls.crt", "key": dir + "tls.key", "cacert": dir + "ca.crt"}) {
		t.Errorf("with certificates: %v", got)
	}
	secrets := func(values map[string]any) map[string]string {
		found := map[string]string{}
		for _, v := range autoscalerObjects(t, values)[autoscaler].Spec.Template.Spec.Volumes {
			if s, ok := v["secret"].(map[string]any); ok {
				found[v["name"].(string)] = s["secretName"].(string)
			}
		}
		return found
	}
	if got := secrets(certified); got["server-certificate"] != "server" || got["client-certificate"] != "client" {
		t.Errorf("two Secrets: %v", got)
	}
	if got := secrets(set("tls.secretName", "one")); got["server-certificate"] != "one" || got["client-certificate"] != "one" {
		t.Errorf("one Secret: %v", got)
	}
}

// TestAutoscalerIdentity checks the token of a workload identity.
func TestAutoscalerIdentity(t *testing.T) {
	const id = "00000000-0000-0000-0000-000000000001"
	p := autoscalerObjects(t, set("workloadIdentity.clientID", id))[autoscaler].Spec.Template.Spec
	env := map[string]string{}
	for _, e := range p.Containers[0].Env {
		env[e.Name] = e.Value
	}
	if env["AZURE_CLIENT_ID"] != id || env["ARM_USE_WORKLOAD_IDENTITY_EXTENSION"] != "true" ||
		env["AZURE_FEDERATED_TOKEN_FILE"] != "/var/run/secrets/azure/tokens/azure-identity-token" {
		t.Errorf("environment %v", env)
	}
	if !slices.ContainsFunc(p.Volumes, func(v map[string]any) bool { return v["name"] == "azure-identity-token" }) {
		t.Error("no token")
	}
}

// TestAutoscalerRefused checks that invalid values are rejected, with an error that names the key and what is wrong.
func TestAutoscalerRefused(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 63)
	for _, c := range []struct {
		values map[string]any
		want   []string
	}{
		{set("replica", 2), []string{"replica"}},
		{set("nodeGroups.named", []any{"pool"}), []string{"/nodeGroups/named/0", "pool"}},
		{set("nodeGroups.discovery", []any{"asg:tag=a=b"}), []string{"/nodeGroups/discovery/0", "asg"}},
		{set("nodeGroups.discovery", []any{}), []string{"nodeGroups.named and nodeGroups.discovery are both empty"}},
		{set("cloudConfig", ""), []string{"cloudConfig, cloudConfigSecretName and provider.extraEnv are all empty"}},
		{set("cloudConfig", "azure.json"), []string{"/cloudConfig", "azure.json"}},
		{set("clusterAutoscaler.enabled", false), []string{"tls.secretName is empty"}},
		{map[string]any{"clusterAutoscaler": map[string]any{"enabled": false}, "tls": map[string]any{"secretName": "a"}, "replicas": 2},
			[]string{"replicas is more than 1"}},
		{set("clusterAutoscaler.extraArgs", map[string]any{"nodes": "1:2:a"}), []string{"/clusterAutoscaler/extraArgs", "nodes"}},
		{set("clusterAutoscaler.extraArgs", map[string]any{"--v": 4}), []string{"/clusterAutoscaler/extraArgs", "--v"}},
		{set("provider.refresh", "1"), []string{"/provider/refresh", "1"}},
		{set("provider.port", 70000), []string{"/provider/port", "70,?000|70000"}},
		{set("image.digest", digest), []string{"/image/digest"}},
		{set("runAsUser", 0), []string{"/runAsUser", "0"}},
	} {
		_, err := render(loadFrom(t, autoscalerFolder), c.values)
		if err == nil {
			t.Errorf("%v is accepted", c.values)
			continue
		}
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(err.Error()) {
				t.Errorf("%v: no %q in: %v", c.values, want, err)
			}
		}
	}
}
