package helmchart

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kaz/internal/cluster/definition"
)

// object is an object of a chart.
type object struct {
	*unstructured.Unstructured

	from string // its template
	// phase is the place of a hook's object: -1 before the other objects, and 1 after them. It is 0 for the other objects.
	// weight orders the objects of a phase.
	phase, weight int
}

// parse reads the objects of a rendered template.
func parse(from, text string) ([]object, error) {
	var all []object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", from, err)
		}
		found, err := parseOne(document)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", from, err)
		}
		for _, one := range found {
			all = append(all, object{Unstructured: one, from: from})
		}
	}
}

// parseOne reads a document, which has no object, one, or a list of them.
func parseOne(document []byte) ([]*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if text := string(text); text == "null" || text == "{}" || text == `""` {
		return nil, nil
	}
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("no object of Kubernetes: %w", err)
	}
	if head.APIVersion == "v1" && head.Kind == "List" {
		var all []*unstructured.Unstructured
		for _, item := range head.Items {
			found, err := parseOne(item)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
	var one unstructured.Unstructured
	if err := one.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if one.GetAPIVersion() == "" || one.GetName() == "" {
		return nil, fmt.Errorf("a %s has no apiVersion or no metadata.name", cmp.Or(one.GetKind(), "document"))
	}
	return []*unstructured.Unstructured{&one}, nil
}

const (
	hookAnnotation   = "helm.sh/hook"
	weightAnnotation = "helm.sh/hook-weight"
)

// hook reads the hooks of an object. It is false for objects that an installation does not have: tests, and what Helm does when a
// release is deleted or rolled back. An object for upgrades only is refused, because it would run when the cluster is made.
func (o *object) hook() (bool, error) {
	annotation := o.GetAnnotations()[hookAnnotation]
	if annotation == "" {
		return true, nil
	}
	hooks := strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' })
	weight, err := strconv.Atoi(cmp.Or(o.GetAnnotations()[weightAnnotation], "0"))
	if err != nil {
		return false, fmt.Errorf("template %s: annotation %s: %w", o.from, weightAnnotation, err)
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(hooks, name) })
	}
	switch {
	case has("pre-install", "crd-install"):
		o.phase, o.weight = -1, weight
	case has("post-install"):
		o.phase, o.weight = 1, weight
	case has("pre-upgrade", "post-upgrade"):
		return false, fmt.Errorf("template %s: %s %s has the hook %s, and kaz runs no hooks of upgrades: set the value that turns it off",
			o.from, o.GetKind(), o.GetName(), annotation)
	default:
		return false, nil
	}
	return true, nil
}

// rank orders kinds: what others need comes first. Webhooks come last, because they refuse objects until their pods run.
func (o object) rank() int {
	switch o.GetKind() {
	case "Namespace":
		return 0
	case crdKind:
		return 1
	case "PriorityClass", "ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
		"ResourceQuota", "LimitRange":
		return 2
	case "ClusterRole", "Role":
		return 3
	case "ClusterRoleBinding", "RoleBinding":
		return 4
	case "Service":
		return 5
	case "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return 7
	default:
		return 6
	}
}

const crdKind = "CustomResourceDefinition"

// within puts an object that names no namespace into that of the release.
func (o object) within(namespace string, cluster map[string]bool) {
	if o.GetNamespace() == "" && !cluster[o.GroupVersionKind().GroupKind().String()] {
		o.SetNamespace(namespace)
	}
}

// clusterKinds are the kinds without namespaces: those of Kubernetes, and those that the CustomResourceDefinitions of a chart say.
func clusterKinds(all []object) map[string]bool {
	kinds := map[string]bool{}
	for group, names := range map[string]string{
		"": "Namespace Node PersistentVolume ComponentStatus",
		"admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy " +
			"ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
		"apiextensions.k8s.io":         crdKind,
		"apiregistration.k8s.io":       "APIService",
		"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
		"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
		"networking.k8s.io":            "IngressClass IPAddress ServiceCIDR",
		"node.k8s.io":                  "RuntimeClass",
		"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
		"resource.k8s.io":              "DeviceClass ResourceSlice DeviceTaintRule",
		"scheduling.k8s.io":            "PriorityClass",
		"storage.k8s.io":               "StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass",
	} {
		for kind := range strings.FieldsSeq(names) {
			kinds[strings.TrimSuffix(kind+"."+group, ".")] = true
		}
	}
	for _, o := range all {
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		if o.GetKind() == crdKind && scope == "Cluster" {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			kinds[kind+"."+group] = true
		}
	}
	return kinds
}

// system are namespaces that Kubernetes brings.
func system() []string { return []string{"default", "kube-system", "kube-public", "kube-node-lease"} }

// manifests are the texts of objects: first those that others need to be known.
func manifests(all []object, c definition.Chart) ([]definition.Packed, error) {
	var first, rest []object
	named := slices.Contains(system(), c.Namespace) || !c.CreateNamespace
	for _, o := range all {
		named = named || o.GetKind() == "Namespace" && o.GetName() == c.Namespace
		if o.GetKind() == "Namespace" || o.GetKind() == crdKind {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	if !named {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(c.Namespace)
		first = slices.Insert(first, 0, object{Unstructured: namespace})
	}
	var texts []definition.Packed
	for _, part := range [][]object{first, rest} {
		if len(part) == 0 {
			continue
		}
		var text strings.Builder
		for _, o := range part {
			document, err := yaml.Marshal(o.Object)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
			}
			text.WriteString("---\n")
			text.Write(document)
		}
		texts = append(texts, definition.Packed(text.String()))
	}
	return texts, nil
}
