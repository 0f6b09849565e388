package apimodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// model is a model of which each field is used or dropped.
type model struct {
	root    field
	used    map[string]bool   // paths of the values that are in the definition
	because map[string]string // reasons for single values, by path
}

// field is a value of a model and its path.
type field struct {
	path  string
	value any
	key   string // the name of a field of an object
}

// get is a field of an object. Names are not case-sensitive, as in aks-engine.
func (f field) get(name string) field {
	object, _ := f.value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if strings.EqualFold(key, name) {
			return field{join(f.path, key), object[key], key}
		}
	}
	return field{path: join(f.path, name), key: name}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func (f field) items() []field {
	list, _ := f.value.([]any)
	var all []field
	for i, item := range list {
		all = append(all, field{path: fmt.Sprintf("%s[%d]", f.path, i), value: item})
	}
	return all
}

// fields are the fields of an object by their names, sorted.
func (f field) fields() []field {
	object, _ := f.value.(map[string]any)
	var all []field
	for _, key := range slices.Sorted(maps.Keys(object)) {
		all = append(all, field{join(f.path, key), object[key], key})
	}
	return all
}

// text uses a text. Numbers are texts, too, because models have both.
func (f field) text(m *model) string {
	switch v := f.value.(type) {
	case string:
		m.used[f.path] = true
		return v
	case json.Number:
		m.used[f.path] = true
		return v.String()
	default:
		return ""
	}
}

// number uses a whole number, 0 for none.
func (f field) number(m *model) int {
	n, err := strconv.Atoi(f.text(m))
	if err != nil {
		delete(m.used, f.path)
		return 0
	}
	return n
}

// truth uses a boolean.
func (f field) truth(m *model) bool {
	v, ok := f.value.(bool)
	if ok {
		m.used[f.path] = true
	}
	return v
}

// drop says why a value is not used.
func (m *model) drop(f field, format string, args ...any) {
	if f.value == nil {
		return
	}
	m.forget(f)
	m.because[f.path] = fmt.Sprintf(format, args...)
}

// forget says that a value and what is in it is not used.
func (m *model) forget(f field) {
	delete(m.used, f.path)
	for _, inner := range append(f.items(), f.fields()...) {
		m.forget(inner)
	}
}

// left are the fields that are not used. One that has a reason is named as a whole.
func (m *model) left() []Dropped {
	var all []Dropped
	var walk func(field, string)
	walk = func(f field, reason string) {
		if m.used[f.path] {
			return
		}
		if own, has := m.because[f.path]; has {
			all = append(all, Dropped{f.path, own})
			return
		}
		if general, has := reasons()[pattern(f.path)]; has {
			if !m.uses(f) {
				all = append(all, Dropped{f.path, general})
				return
			}
			reason = general
		}
		inner := append(f.items(), f.fields()...)
		for _, one := range inner {
			walk(one, reason)
		}
		if len(inner) == 0 && f.value != nil && f.path != "" && !empty(f.value) {
			all = append(all, Dropped{f.path, reason})
		}
	}
	walk(m.root, "kaz has nothing like it")
	return all
}

// uses reports whether a value in a field is used.
func (m *model) uses(f field) bool {
	if m.used[f.path] {
		return true
	}
	return slices.ContainsFunc(append(f.items(), f.fields()...), m.uses)
}

// empty reports whether a value says nothing.
func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// pattern is a path in lower case without indexes and without the part that all paths have.
func pattern(path string) string {
	var b strings.Builder
	inside := false
	for _, r := range strings.ToLower(path) {
		switch {
		case r == '[':
			inside = true
		case r == ']':
			inside = false
		case !inside:
			b.WriteRune(r)
		}
	}
	text := strings.TrimPrefix(b.String(), "properties.")
	return strings.Replace(text, "orchestratorprofile.kubernetesconfig", "kubernetes", 1)
}

// reasons say why fields are dropped, by pattern. A reason is for all that is in the field.
func reasons() map[string]string {
	const secret = "kaz makes the secrets of a cluster itself, and keeps them in the key vault"
	const images = "kubeadm chooses the images of the control plane, from registry.k8s.io: set a mirror on the machines with an Extension"
	const addon = "kaz installs no add-ons: add it as manifests of an Extension"
	return map[string]string{
		"id": "the new cluster has its own resources", "name": "the name is that of the DNS prefix", "type": "it is the type of a model",
		"plan":                    "a cluster of kaz has no plan of the marketplace",
		"provisioningstate":       "it is the state of the old cluster",
		"serviceprincipalprofile": "machines of kaz have managed identities: the service principal is not needed",
		"certificateprofile":      secret, "kubernetes.etcdencryptionkey": secret,
		"windowsprofile": "kaz has no Windows nodes", "featureflags": "it switches behaviour of aks-engine",
		"aadprofile":                              "set the oidc- flags of the API server in spec.kubernetes.apiServer.extraArgs",
		"customcloudprofile":                      "kaz knows the public clouds, and the clouds of the US Government and China",
		"extensionprofiles":                       "an extension of aks-engine is a script with a template of its own: write an Extension",
		"masterprofile.extensions":                "write an Extension with appliesTo.controlPlane",
		"masterprofile.preprovisionextension":     "write an Extension with files; commands run after a machine has joined",
		"agentpoolprofiles.extensions":            "write an Extension with appliesTo.pools",
		"agentpoolprofiles.preprovisionextension": "write an Extension with files; commands run after a machine has joined",
		"masterprofile.customfiles":               "write an Extension with files: the model has only their paths",
		"masterprofile.firstconsecutivestaticip":  "members have addresses that Azure chooses",
		"masterprofile.vnetcidr":                  "the subnets that exist say their addresses themselves",
		"masterprofile.distro":                    "the image is spec.controlPlane.image",
		"agentpoolprofiles.distro":                "the image is spec.image",
		"masterprofile.availabilityprofile":       "members of kaz are standalone machines, in zones or in an availability set",
		"masterprofile.cosmosetcd":                "kaz has etcd on the members of the control plane",
		"masterprofile.kubernetesconfig":          "kaz configures kubelets by pool fields such as maxPods, labels and taints",
		"agentpoolprofiles.kubernetesconfig":      "kaz configures kubelets by pool fields such as maxPods, labels and taints",
		"agentpoolprofiles.customvmtags":          "spec.azure.tags has tags of all resources, and a TemplatePatch those of one unit",
		"masterprofile.customvmtags":              "spec.azure.tags has tags of all resources, and a TemplatePatch those of one unit",
		"agentpoolprofiles.singleplacementgroup":  "scale sets of kaz have several placement groups",
		"masterprofile.singleplacementgroup":      "members of kaz are standalone machines",
		"agentpoolprofiles.vmssname":              "the name of the scale set is that of the cluster and the pool",
		"linuxprofile.secrets":                    "write an Extension with a command that fetches them",
		"linuxprofile.enableunattendedupgrades":   "the image decides it: write an Extension that changes it",
		"kubernetes.addons":                       addon, "kubernetes.components": "kubeadm writes the manifests of the control plane",
		"kubernetes.kubeletconfig":                "kaz configures kubelets by pool fields such as maxPods, labels and taints",
		"kubernetes.cloudcontrollermanagerconfig": "the cloud-controller-manager is an add-on, with its own flags",
		"kubernetes.networkpolicy":                "a network policy engine is an add-on: add it as manifests of an Extension",
		"kubernetes.kubeproxymode":                "kube-proxy has the mode that kubeadm chooses",
		"kubernetes.loadbalancersku":              "load balancers of kaz are of the SKU Standard",
		"kubernetes.excludemasterfromstandardlb":  "the cloud-controller-manager decides it by a label of the nodes",
		"kubernetes.maximumloadbalancerrulecount": "it is a key of azure.json: write an Extension that changes the file",
		"kubernetes.usecloudcontrollermanager":    "clusters have a cloud-controller-manager always",
		"kubernetes.useinstancemetadata":          "machines use instance metadata always",
		"kubernetes.enablerbac":                   "clusters have RBAC always",
		"kubernetes.enableaggregatedapis":         "clusters have aggregated APIs always",
		"kubernetes.enablepodsecuritypolicy":      "Kubernetes has no PodSecurityPolicy since version 1.25: use Pod Security Admission",
		"kubernetes.containerruntime":             "machines have containerd always",
		"kubernetes.containerdversion":            "the image of the machines has its containerd",
		"kubernetes.etcdversion":                  "kubeadm chooses the version of etcd",
		"kubernetes.kubernetesimagebase":          images, "kubernetes.mcrkubernetesimagebase": images,
		"kubernetes.privatecluster.jumpboxprofile": "use a machine in the virtual network, or a VPN: kaz makes no jump box",
		"kubernetes.dnsserviceip":                  "the address of the cluster's DNS is the tenth of the addresses of Services",
		"kubernetes.etcdstoragelimitgb":            "set the quota of etcd with an Extension",
	}
}
