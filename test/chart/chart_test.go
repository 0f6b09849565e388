package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T) *chart.Chart { return loadFrom(t, folder) }

func loadFrom(t *testing.T, folder string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLint checks that helm lint finds nothing, with default values and with all values.
func TestLint(t *testing.T) {
	for folder, all := range charts() {
		for _, values := range []map[string]any{{}, all} {
			for _, m := range lint.RunAll(folder, values, "kube-system").Messages {
				if m.Severity > support.InfoSev {
					t.Errorf("%s: %v", folder, m)
				}
			}
		}
	}
}

// TestManifests compares deploy/manifests with the rendered chart.
func TestManifests(t *testing.T) {
	want, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "deploy", "manifests")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(want) {
		t.Errorf("%s has %d manifests, the chart %d: make generate", dir, len(files), len(want))
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s is not what the chart comes to (%v): make generate", filepath.Join(dir, name), err)
		}
	}
}

// TestAddons compares the add-ons of kaz cluster with the rendered charts, and checks that no value is missing.
func TestAddons(t *testing.T) {
	want, err := addonManifests()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(addonFolder, name))
		if err != nil || string(got) != text {
			t.Errorf("%s is not what the charts come to (%v): make generate", filepath.Join(addonFolder, name), err)
		}
	}
	for _, value := range []string{addonRepository + "/cloud-controller-manager:" + addonTag, addonPods, addonServices, addonCluster} {
		if !strings.Contains(want["cloud.yaml"], value) {
			t.Errorf("cloud.yaml has no %s", value)
		}
	}
	if disks := want["disks.yaml"]; !strings.Contains(disks, addonRepository+"/azuredisk-csi-driver:"+addonTag) ||
		strings.Contains(disks, "liveness") {
		t.Error("disks.yaml has no driver, or probes that nothing answers")
	}
}

// object is an object of Kubernetes, as far as it is looked at here.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Replicas int
		Template struct{ Spec pod }
	}
}

type pod struct {
	HostNetwork                  bool
	ServiceAccountName           string
	AutomountServiceAccountToken *bool
	SecurityContext              securityContext
	Containers                   []container
	Volumes                      []map[string]any
	Tolerations                  []toleration
}

type toleration struct{ Key, Operator, Value, Effect string }

type container struct {
	Name, Image                   string
	Command, Args                 []string
	Env                           []struct{ Name, Value string }
	Ports                         []struct{ HostPort, ContainerPort int }
	LivenessProbe, ReadinessProbe struct{ HTTPGet struct{ Path string } }
	SecurityContext               securityContext
}

type securityContext struct {
	RunAsNonRoot, ReadOnlyRootFilesystem, AllowPrivilegeEscalation *bool
	RunAsUser                                                      int
	Capabilities                                                   struct{ Drop []string }
	SeccompProfile                                                 struct{ Type string }
	WindowsOptions                                                 struct{ HostProcess bool }
}

func objects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, folder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// objectsOf renders a chart and returns its objects by their names.
func objectsOf[T any](t *testing.T, folder string, values map[string]any, name func(T) string) map[string]T {
	t.Helper()
	rendered, err := render(loadFrom(t, folder), values)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]T{}
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		for text := range bytes.SplitSeq([]byte(strings.TrimPrefix(rendered[file], "---\n")), []byte("\n---\n")) {
			var o T
			if err := yaml.Unmarshal(text, &o); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
			if _, twice := all[name(o)]; twice {
				t.Errorf("%s: %s twice", file, name(o))
			}
			all[name(o)] = o
		}
	}
	return all
}

