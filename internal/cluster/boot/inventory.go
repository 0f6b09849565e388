package boot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The ConfigMap of the cluster that says which manifests were applied last, and which objects they had. A later kaz compares it with its
// own manifests, and deletes the objects that they no longer have.
const (
	InventoryName = "kaz-manifests"
	// ChecksumKey has the [Checksum] of the manifests, and ObjectsKey the inventory.
	ChecksumKey = "checksum"
	ObjectsKey  = "objects"
)

// PolicyAnnotation at an object, with the value keep, lets it stay when no manifest has it any more. Charts set it.
const PolicyAnnotation = "helm.sh/resource-policy"

// Objects are those of manifests.
func Objects(manifests []Manifest) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, m := range manifests {
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(m.Text), 4096)
		for {
			var object unstructured.Unstructured
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("manifest %s: %w", m.Name, err)
			}
			if len(object.Object) > 0 { // and no empty document
				all = append(all, &object)
			}
		}
	}
	return all, nil
}

// Key returns a text that identifies an object. It does not contain the API version, which may differ between manifests.
func Key(object *unstructured.Unstructured) string {
	namespace := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	return object.GroupVersionKind().GroupKind().String() + " " + namespace + "/" + object.GetName()
}

// Checksum stands for manifests and their order.
func Checksum(manifests []Manifest) string {
	sum := sha256.New()
	for _, m := range manifests {
		fmt.Fprintf(sum, "%d\n%s\n", len(m.Text), m.Text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// entry is an object of an inventory.
type entry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Keep       bool   `json:"keep,omitempty"`
}

// Inventory is the ConfigMap about manifests.
func Inventory(manifests []Manifest) (*unstructured.Unstructured, error) {
	objects, err := Objects(manifests)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, o := range objects {
		line, err := json.Marshal(entry{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName(),
			o.GetAnnotations()[PolicyAnnotation] == "keep"})
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line))
	}
	return &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": InventoryName, "namespace": metav1.NamespaceSystem},
		"data":     object{ChecksumKey: Checksum(manifests), ObjectsKey: strings.Join(lines, "\n")}}}, nil
}

// ReadInventory reads the objects of an inventory, with what a deletion needs of them.
func ReadInventory(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %s: %.100q: %w", InventoryName, ObjectsKey, line, err)
		}
		o := &unstructured.Unstructured{Object: object{"apiVersion": e.APIVersion, "kind": e.Kind}}
		o.SetNamespace(e.Namespace)
		o.SetName(e.Name)
		if e.Keep {
			o.SetAnnotations(map[string]string{PolicyAnnotation: "keep"})
		}
		all = append(all, o)
	}
	return all, nil
}
