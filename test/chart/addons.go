package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// addonFolder is the folder of the manifests that `kaz cluster` installs.
var addonFolder = filepath.Join("..", "..", "internal", "cluster", "addon")

// The values in the add-ons' manifests that package addon replaces by those of a cluster.
const (
	addonRepository = "repository.invalid/kaz"
	addonTag        = "tag-of-kaz"
	addonPods       = "192.0.2.0/24"
	addonServices   = "198.51.100.0/24"
	addonCluster    = "name-of-the-cluster"
	addonServer     = "api.invalid"
	addonPort       = "65535"
)

// hostCertificates is where machines have the certificate authorities that they trust.
const hostCertificates = "/etc/ssl/certs"

// addons returns the add-ons of `kaz cluster` by their file: the charts with values for its clusters.
func addons() map[string]map[string]map[string]any {
	image := func(name string) map[string]any {
		return map[string]any{"imageRepository": addonRepository, "imageName": name, "imageTag": addonTag}
	}
	// These programs run on the network of the machine. Some of them run before kube-proxy, which makes the API server's
	// Service work. The proxy in turn waits for the addresses that the cloud-node-manager gives the node.
	server := []any{
		map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": addonServer},
		map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": addonPort},
	}
	manager := image("cloud-controller-manager")
	maps.Copy(manager, map[string]any{
		"extraEnv":             server,
		"approveAttestedNodes": "true", "clusterCIDR": addonPods, "serviceClusterIPRange": addonServices, "caCertDir": hostCertificates,
		// kube-controller-manager gives nodes their ranges of pods, because it runs before this program does.
		"extraArgs": map[string]any{"controllers": "*,-cloud-node,-node-ipam-controller"},
	})
	nodes := image("cloud-node-manager")
	maps.Copy(nodes, map[string]any{"waitRoutes": "true", "extraEnv": server})
	certificates := map[string]any{
		"extraVolumes":      []any{map[string]any{"name": "certificates", "hostPath": map[string]any{"path": hostCertificates}}},
		"extraVolumeMounts": []any{map[string]any{"name": "certificates", "mountPath": hostCertificates, "readOnly": true}},
	}
	controller := map[string]any{"runOnControlPlane": true}
	maps.Copy(controller, certificates)
	disk := everyDisk()
	maps.Copy(disk, map[string]any{
		"image":      map[string]any{"baseRepo": addonRepository, "azuredisk": map[string]any{"tag": addonTag}},
		"controller": controller, "snapshot": map[string]any{"sidecar": false},
	})
	return map[string]map[string]map[string]any{
		"cloud.yaml": {folder: {
			"infra": map[string]any{"clusterName": addonCluster}, "cloudControllerManager": manager, "cloudNodeManager": nodes,
		}},
		"disks.yaml": {diskFolder: disk},
	}
}

// addonManifests renders the add-ons.
func addonManifests() (map[string]string, error) {
	files := map[string]string{}
	for file, charts := range addons() {
		for dir, values := range charts {
			text, err := addon(dir, values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			files[file] = text
		}
	}
	return files, nil
}

// addon renders a chart into one file, the access rules first.
func addon(dir string, values map[string]any) (string, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return "", fmt.Errorf("load %s: %w", dir, err)
	}
	texts := map[string]string{}
	if err := plainOf(c, values, texts); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made from deploy/%s by make generate: change that.\n", sources[c.Name()])
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for document := range strings.SplitSeq(texts[name], "\n---\n") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			if len(o) == 0 {
				continue
			}
			withoutLiveness(o)
			var text bytes.Buffer
			out, err := yaml.Marshal(o)
			if err != nil {
				return "", err
			}
			text.WriteString("---\n")
			text.Write(out)
			b.WriteString(text.String())
		}
	}
	return b.String(), nil
}

// withoutLiveness removes the container liveness-probe of the disk driver and the probe that asks it: its image is not among
// those that kaz can build.
func withoutLiveness(o map[string]any) {
	at := o
	for _, key := range []string{"spec", "template", "spec"} {
		at, _ = at[key].(map[string]any)
	}
	all, _ := at["containers"].([]any)
	isProbe := func(c any) bool { return c.(map[string]any)["name"] == "liveness-probe" }
	if !slices.ContainsFunc(all, isProbe) {
		return
	}
	all = slices.DeleteFunc(all, isProbe)
	for _, c := range all {
		delete(c.(map[string]any), "livenessProbe")
	}
	at["containers"] = all
}

func writeAddons(dir string) error {
	files, err := addonManifests()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
