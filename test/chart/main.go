// Command chart renders a chart of deploy with Helm's library to standard output. With -manifests it renders all charts as
// plain manifests, for deploy/manifests. With -addons it writes the manifests that kaz cluster installs. It has its own
// module because only it needs Helm.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

func main() {
	dir := flag.String("chart", filepath.Join("..", "..", "deploy", "chart"), "folder of the chart")
	values := flag.String("values", "", "file with values, in place of the chart's defaults")
	manifests := flag.String("manifests", "", "write the plain manifests of all charts into this folder, from the defaults")
	tests := flag.Bool("tests", false, "render the objects of helm test instead of what is installed")
	addons := flag.String("addons", "", "write the manifests that kaz cluster installs into this folder")
	flag.Parse()
	var err error
	if *addons != "" {
		err = writeAddons(*addons)
	} else {
		err = run(*dir, *values, *manifests, *tests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(dir, values, manifests string, tests bool) error {
	if manifests != "" {
		return writeManifests(manifests)
	}
	c, err := loader.Load(dir)
	if err != nil {
		return fmt.Errorf("load %s: %w", dir, err)
	}
	given := map[string]any{}
	if values != "" {
		text, err := os.ReadFile(values)
		if err != nil {
			return err
		}
		if err := yaml.Unmarshal(text, &given); err != nil {
			return fmt.Errorf("%s: %w", values, err)
		}
	}
	rendered, err := renderOnly(c, given, func(path string) bool { return strings.Contains(path, testFolder) == tests })
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		fmt.Printf("---\n%s\n", rendered[name])
	}
	return nil
}

// render returns the rendered templates by name, without empty ones and those of helm test.
func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	return renderOnly(c, values, func(name string) bool { return !strings.Contains(name, testFolder) })
}

// testFolder has the templates of helm test.
const testFolder = "/templates/tests/"

// renderOnly returns the rendered templates with chosen paths by name, without empty ones.
func renderOnly(c *chart.Chart, values map[string]any, chosen func(path string) bool) (map[string]string, error) {
	all, err := util.ToRenderValues(c, values,
		common.ReleaseOptions{Name: "kaz", Namespace: "kube-system", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	rendered := map[string]string{}
	for name, text := range texts {
		if text = strings.TrimSpace(text); text != "" && strings.HasSuffix(name, ".yaml") && chosen(name) {
			rendered[filepath.Base(name)] = text
		}
	}
	return rendered, nil
}

// charts returns the folders of the charts, with values that enable all features.
func charts() map[string]map[string]any {
	disk := everyDisk()
	// A VolumeSnapshotClass without its CustomResourceDefinition would make kubectl refuse the whole folder.
	disk["snapshot"] = map[string]any{"enabled": true}
	// The charts of both drivers can have the snapshot-controller, and a cluster needs one.
	share := everyShare()
	delete(share, "snapshot")
	return map[string]map[string]any{
		folder: everything(), diskFolder: disk, shareFolder: share, autoscalerFolder: {}, gatewayFolder: named(), shadowFolder: {},
	}
}

var (
	folder           = filepath.Join("..", "..", "deploy", "chart")
	diskFolder       = filepath.Join("..", "..", "deploy", "charts", "azuredisk-csi-driver")
	shareFolder      = filepath.Join("..", "..", "deploy", "charts", "azurefile-csi-driver")
	autoscalerFolder = filepath.Join("..", "..", "deploy", "charts", "cluster-autoscaler-provider")
	gatewayFolder    = filepath.Join("..", "..", "deploy", "charts", "application-gateway-controller")
	shadowFolder     = filepath.Join("..", "..", "deploy", "charts", "kaz-shadow")
)

// named returns values of the chart application-gateway-controller with the name of a gateway, which users replace.
func named() map[string]any { return map[string]any{"gateway": map[string]any{"name": "gateway"}} }

// everything returns values that enable all features of the chart kaz.
func everything() map[string]any {
	return map[string]any{"cloudNodeManager": map[string]any{
		"enableHealthProbeProxy": true, "windows": map[string]any{"enabled": true},
	}}
}

// everyDisk returns values that enable all features of the chart azuredisk-csi-driver.
func everyDisk() map[string]any {
	return map[string]any{
		"snapshot": map[string]any{"enabled": true, "VolumeSnapshotClass": map[string]any{"enabled": true}},
		"storageClasses": []any{
			map[string]any{"name": "managed-csi", "default": true, "parameters": map[string]any{"skuName": "StandardSSD_LRS"}},
			map[string]any{"name": "managed-csi-premium", "parameters": map[string]any{"skuName": "Premium_LRS"}},
		},
	}
}

// everyShare returns values that enable all features of the chart azurefile-csi-driver.
func everyShare() map[string]any {
	return map[string]any{
		"snapshot": map[string]any{"enabled": true, "VolumeSnapshotClass": map[string]any{"enabled": true}},
		"storageClasses": []any{
			map[string]any{"name": "azurefile-csi", "parameters": map[string]any{"skuName": "Standard_LRS"}},
			map[string]any{"name": "azurefile-csi-premium", "parameters": map[string]any{"skuName": "Premium_LRS"}},
			map[string]any{"name": "azurefile-csi-nfs", "parameters": map[string]any{"protocol": "nfs"}},
		},
	}
}

// sources are the folders of the charts in deploy.
var sources = map[string]string{"kaz": "chart", "azuredisk-csi-driver": "charts/azuredisk-csi-driver",
	"azurefile-csi-driver": "charts/azurefile-csi-driver", "cluster-autoscaler-provider": "charts/cluster-autoscaler-provider",
	"application-gateway-controller": "charts/application-gateway-controller", "kaz-shadow": "charts/kaz-shadow"}

// notOfPlainManifests reports whether a line is a label that names Helm.
func notOfPlainManifests(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "helm.sh/chart:") || strings.HasPrefix(line, "app.kubernetes.io/managed-by:") ||
		strings.HasPrefix(line, "app.kubernetes.io/instance:")
}

// plain returns the manifests for users without Helm: one file for each program, starting with its
// access rules.
func plain() (map[string]string, error) {
	files := map[string]string{}
	for dir, values := range charts() {
		c, err := loader.Load(dir)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", dir, err)
		}
		if err := plainOf(c, values, files); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return files, nil
}

// plainOf adds the manifests of a chart to files.
func plainOf(c *chart.Chart, values map[string]any, files map[string]string) error {
	rendered, err := render(c, values)
	if err != nil {
		return err
	}
	for name, text := range rendered {
		if strings.HasSuffix(name, "-rbac.yaml") {
			continue
		}
		var b bytes.Buffer
		b.WriteString("# Made from deploy/" + sources[c.Name()] + " by make generate: change that.\n")
		if rbac := rendered[strings.TrimSuffix(name, ".yaml")+"-rbac.yaml"]; rbac != "" {
			text = rbac + "\n---\n" + text
		}
		for line := range strings.Lines(text) {
			if !notOfPlainManifests(line) {
				b.WriteString(line)
			}
		}
		b.WriteString("\n")
		files[name] = b.String()
	}
	return nil
}

func writeManifests(dir string) error {
	files, err := plain()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if _, ok := files[filepath.Base(file)]; !ok {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
