// Package prohibited reads AzureIngressProhibitedTarget objects, with which users of the Application Gateway Ingress Controller (AGIC) say
// which hosts and paths of a shared application gateway are not those of Ingresses. Layer L1.
package prohibited

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the custom resource; they are AGIC's.
const (
	Group    = "appgw.ingress.k8s.io"
	Version  = "v1"
	Kind     = "AzureIngressProhibitedTarget"
	Resource = "azureingressprohibitedtargets"
)

// GroupVersionResource is what clients and informers read.
func GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: Version, Resource: Resource}
}

// Target is a part of an application gateway that Ingresses do not get.
type Target struct {
	Object string // NAMESPACE/NAME
	Host   string // "" for all hosts
	Paths  []string
}

// Decode reads a target from the content that the API server has.
func Decode(content map[string]any) (Target, error) {
	o := unstructured.Unstructured{Object: content}
	t := Target{Object: o.GetNamespace() + "/" + o.GetName()}
	var err error
	if t.Host, _, err = unstructured.NestedString(content, "spec", "hostname"); err == nil {
		t.Paths, _, err = unstructured.NestedStringSlice(content, "spec", "paths")
	}
	if err != nil {
		return Target{}, fmt.Errorf("%s %s: %w", Kind, t.Object, err)
	}
	return t, nil
}

// Targets are all targets of a cluster.
type Targets []Target

// Concern reports whether a target is about a host or some of its paths. The host "" stands for requests of any host.
func (all Targets) Concern(host string) bool {
	for _, t := range all {
		if t.isAbout(host) {
			return true
		}
	}
	return false
}

// Prohibit returns the object that prohibits a path of a host. A path like /a/* also stands for /a and all below it, in any case of
// letters.
func (all Targets) Prohibit(host, path string) (object string, ok bool) {
	for _, t := range all {
		if !t.isAbout(host) {
			continue
		}
		if len(t.Paths) == 0 {
			return t.Object, true
		}
		for _, p := range t.Paths {
			if isBelow(trimmed(path), trimmed(p)) {
				return t.Object, true
			}
		}
	}
	return "", false
}

func (t Target) isAbout(host string) bool { return t.Host == "" || strings.EqualFold(t.Host, host) }

func trimmed(path string) string { return strings.TrimRight(strings.ToLower(path), "/*") }

func isBelow(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }
