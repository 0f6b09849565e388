package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	diskController = "Deployment csi-azuredisk-controller"
	diskNode       = "DaemonSet csi-azuredisk-node"
	snapshots      = "Deployment csi-snapshot-controller"
)

func diskObjects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, diskFolder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// rule is a rule of a role.
type rule struct{ APIGroups, Resources, ResourceNames, Verbs []string }

// grant is a role or the binding of one.
type grant struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []rule
	RoleRef  struct{ Kind, Name string }
	Subjects []struct{ Kind, Name, Namespace string }
}

// rights returns the rights of a service account: "VERB GROUP/RESOURCE", with the namespace and name if they are limited.
func rights(t *testing.T, folder string, values map[string]any, account string) []string {
	t.Helper()
	all := objectsOf[grant](t, folder, values, func(g grant) string { return g.Kind + " " + g.Metadata.Name })
	found := map[string]bool{}
	for _, b := range all {
		if len(b.Subjects) != 1 || b.Subjects[0].Name != account || b.Subjects[0].Namespace != "kube-system" {
			continue
		}
		role, ok := all[b.RoleRef.Kind+" "+b.RoleRef.Name]
		if !ok {
			t.Errorf("%s %s binds %s, which is not there", b.Kind, b.Metadata.Name, b.RoleRef.Name)
		}
		for _, r := range role.Rules {
			for _, right := range r.each() {
				if role.Kind == "Role" {
					right += " in " + role.Metadata.Namespace
				}
				found[right] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (r rule) each() []string {
	var all []string
	for _, verb := range r.Verbs {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				right := verb + " " + strings.TrimPrefix(group+"/"+resource, "/")
				if len(r.ResourceNames) > 0 {
					right += " " + strings.Join(r.ResourceNames, ",")
				}
				all = append(all, right)
			}
		}
	}
	return all
}

// can returns rights: verbs, then resources.
func can(verbs string, resources ...string) []string {
	var all []string
	for verb := range strings.FieldsSeq(verbs) {
		for _, r := range resources {
			all = append(all, verb+" "+r)
		}
	}
	return all
}

// needs are what each container does at the API server. For the driver, internal/csi has the requests; for the sidecars,
// their own documentation.
func needs() map[string][]string {
	const (
		storage, snapshot = "storage.k8s.io/", "snapshot.storage.k8s.io/"
		read              = "get list watch"
	)
	election := []string{"create coordination.k8s.io/leases in kube-system", "get coordination.k8s.io/leases in kube-system",
		"update coordination.k8s.io/leases in kube-system"}
	events := can("create patch update", "events")
	return map[string][]string{
		"driver of the controller": slices.Concat(can(read, "nodes", "persistentvolumes", storage+"volumeattachments"),
			[]string{"get secrets azure-cloud-provider in kube-system"}),
		"driver of a node":               slices.Concat(can("get patch", "nodes"), can("get", storage+"csinodes"), can("list", storage+"volumeattachments")),
		"share driver of the controller": slices.Concat(can("list", "persistentvolumes"), can("get create update", "secrets")),
		"share driver of a node":         can("get", "secrets"),
		"share driver that checks":       can("create", "authorization.k8s.io/subjectaccessreviews"),
		"csi-provisioner without attachments": slices.Concat(can(read+" create patch delete", "persistentvolumes"),
			can(read+" update", "persistentvolumeclaims"),
			can(read, storage+"storageclasses", storage+"csinodes", storage+"volumeattributesclasses", "nodes"),
			can("get list", snapshot+"volumesnapshots", snapshot+"volumesnapshotcontents"), events, election),
		"csi-provisioner": slices.Concat(can(read+" create patch delete", "persistentvolumes"), can(read+" update", "persistentvolumeclaims"),
			can(read, storage+"storageclasses", storage+"csinodes", storage+"volumeattachments", storage+"volumeattributesclasses", "nodes"),
			can("get list", snapshot+"volumesnapshots", snapshot+"volumesnapshotcontents"), events, election),
		"csi-attacher": slices.Concat(can(read+" patch", "persistentvolumes", storage+"volumeattachments"), can(read, storage+"csinodes"),
			can("patch", storage+"volumeattachments/status"), election),
		"csi-resizer": slices.Concat(can(read+" patch", "persistentvolumes", "persistentvolumeclaims"),
			can("patch update", "persistentvolumeclaims/status"), can(read, storage+"volumeattributesclasses"), events, election),
		"csi-snapshotter": slices.Concat(can(read, snapshot+"volumesnapshotclasses"), can("get list", snapshot+"volumesnapshots"),
			can(read+" create delete patch update", snapshot+"volumesnapshotcontents"),
			can("patch update", snapshot+"volumesnapshotcontents/status"), events, election),
		"snapshot-controller": slices.Concat(can(read, "persistentvolumes", snapshot+"volumesnapshotclasses"),
			can(read+" update", "persistentvolumeclaims"),
			can(read+" create delete patch update", snapshot+"volumesnapshotcontents", snapshot+"volumesnapshots"),
			can("patch update", snapshot+"volumesnapshotcontents/status", snapshot+"volumesnapshots/status"), events, election),
	}
}

// account is a service account with the containers that use it.
type account struct {
	name       string
	values     map[string]any
	containers []string
}

// checkRights checks that each service account of a chart has what its containers need, and nothing else.
func checkRights(t *testing.T, folder string, accounts []account) {
	t.Helper()
	for _, c := range accounts {
		var want []string
		for _, name := range c.containers {
			want = append(want, needs()[name]...)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got := rights(t, folder, c.values, c.name)
		for _, right := range got {
			if !slices.Contains(want, right) {
				t.Errorf("%s with %v: no container needs %s", c.name, c.values, right)
			}
		}
		for _, right := range want {
			if !slices.Contains(got, right) {
				t.Errorf("%s with %v: lacks %s", c.name, c.values, right)
			}
		}
	}
}

// TestDiskRights checks the rights of the disk driver's service accounts.
func TestDiskRights(t *testing.T) {
	checkRights(t, diskFolder, []account{
		{"csi-azuredisk-controller-sa", everyDisk(),
			[]string{"driver of the controller", "csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"}},
		{"csi-azuredisk-controller-sa", set("snapshot.sidecar", false),
			[]string{"driver of the controller", "csi-provisioner", "csi-attacher", "csi-resizer"}},
		{"csi-azuredisk-node-sa", everyDisk(), []string{"driver of a node"}},
		{"csi-snapshot-controller-sa", everyDisk(), []string{"snapshot-controller"}},
	})
}

// counted are values with the objects that they create, by kind.
type counted struct {
	values map[string]any
	want   map[string]int
}

func checkCounts(t *testing.T, folder string, cases map[string]counted) {
	t.Helper()
	for name, c := range cases {
		kinds := map[string]int{}
		for _, o := range objectsOf[object](t, folder, c.values, func(o object) string { return o.Kind + " " + o.Metadata.Name }) {
			kinds[o.Kind]++
		}
		if !maps.Equal(kinds, c.want) {
			t.Errorf("%s: %v, want %v", name, kinds, c.want)
		}
	}
}

// TestDiskObjects checks which objects the values create, under the names of the chart that this one replaces.
func TestDiskObjects(t *testing.T) {
	checkCounts(t, diskFolder, map[string]counted{
		"defaults": {nil, map[string]int{"Deployment": 1, "DaemonSet": 1, "PodDisruptionBudget": 1, "CSIDriver": 1, "ServiceAccount": 2,
			"ClusterRole": 6, "ClusterRoleBinding": 6, "Role": 2, "RoleBinding": 2, "ValidatingAdmissionPolicy": 1,
			"ValidatingAdmissionPolicyBinding": 1}},
		"everything": {everyDisk(), map[string]int{"Deployment": 2, "DaemonSet": 1, "PodDisruptionBudget": 2, "CSIDriver": 1,
			"StorageClass": 2, "VolumeSnapshotClass": 1, "ServiceAccount": 3, "ClusterRole": 7, "ClusterRoleBinding": 7, "Role": 3,
			"RoleBinding": 3, "NetworkPolicy": 1, "ValidatingAdmissionPolicy": 1, "ValidatingAdmissionPolicyBinding": 1}},
		"one replica, no Secret, accounts and roles of the user": {
			map[string]any{"controller": map[string]any{"replicas": 1, "cloudConfigSecretName": ""},
				"serviceAccount": map[string]any{"create": false}, "rbac": map[string]any{"create": false}},
			map[string]int{"Deployment": 1, "DaemonSet": 1, "CSIDriver": 1},
		},
	})
	all := diskObjects(t, everyDisk())
	for _, name := range []string{diskController, diskNode, snapshots, "CSIDriver disk.csi.azure.com",
		"ServiceAccount csi-azuredisk-controller-sa", "ServiceAccount csi-azuredisk-node-sa", "ServiceAccount csi-snapshot-controller-sa",
		"ClusterRole azuredisk-external-provisioner-role", "VolumeSnapshotClass csi-azuredisk-vsc", "StorageClass managed-csi"} {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestDiskConfined checks that of all containers only the driver of a node has rights on the machine.
func TestDiskConfined(t *testing.T) {
	checkConfined(t, diskObjects(t, everyDisk()), diskNode)
	p := diskObjects(t, set("controller.runAsUser", 65532))[diskController].Spec.Template.Spec.SecurityContext
	if p.RunAsUser != 65532 || p.RunAsNonRoot == nil || !*p.RunAsNonRoot {
		t.Errorf("%+v", p)
	}
}

// checkConfined checks that of all containers only the first of an object has rights on the machine.
func checkConfined(t *testing.T, all map[string]object, free string) {
	t.Helper()
	for name, o := range all {
		for i, c := range o.Spec.Template.Spec.Containers {
			s := c.SecurityContext
			confined := s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem && s.AllowPrivilegeEscalation != nil &&
				!*s.AllowPrivilegeEscalation && slices.Equal(s.Capabilities.Drop, []string{"ALL"})
			if node := name == free && i == 0; confined == node {
				t.Errorf("%s: container %d: %+v", name, i, s)
			}
		}
	}
}

// TestDiskFlags checks that the driver knows every flag that the chart sets, and what values change.
func TestDiskFlags(t *testing.T) {
	checkFlags(t, diskObjects(t, nil), "azuredisk-csi-driver", diskController, diskNode)
	checkArguments(t, func(values map[string]any) map[string]object { return diskObjects(t, values) }, []argument{
		{diskController, nil, "--metrics-address=0.0.0.0:29604"},
		{diskNode, nil, "--metrics-address=0.0.0.0:29605"},
		{diskNode, nil, "--kubelet-registration-path=/var/lib/kubelet/plugins/disk.csi.azure.com/csi.sock"},
		{diskNode, set("linux.kubelet", "/data/kubelet"), "--kubelet-registration-path=/data/kubelet/plugins/disk.csi.azure.com/csi.sock"},
		{diskNode, set("driver.name", "disk.example"), "--kubelet-registration-path=/var/lib/kubelet/plugins/disk.example/csi.sock"},
		{diskNode, set("driver.volumeAttachLimit", 4), "--volume-attach-limit=4"},
		{diskController, set("driver.userAgentSuffix", "a b"), "--user-agent-suffix=a b"},
		{diskController, set("controller.extraArgs", []any{"--profiling"}), "--profiling"},
	})
}

// TestDiskWindows checks the DaemonSet for Windows. It has a host-process container, and the service account of the DaemonSet
// for Linux. Its flags exist in the driver.
func TestDiskWindows(t *testing.T) {
	const name = "DaemonSet csi-azuredisk-node-win"
	if _, ok := diskObjects(t, nil)[name]; ok {
		t.Error("it is there without windows.enabled")
	}
	all := diskObjects(t, set("windows.enabled", true))
	p, linux := all[name].Spec.Template.Spec, all[diskNode].Spec.Template.Spec
	if len(p.Containers) != 1 || !p.HostNetwork || !p.SecurityContext.WindowsOptions.HostProcess {
		t.Fatalf("%+v", p)
	}
	if p.ServiceAccountName != linux.ServiceAccountName {
		t.Errorf("service account %s, want %s", p.ServiceAccountName, linux.ServiceAccountName)
	}
	checkFlags(t, all, "azuredisk-csi-driver", name)
	checkArguments(t, func(map[string]any) map[string]object { return all }, []argument{
		{name, nil, `--endpoint=unix://C:\var\lib\kubelet\plugins\disk.csi.azure.com\csi.sock`},
		{name, nil, `--kubelet-registration-path=C:\var\lib\kubelet\plugins\disk.csi.azure.com\csi.sock`},
		{name, nil, `--plugin-registration-path=C:\var\lib\kubelet\plugins_registry`},
		{name, nil, `--cloud-config=C:\k\azure.json`},
	})
}

// checkFlags checks that the page of a program has every flag that objects set.
func checkFlags(t *testing.T, all map[string]object, program string, names ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", program+".md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, arg := range all[name].Spec.Template.Spec.Containers[0].Args {
			flag, _, _ := strings.Cut(arg, "=")
			if flag != "--v" && !strings.Contains(string(page), "| `"+flag+"` |") {
				t.Errorf("%s: the driver has no %s", name, flag)
			}
		}
	}
}

// argument is an argument that an object's first container has with values.
type argument struct {
	object string
	values map[string]any
	want   string
}

func checkArguments(t *testing.T, render func(values map[string]any) map[string]object, all []argument) {
	t.Helper()
	for _, c := range all {
		if got := render(c.values)[c.object].Spec.Template.Spec.Containers[0].Args; !slices.Contains(got, c.want) {
			t.Errorf("%s with %v: no %s in %q", c.object, c.values, c.want, got)
		}
	}
}

// TestDiskImages checks names of images, also with a mirror for all of them.
func TestDiskImages(t *testing.T) {
	for want, values := range map[string]map[string]any{
		"localhost/kaz/azuredisk-csi-driver:devel": nil,
		"example.azurecr.io/kaz/disk:v1": {"image": map[string]any{"baseRepo": "example.azurecr.io",
			"azuredisk": map[string]any{"repository": "/kaz/disk", "tag": "v1"}}},
		"example.org/disk:devel": set("image.azuredisk.repository", "example.org/disk"),
	} {
		for _, name := range []string{diskController, diskNode} {
			if got := diskObjects(t, values)[name].Spec.Template.Spec.Containers[0].Image; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// TestDiskPorts checks the ports of the driver that this one replaces.
func TestDiskPorts(t *testing.T) {
	for name, want := range map[string]string{diskController: "29602", diskNode: "29603"} {
		probed := false
		for _, c := range diskObjects(t, nil)[name].Spec.Template.Spec.Containers {
			probed = probed || slices.Contains(c.Args, "--http-endpoint=127.0.0.1:"+want)
		}
		if !probed {
			t.Errorf("%s: livenessprobe does not serve at %s", name, want)
		}
	}
}

// TestValuesOfTheOtherChart checks that values of the chart that this one replaces are accepted.
func TestValuesOfTheOtherChart(t *testing.T) {
	const text = `
controller: {replicas: 1, runOnControlPlane: true, metricsPort: 30604, livenessProbe: {healthPort: 30602}, vmssCacheTTLInSeconds: -1,
  VMSSDetachTimeoutInSeconds: 200, allowEmptyCloudConfig: false, otelTracing: {enabled: false}, vmType: vmss, logLevel: 6,
  resources: {azuredisk: {limits: {memory: 600Mi}}}}
node: {cloudConfigSecretName: "", supportZone: false, maxUnavailable: 10%, nodeDriverRegistrar: {healthPort: 29607}}
linux: {enabled: true, distro: fedora, enablePerfOptimization: true, getNodeInfoFromLabels: false, kubelet: /var/lib/kubelet}
windows: {enabled: false, useHostProcessContainers: true}
snapshot: {enabled: true, VolumeSnapshotClass: {enabled: true, parameters: {incremental: '"true"', resourceGroup: ""}}}
driver: {azureGoSDKLogLevel: "", userAgentSuffix: OSS-helm}
workloadIdentity: {clientID: 00000000-0000-0000-0000-000000000001, tenantID: 00000000-0000-0000-0000-000000000002}
cloud: AzurePublicCloud
`
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	p := diskObjects(t, values)[diskController].Spec.Template.Spec
	for _, want := range []string{"--metrics-address=0.0.0.0:30604", "--v=6"} {
		if !slices.Contains(p.Containers[0].Args, want) {
			t.Errorf("no %s in %q", want, p.Containers[0].Args)
		}
	}
	if !strings.Contains(fmt.Sprint(p.Containers[0].Env), "AZURE_FEDERATED_TOKEN_FILE") ||
		!strings.Contains(fmt.Sprint(p.Volumes), "azure-identity-token") {
		t.Error("the workload identity has no token")
	}
}

// TestDiskRefused checks that invalid values are rejected, with an error that names the key and what is wrong.
func TestDiskRefused(t *testing.T) {
	checkRefused(t, diskFolder, []refused{
		{set("controller.replica", 2), []string{"/controller", "replica"}},
		{set("controller.replicas", 0), []string{"/controller/replicas", "0"}},
		{set("controller.metricsPort", 70000), []string{"/controller/metricsPort", "70,?000"}},
		{set("controller.extraArgs", []any{"profiling"}), []string{"/controller/extraArgs/0", "profiling"}},
		{set("node.maxUnavailable", "none"), []string{"/node/maxUnavailable", "none"}},
		{set("linux.enabled", false), []string{"/linux/enabled"}},
		{set("linux.kubelet", "kubelet"), []string{"/linux/kubelet", "kubelet"}},
		{set("windows.kubelet", "/var/lib/kubelet"), []string{"/windows/kubelet", "/var/lib/kubelet"}},
		{map[string]any{"windows": map[string]any{"enabled": true, "useHostProcessContainers": false}},
			[]string{"windows.useHostProcessContainers", "csi-proxy"}},
		{set("workloadIdentity.clientID", "me"), []string{"/workloadIdentity/clientID"}},
		{set("image.azuredisk.tag", "a b"), []string{"/image/azuredisk/tag", "a b"}},
		{set("storageClasses", []any{map[string]any{"parameters": map[string]any{}}}), []string{"/storageClasses/0", "name"}},
		{set("storageClasses", []any{map[string]any{"name": "a", "reclaimPolicy": "Keep"}}), []string{"/storageClasses/0/reclaimPolicy"}},
		{set("snapshot.VolumeSnapshotClass.deletionPolicy", "Keep"), []string{"/snapshot/VolumeSnapshotClass/deletionPolicy"}},
		{set("driver.name", "Disk"), []string{"/driver/name", "Disk"}},
	})
}

// refused are values that a chart rejects, with what the error says.
type refused struct {
	values map[string]any
	want   []string
}

func checkRefused(t *testing.T, folder string, all []refused) {
	t.Helper()
	for _, c := range all {
		_, err := render(loadFrom(t, folder), c.values)
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
