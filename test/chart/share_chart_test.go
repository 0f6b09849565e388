package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	shareController = "Deployment csi-azurefile-controller"
	shareNode       = "DaemonSet csi-azurefile-node"
)

func shareObjects(t *testing.T, values map[string]any) map[string]object {
	t.Helper()
	return objectsOf[object](t, shareFolder, values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
}

// TestShareRights checks the rights of the service accounts of the driver of Azure Files.
func TestShareRights(t *testing.T) {
	controller := []string{"share driver of the controller", "csi-provisioner without attachments", "csi-resizer"}
	checkRights(t, shareFolder, []account{
		{"csi-azurefile-controller-sa", everyShare(), append(slices.Clone(controller), "csi-snapshotter")},
		{"csi-azurefile-controller-sa", set("snapshot.sidecar", false), controller},
		{"csi-azurefile-node-sa", everyShare(), []string{"share driver of a node"}},
		{"csi-azurefile-node-sa", set("node.inlineVolumeSecretAuthz", "enforce"),
			[]string{"share driver of a node", "share driver that checks"}},
		{"csi-azurefile-node-sa", set("rbac.nodeSecrets", false), nil},
		{"csi-snapshot-controller-sa", everyShare(), []string{"snapshot-controller"}},
	})
}

// TestShareObjects checks which objects the values create, under the names of the chart that this one replaces.
func TestShareObjects(t *testing.T) {
	checkCounts(t, shareFolder, map[string]counted{
		"defaults": {nil, map[string]int{"Deployment": 1, "DaemonSet": 1, "PodDisruptionBudget": 1, "CSIDriver": 1, "ServiceAccount": 2,
			"ClusterRole": 5, "ClusterRoleBinding": 5, "Role": 1, "RoleBinding": 1}},
		"everything": {everyShare(), map[string]int{"Deployment": 2, "DaemonSet": 1, "PodDisruptionBudget": 2, "CSIDriver": 1,
			"StorageClass": 3, "VolumeSnapshotClass": 1, "ServiceAccount": 3, "ClusterRole": 6, "ClusterRoleBinding": 6, "Role": 2,
			"RoleBinding": 2, "NetworkPolicy": 1}},
		"accounts and roles of the user": {
			map[string]any{"serviceAccount": map[string]any{"create": false}, "rbac": map[string]any{"create": false}},
			map[string]int{"Deployment": 1, "DaemonSet": 1, "PodDisruptionBudget": 1, "CSIDriver": 1},
		},
	})
	all := shareObjects(t, everyShare())
	for _, name := range []string{shareController, shareNode, snapshots, "CSIDriver file.csi.azure.com",
		"ServiceAccount csi-azurefile-controller-sa", "ServiceAccount csi-azurefile-node-sa", "ServiceAccount csi-snapshot-controller-sa",
		"ClusterRole azurefile-external-provisioner-role", "VolumeSnapshotClass csi-azurefile-vsc", "StorageClass azurefile-csi"} {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

// driverObject is a CSIDriver.
type driverObject struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		AttachRequired, PodInfoOnMount, RequiresRepublish *bool
		FSGroupPolicy                                     string
		VolumeLifecycleModes                              []string
		TokenRequests                                     []struct{ Audience string }
	}
}

// TestShareDriverObject checks the CSIDriver. With an attachment no volume would be mounted: there is no attacher.
func TestShareDriverObject(t *testing.T) {
	all := objectsOf[driverObject](t, shareFolder, nil, func(o driverObject) string { return o.Kind + " " + o.Metadata.Name })
	s := all["CSIDriver file.csi.azure.com"].Spec
	if s.AttachRequired == nil || *s.AttachRequired || s.PodInfoOnMount == nil || !*s.PodInfoOnMount ||
		s.RequiresRepublish == nil || !*s.RequiresRepublish || s.FSGroupPolicy != "ReadWriteOnceWithFSType" ||
		!slices.Equal(s.VolumeLifecycleModes, []string{"Persistent", "Ephemeral"}) ||
		len(s.TokenRequests) != 1 || s.TokenRequests[0].Audience != "api://AzureADTokenExchange" {
		t.Errorf("%+v", s)
	}
}

// TestShareConfined checks that of all containers only the driver of a node has rights on the machine.
func TestShareConfined(t *testing.T) { checkConfined(t, shareObjects(t, everyShare()), shareNode) }

// TestShareFlags checks that the driver knows every flag that the chart sets, and what values change.
func TestShareFlags(t *testing.T) {
	checkFlags(t, shareObjects(t, nil), "azurefile-csi-driver", shareController, shareNode)
	checkArguments(t, func(values map[string]any) map[string]object { return shareObjects(t, values) }, []argument{
		{shareController, nil, "--metrics-address=0.0.0.0:29614"},
		{shareNode, nil, "--metrics-address=0.0.0.0:29615"},
		{shareNode, nil, "--kubelet-registration-path=/var/lib/kubelet/plugins/file.csi.azure.com/csi.sock"},
		{shareNode, set("linux.kubelet", "/data/kubelet"), "--kubelet-registration-path=/data/kubelet/plugins/file.csi.azure.com/csi.sock"},
		{shareNode, set("linux.mountPermissions", "0750"), "--mount-permissions=0750"},
		{shareNode, set("feature.enableVolumeMountGroup", false), "--enable-volume-mount-group=false"},
		{shareNode, set("feature.enableGetVolumeStats", false), "--enable-get-volume-stats=false"},
		{shareNode, set("node.inlineVolumeSecretAuthz", "enforce"), "--inline-volume-secret-authz=enforce"},
		{shareNode, set("node.allowInlineVolumeKeyAccessWithIdentity", true), "--allow-inline-volume-key-access-with-identity=true"},
		{shareNode, set("node.cloudConfigSecretName", "azure"), "--cloud-config-secret-name=azure"},
		{shareController, set("controller.deleteSnapshotsWithVolume", true), "--delete-snapshots-with-volume=true"},
		{shareController, set("controller.extraArgs", []any{"--profiling"}), "--profiling"},
	})
}

// TestSharePorts checks the ports of the driver that this one replaces.
func TestSharePorts(t *testing.T) {
	for name, want := range map[string]string{shareController: "29612", shareNode: "29613"} {
		probed := false
		for _, c := range shareObjects(t, nil)[name].Spec.Template.Spec.Containers {
			probed = probed || slices.Contains(c.Args, "--http-endpoint=127.0.0.1:"+want)
		}
		if !probed {
			t.Errorf("%s: livenessprobe does not serve at %s", name, want)
		}
	}
}

// TestShareValuesOfTheOtherChart checks that values of the chart that this one replaces are accepted.
func TestShareValuesOfTheOtherChart(t *testing.T) {
	const text = `
controller: {replicas: 1, runOnControlPlane: true, metricsPort: 30614, livenessProbe: {healthPort: 30612}, attachRequired: false,
  allowEmptyCloudConfig: true, strategyType: RollingUpdate, logLevel: 5, resources: {azurefile: {limits: {memory: 800Mi}}}}
node: {cloudConfigSecretName: azure-cloud-provider, cloudConfigSecretNamespace: kube-system, maxUnavailable: 10%, enableKataCCMount: false,
  enableManagedIdentityAuth: true, useAZNFSForNFSMounts: false, azurefileProxy: {enabled: false, installAznfsMount: true},
  nodeDriverRegistrar: {healthPort: 29617}, allowInlineVolumeKeyAccessWithIdentity: true}
linux: {enabled: true, distro: debian, dnsPolicy: Default, kubelet: /var/lib/kubelet, mountPermissions: "0777"}
windows: {enabled: false, useHostProcessContainers: true}
feature: {enableGetVolumeStats: true, enableVolumeMountGroup: true, fsGroupPolicy: ReadWriteOnceWithFSType, requiresRepublish: true}
snapshot: {enabled: true}
driver: {azureGoSDKLogLevel: "", userAgentSuffix: OSS-helm}
workloadIdentity: {clientID: 00000000-0000-0000-0000-000000000001, tenantID: 00000000-0000-0000-0000-000000000002}
customLabels: {}
`
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	p := shareObjects(t, values)[shareController].Spec.Template.Spec
	for _, want := range []string{"--metrics-address=0.0.0.0:30614", "--v=5"} {
		if !slices.Contains(p.Containers[0].Args, want) {
			t.Errorf("no %s in %q", want, p.Containers[0].Args)
		}
	}
	if !strings.Contains(fmt.Sprint(p.Containers[0].Env), "AZURE_FEDERATED_TOKEN_FILE") {
		t.Error("the workload identity has no token")
	}
}

// TestShareRefused checks that invalid values are rejected, with an error that names the key and what is wrong.
func TestShareRefused(t *testing.T) {
	checkRefused(t, shareFolder, []refused{
		{set("controller.replica", 2), []string{"/controller", "replica"}},
		{set("controller.attachRequired", true), []string{"/controller/attachRequired"}},
		{set("controller.metricsPort", 70000), []string{"/controller/metricsPort", "70,?000"}},
		{set("node.useAZNFSForNFSMounts", true), []string{"/node/useAZNFSForNFSMounts"}},
		{set("node.enableKataCCMount", true), []string{"/node/enableKataCCMount"}},
		{set("node.inlineVolumeSecretAuthz", "on"), []string{"/node/inlineVolumeSecretAuthz"}},
		{set("linux.mountPermissions", "999"), []string{"/linux/mountPermissions", "999"}},
		{set("feature.fsGroupPolicy", "Always"), []string{"/feature/fsGroupPolicy"}},
		{set("windows.enabled", true), []string{"windows.enabled", "no node service for Windows"}},
		{set("storageClasses", []any{map[string]any{"name": "a", "reclaimPolicy": "Keep"}}), []string{"/storageClasses/0/reclaimPolicy"}},
	})
}
