package clustertest

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Objects note what is applied to a cluster and deleted there, in order: "apply deployments kube-system/web".
type Objects struct {
	*fake.FakeDynamicClient
	// Late are kinds that are known only after so many looks.
	Late map[string]int

	mu   sync.Mutex
	done []string
}

// NewObjects returns the objects of a cluster that knows all kinds.
func NewObjects() *Objects {
	o := &Objects{FakeDynamicClient: fake.NewSimpleDynamicClient(runtime.NewScheme()), Late: map[string]int{}}
	note := func(verb string, a clienttesting.Action, name string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.done = append(o.done, verb+" "+a.GetResource().Resource+" "+strings.TrimPrefix(a.GetNamespace()+"/"+name, "/"))
	}
	o.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchAction)
		note("apply", a, p.GetName())
		object := &unstructured.Unstructured{}
		return true, object, object.UnmarshalJSON(p.GetPatch())
	})
	o.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		note("delete", a, a.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	return o
}

// Done is what was applied and deleted since the last call.
func (o *Objects) Done() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.done
	o.done = nil
	return done
}

// Kinds knows all kinds: their resources are their plurals, and those of the cluster itself are listed.
type Kinds struct {
	meta.RESTMapper
	*Objects
}

// Reset implements [meta.ResettableRESTMapper].
func (Kinds) Reset() {}

// RESTMapping implements [meta.RESTMapper].
func (k Kinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if k.Late[kind.Kind]--; k.Late[kind.Kind] >= 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	full := kind.WithVersion(versions[0])
	resource, _ := meta.UnsafeGuessKindToResource(full)
	scope := meta.RESTScopeNamespace
	if slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "CSIDriver", "CustomResourceDefinition", "Namespace", "PriorityClass",
		"StorageClass"}, kind.Kind) {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: full, Scope: scope}, nil
}
