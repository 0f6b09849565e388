// Package addon has the manifests that connect a cluster with Azure: the cloud-controller-manager, the cloud-node-manager and
// the driver of managed disks. They are made from the charts. Layer L1: pure.
package addon

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

//go:generate go -C ../../../test/chart run . -addons ../../internal/cluster/addon

//go:embed cloud.yaml
var cloud string

//go:embed disks.yaml
var disks string

// The values in the manifests that stand for those of a cluster.
const (
	repository = "repository.invalid/kaz"
	tag        = "tag-of-kaz"
	pods       = "192.0.2.0/24"
	services   = "198.51.100.0/24"
	cluster    = "name-of-the-cluster"
	project    = "registry.k8s.io/"
	server     = "api.invalid"
	port       = `"65535"`
	routes     = "--configure-cloud-routes=true"
	waitRoutes = "--wait-routes=true"
)

// Images returns the images of kaz and of other projects in the manifests, by the name of their program.
func Images(repository, tag string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(replaced(cloud+disks, repository, tag)) {
		if reference, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), "image: "); ok {
			reference = strings.Trim(strings.TrimSpace(reference), `"`)
			program, _, _ := strings.Cut(path.Base(reference), ":")
			all[program] = reference
		}
	}
	return all
}

// replaced has images of another repository.
func replaced(text, to, version string) string {
	return strings.NewReplacer(repository, to, tag, version).Replace(text)
}

// Manifests returns the manifests of a cluster's add-ons, none if the cluster has no add-ons.
func Manifests(c definition.Cluster) []string {
	a, k := c.Spec.Addons, c.Spec.Kubernetes
	if a.Repository == "" {
		return nil
	}
	replacements := []string{pods, k.PodCIDR, services, k.ServiceCIDR, cluster, c.Metadata.Name, server, naming.Of(c).Host(), port,
		fmt.Sprintf("%q", fmt.Sprint(c.Spec.Network.APIServer.Port))}
	if k.ImageRepository != "" {
		replacements = append(replacements, project, k.ImageRepository+"/")
	}
	if k.PodNetwork != "CloudRoutes" {
		replacements = append(replacements, routes, "--configure-cloud-routes=false", waitRoutes, "--wait-routes=false")
	}
	all := []string{cloud}
	if a.Disks {
		all = append(all, disks)
	}
	for i, text := range all {
		if c.Spec.ControlPlane.Replicas == 1 {
			text = single(text)
		}
		all[i] = strings.NewReplacer(replacements...).Replace(replaced(text, a.Repository, a.Tag))
	}
	return all
}

// single leaves one replica of each Deployment, for a control plane of one member. Without a second replica a disruption budget
// would only block the drain of that member.
func single(text string) string {
	const separator = "\n---\n"
	var kept []string
	for document := range strings.SplitSeq(text, separator) {
		if !strings.Contains("\n"+document, "\nkind: PodDisruptionBudget") {
			kept = append(kept, strings.Replace(document, "\n  replicas: 2\n", "\n  replicas: 1\n", 1))
		}
	}
	return strings.TrimSuffix(strings.Join(kept, separator), "\n") + "\n"
}
