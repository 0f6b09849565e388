package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/plan/rights"
)

// Programs of which the arguments are read.
const (
	gatewayController = "application-gateway-controller"
	scalerProvider    = "cluster-autoscaler-provider"
	dnsWebhook        = "external-dns-webhook"
)

// program is a component of kaz: the name of its image, and the features of the rights table that it always uses. Others depend on
// StorageClasses and the like. The features of the cloud-controller-manager depend on azure.json.
type program struct {
	name     string
	features []rights.Feature
}

func programs() []program {
	return []program{
		{"cloud-controller-manager", nil},
		{"cloud-node-manager", nil},
		{"cloud-node-manager-windows", nil},
		{"health-probe-proxy", nil},
		{"azuredisk-csi-driver", []rights.Feature{rights.Volumes, rights.Attachments}},
		{"azurefile-csi-driver", []rights.Feature{rights.Shares}},
		{scalerProvider, []rights.Feature{rights.NodeGroups}},
		{gatewayController, []rights.Feature{rights.Gateways, rights.GatewayReadiness}},
		{dnsWebhook, nil}, // by the kind of its zones
	}
}

// Selectors returns the label selectors of the pods of all components.
func Selectors() []string {
	return []string{
		"component in (cloud-controller-manager,cloud-node-manager,cloud-node-manager-windows,health-probe-proxy)",
		"app in (csi-azuredisk-controller,csi-azuredisk-node,csi-azurefile-controller,csi-azurefile-node,cluster-autoscaler-provider," +
			"application-gateway-controller)",
		"app.kubernetes.io/name=external-dns",
	}
}

// FindComponents returns kaz's components in pods, by program and version. Pods of other software with the same labels have other images.
func FindComponents(pods []v1.Pod) []Component {
	found := map[Component]int{}
	for _, pod := range pods {
		in := map[Component]bool{}
		for _, c := range pod.Spec.Containers {
			if one := imageOf(c.Image); isComponent(one.Program) {
				in[one] = true
			}
		}
		for one := range in {
			found[one]++
		}
	}
	all := make([]Component, 0, len(found))
	for one, n := range found {
		one.Pods = n
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Version, b.Version))
	})
	return all
}

func isComponent(name string) bool {
	return slices.ContainsFunc(programs(), func(p program) bool { return p.name == name })
}

// imageOf splits REGISTRY:PORT/PATH/PROGRAM:VERSION@DIGEST.
func imageOf(image string) Component {
	image, _, _ = strings.Cut(image, "@")
	program, version, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return Component{Program: program, Version: version}
}

// FeaturesOf returns the features that the components use, besides those of the cloud-controller-manager.
func FeaturesOf(components []Component) []rights.Feature {
	used := map[rights.Feature]bool{}
	for _, c := range components {
		for _, p := range programs() {
			for _, feature := range p.features {
				used[feature] = used[feature] || p.name == c.Program
			}
		}
	}
	maps.DeleteFunc(used, func(_ rights.Feature, used bool) bool { return !used })
	return slices.Sorted(maps.Keys(used))
}