// TestObjects checks which objects the values create.
func TestObjects(t *testing.T) {
	ccm := []string{
		"ClusterRole system:cloud-controller-manager", "ClusterRoleBinding system:cloud-controller-manager",
		"Deployment cloud-controller-manager",
		"PodDisruptionBudget cloud-controller-manager", "Role system:cloud-controller-manager:leader-election",
		"RoleBinding system:cloud-controller-manager:extension-apiserver-authentication-reader",
		"RoleBinding system:cloud-controller-manager:leader-election", "ServiceAccount cloud-controller-manager",
	}
	cnm := []string{"ClusterRole cloud-node-manager", "ClusterRoleBinding cloud-node-manager", "DaemonSet cloud-node-manager",
		"ServiceAccount cloud-node-manager", "ValidatingAdmissionPolicy cloud-node-manager-own-node",
		"ValidatingAdmissionPolicyBinding cloud-node-manager-own-node"}
	for _, c := range []struct {
		name   string
		values map[string]any
		want   []string
	}{
		{"defaults", nil, slices.Concat(ccm, cnm)},
		{"everything", everything(),
			slices.Concat(ccm, cnm, []string{"DaemonSet cloud-node-manager-windows", "DaemonSet health-probe-proxy"})},
		{"a Secret", set("cloudControllerManager.cloudConfigSecretName", "c"), slices.Concat(ccm, cnm, []string{
			"Role system:cloud-controller-manager:cloud-config", "RoleBinding system:cloud-controller-manager:cloud-config",
		})},
		{"one replica", set("cloudControllerManager.replicas", 1),
			slices.DeleteFunc(slices.Concat(ccm, cnm), func(s string) bool { return strings.HasPrefix(s, "PodDisruptionBudget") })},
		{"only nodes", set("cloudControllerManager.enabled", false), cnm},
		{"only controllers", set("cloudNodeManager.enabled", false), ccm},
	} {
		got := slices.Sorted(maps.Keys(objects(t, c.values)))
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// set are values with one that is given by its path.
func set(path string, value any) map[string]any {
	first, rest, more := strings.Cut(path, ".")
	if !more {
		return map[string]any{first: value}
	}
	return map[string]any{first: set(rest, value)}
}

// TestFirstNode checks that the cloud-controller-manager and the cloud-node-manager run on the first node, which is not
// initialized yet. The kubelet gives that taint the value "true".
func TestFirstNode(t *testing.T) {
	for _, name := range []string{"Deployment cloud-controller-manager", "DaemonSet cloud-node-manager"} {
		all := objects(t, nil)[name].Spec.Template.Spec.Tolerations
		if !slices.ContainsFunc(all, func(one toleration) bool {
			key := one.Key == "" || one.Key == "node.cloudprovider.kubernetes.io/uninitialized"
			return key && (one.Operator == "Exists" || one.Value == "true") && (one.Effect == "" || one.Effect == "NoSchedule")
		}) {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// TestPortOfTheHost checks that each replica of the cloud-controller-manager uses a port of the host. So two replicas never
// share a node.
func TestPortOfTheHost(t *testing.T) {
	for port, values := range map[int]map[string]any{10268: nil, 10300: set("cloudControllerManager.securePort", "10300")} {
		spec := objects(t, values)["Deployment cloud-controller-manager"].Spec.Template.Spec
		if len(spec.Containers) != 1 || spec.Containers[0].Ports[0].HostPort != port || spec.Containers[0].Ports[1].HostPort != 10269 {
			t.Errorf("ports %+v, want %d and that of metrics", spec.Containers, port)
		}
	}
}

// TestConfined checks that no container runs as root, can become root or write to its image, and that
// no argument contains a secret.
func TestConfined(t *testing.T) {
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	secret := regexp.MustCompile(`(?i)secret|password|token=|client-id`)
	for name, o := range objects(t, everything()) {
		p := o.Spec.Template.Spec
		for _, c := range p.Containers {
			for _, text := range append(slices.Clone(c.Args), c.Command...) {
				if secret.MatchString(text) {
					t.Errorf("%s: argument %s", name, text)
				}
			}
			if p.SecurityContext.WindowsOptions.HostProcess {
				continue // which Windows has instead
			}
			if !is(p.SecurityContext.RunAsNonRoot, true) || p.SecurityContext.RunAsUser == 0 ||
				p.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
				t.Errorf("%s: pod %+v", name, p.SecurityContext)
			}
			if s := c.SecurityContext; !is(s.ReadOnlyRootFilesystem, true) || !is(s.AllowPrivilegeEscalation, false) ||
				!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: container %+v", name, s)
			}
		}
	}
	if p := objects(t, everything())["DaemonSet health-probe-proxy"].Spec.Template.Spec; !is(p.AutomountServiceAccountToken, false) {
		t.Error("the health-probe-proxy has a service account's token")
	}
}

// TestArguments checks that flags are rendered once, only for set values, and that additional
// arguments override them.
func TestArguments(t *testing.T) {
	args := func(values map[string]any, name string) []string {
		return objects(t, values)[name].Spec.Template.Spec.Containers[0].Args
	}
	const ccm, cnm = "Deployment cloud-controller-manager", "DaemonSet cloud-node-manager"
	for _, c := range []struct {
		name, object string
		values       map[string]any
		want         []string
	}{
		{"defaults of the controllers", ccm, nil, []string{
			"--allocate-node-cidrs=true", "--cloud-config=/etc/kubernetes/azure.json", "--cloud-provider=azure",
			"--cluster-cidr=10.244.0.0/16",
			"--cluster-name=kubernetes", "--configure-cloud-routes=true", "--controllers=*,-cloud-node", "--leader-elect=true",
			"--leader-elect-resource-namespace=kube-system", "--metrics-address=0.0.0.0:10269", "--route-reconciliation-period=10s",
			"--secure-port=10268", "--v=2",
		}},
		{"defaults of the node manager", cnm, nil, []string{
			"--authentication-skip-lookup=true", "--bind-address=127.0.0.1", "--metrics-address=0.0.0.0:10264", "--node-name=$(NODE_NAME)",
			"--secure-port=10263", "--use-instance-metadata=true", "--v=2",
		}},
		{"no port", cnm, map[string]any{"cloudNodeManager": map[string]any{"securePort": 0, "metricsPort": "0"}},
			[]string{"--node-name=$(NODE_NAME)", "--secure-port=0", "--use-instance-metadata=true", "--v=2"}},
		{"from Azure's API", cnm,
			map[string]any{"cloudNodeManager": map[string]any{"useInstanceMetadata": false, "cloudConfig": "/etc/kubernetes/azure.json",
				"securePort": 0, "waitRoutes": true}}, []string{
				"--cloud-config=/etc/kubernetes/azure.json", "--metrics-address=0.0.0.0:10264", "--node-name=$(NODE_NAME)", "--secure-port=0", "--use-instance-metadata=false",
				"--v=2", "--wait-routes=true",
			}},
	} {
		if got := args(c.values, c.object); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		values     map[string]any
		want, lack string
	}{
		{set("cloudNodeManager.enabled", false), "--controllers=*", "--controllers=*,-cloud-node"},
		{set("cloudControllerManager.cloudConfigSecretName", "azure-cloud-config"), "--cloud-config-secret-name=azure-cloud-config",
			"--cloud-config-secret-namespace="},
		{map[string]any{"cloudControllerManager": map[string]any{"cloudConfig": "", "cloudConfigSecretName": "c"}},
			"--cloud-config-secret-namespace=kube-system", "--cloud-config="},
		{set("cloudControllerManager.extraArgs", map[string]any{"v": 4}), "--v=4", "--v=2"},
		{set("cloudControllerManager.kubeAPIQPS", 50), "--kube-api-qps=50", "--kube-api-qps="},
		{set("namespace", "azure"), "--leader-elect-resource-namespace=azure", "--leader-elect-resource-namespace=kube-system"},
	} {
		if got := args(c.values, ccm); !slices.Contains(got, c.want) || slices.Contains(got, c.lack) {
			t.Errorf("%v: %q", c.values, got)
		}
	}
}

func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		values map[string]any
		want   string
	}{
		{nil, "localhost/kaz/cloud-controller-manager:devel"},
		{set("cloudControllerManager.imageTag", "v1.36.0"), "localhost/kaz/cloud-controller-manager:v1.36.0"},
		{set("cloudControllerManager.imageRepository", "example.azurecr.io/kaz"), "example.azurecr.io/kaz/cloud-controller-manager:devel"},
		{set("cloudControllerManager.imageDigest", digest), "localhost/kaz/cloud-controller-manager@" + digest},
	} {
		if got := objects(t, c.values)["Deployment cloud-controller-manager"].Spec.Template.Spec.Containers[0].Image; got != c.want {
			t.Errorf("%v: image %s, want %s", c.values, got, c.want)
		}
	}
}

// TestRefused checks that invalid values are rejected before the installation, with an error that
// names the key, the value and what is allowed.
func TestRefused(t *testing.T) {
	const ccm, cnm = "cloudControllerManager.", "cloudNodeManager."
	for _, c := range []struct {
		values map[string]any
		want   []string
	}{
		{set(ccm+"replica", 2), []string{"/cloudControllerManager", "replica"}},
		{set(ccm+"replicas", 0), []string{"/cloudControllerManager/replicas", "0"}},
		{set(ccm+"securePort", "health"), []string{"/cloudControllerManager/securePort", "health"}},
		{set(ccm+"securePort", 70000), []string{"/cloudControllerManager/securePort", "70,?000|70000"}},
		{set(ccm+"leaderElect", "yes"), []string{"/cloudControllerManager/leaderElect", "true"}},
		{set(ccm+"leaderElect", false), []string{"/cloudControllerManager/replicas", "1"}},
		{set(ccm+"cloudConfig", "azure.json"), []string{"/cloudControllerManager/cloudConfig", "azure.json"}},
		{set(ccm+"routeReconciliationPeriod", "10"), []string{"/cloudControllerManager/routeReconciliationPeriod", "10"}},
		{set(ccm+"clusterCIDR", "10.244.0.0"), []string{"/cloudControllerManager/clusterCIDR", "10.244.0.0"}},
		{set(ccm+"cloudConfig", ""), []string{"cloudControllerManager.cloudConfig", "cloudConfigSecretName"}},
		{set(ccm+"clusterCIDR", ""), []string{"cloudControllerManager.clusterCIDR", "allocateNodeCidrs"}},
		{set(ccm+"runAsUser", 0), []string{"/cloudControllerManager/runAsUser", "0"}},
		{set(ccm+"imageTag", "a b"), []string{"/cloudControllerManager/imageTag", "a b"}},
		{set(ccm+"useServiceAccountCredentials", true), []string{"/cloudControllerManager", "useServiceAccountCredentials"}},
		{set(ccm+"extraArgs", map[string]any{"--v": 4}), []string{"/cloudControllerManager/extraArgs", "--v"}},
		{set(cnm+"useInstanceMetadata", false), []string{"/cloudNodeManager/cloudConfig"}},
		{set(cnm+"windows.image", "x"), []string{"/cloudNodeManager/windows", "image"}},
		{set("infra.clusterName", "my cluster"), []string{"/infra/clusterName", "my cluster"}},
		{set("namespace", "Kube System"), []string{"/namespace", "Kube System"}},
	} {
		_, err := render(load(t), c.values)
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
