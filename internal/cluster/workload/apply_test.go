package workload

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/cluster/boot"
	"kaz/internal/testkit/clustertest"
)

// manifests are texts of manifests as those of extensions.
func manifests(texts ...string) []boot.Manifest {
	var all []boot.Manifest
	for _, text := range texts {
		all = append(all, boot.Manifest{Name: "e-000", Text: text})
	}
	return all
}

// TestApply checks the order, the namespaces and what is deleted: what only the manifests of before have, unless it holds data.
func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := clustertest.NewObjects()
		objects.Late["Widget"] = 3 // until its definition is established
		var said []string
		c := &Cluster{Client: fake.NewClientset(), Objects: objects, Kinds: clustertest.Kinds{Objects: objects}}
		c.Say = func(format string, args ...any) { said = append(said, strings.TrimSpace(format)) }
		before := manifests(`{apiVersion: v1, kind: Namespace, metadata: {name: data}}
---
{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web, namespace: default}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: data}}`)
		now := manifests("# only a comment\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n",
			`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}}`,
			"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: data}\n")
		if err := c.Apply(t.Context(), before, now); err != nil {
			t.Fatal(err)
		}
		want := []string{"apply deployments default/web", "apply customresourcedefinitions widgets.example.com", "apply widgets data/w",
			"delete configmaps data/old"}
		if diff := cmp.Diff(want, objects.Done()); diff != "" {
			t.Error(diff)
		}
		if !slices.Contains(said, "%s is no longer in a manifest, and stays") {
			t.Errorf("said %q", said)
		}
	})
}

// TestApplyMistakes checks that errors name the manifest or the object.
func TestApplyMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]string{
			"{kind: [": "manifest e-000: ",
			"- a list": "manifest e-000: ",
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}": "Widget w: no matches for kind",
		} {
			objects := clustertest.NewObjects()
			objects.Late["Widget"] = 1000
			c := &Cluster{Client: fake.NewClientset(), Objects: objects, Kinds: clustertest.Kinds{Objects: objects}}
			if err := c.Apply(t.Context(), nil, manifests(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", text, err, want)
			}
		}
	})
}

// TestHooks checks the objects of charts: the Job of a hook is made anew if it cannot change, and what Helm is to keep stays.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := clustertest.NewObjects()
		refusals := 0
		objects.PrependReactor("patch", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if refusals++; refusals > 3 {
				return false, nil, nil
			}
			name := a.(clienttesting.PatchAction).GetName()
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, name, nil)
		})
		c := &Cluster{Client: fake.NewClientset(), Objects: objects, Kinds: clustertest.Kinds{Objects: objects}}
		job := `{apiVersion: batch/v1, kind: Job, metadata: {name: setup, namespace: web, annotations: {helm.sh/hook: pre-install}}}`
		before := manifests("{apiVersion: v1, kind: Secret, metadata: {name: kept, namespace: web, " +
			"annotations: {helm.sh/resource-policy: keep}}}")
		if err := c.Apply(t.Context(), before, manifests(job)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"delete jobs web/setup", "apply jobs web/setup"}, objects.Done()); diff != "" {
			t.Error(diff)
		}
		refusals = 0
		plain := `{apiVersion: batch/v1, kind: Job, metadata: {name: setup, namespace: web}}`
		if err := c.Apply(t.Context(), nil, manifests(plain)); !apierrors.IsInvalid(err) {
			t.Errorf("a Job of a manifest: %v", err)
		}
	})
}

// TestApplied checks that the cluster says what was applied, so that later manifests are compared with it and not with a definition.
func TestApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := clustertest.NewObjects()
		c := &Cluster{Client: fake.NewClientset(), Objects: objects, Kinds: clustertest.Kinds{Objects: objects}}
		old := manifests("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}", "{apiVersion: v1, kind: Namespace, metadata: {name: web}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: k, annotations: {helm.sh/resource-policy: keep}}}")
		now := manifests("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {x: y}}")
		applied := func() Applied {
			t.Helper()
			a, err := c.Applied(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := applied(); a.Has(old) || !a.Has(nil) {
			t.Error("a cluster of an older kaz does not say what it has")
		}
		if err := c.Apply(t.Context(), nil, old); err != nil {
			t.Fatal(err)
		}
		if a := applied(); !a.Has(old) || a.Has(now) || a.Has(nil) {
			t.Errorf("the cluster has %+v", a)
		}
		// The definition of before has an object that was not applied.
		before := manifests("{apiVersion: v1, kind: Service, metadata: {name: c}}")
		gone, err := applied().Gone(before, now)
		if diff := cmp.Diff([]string{"Deployment b", "Service c"}, gone); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		objects.Done()
		if err := c.Apply(t.Context(), before, now); err != nil {
			t.Fatal(err)
		}
		want := []string{"apply configmaps web/a", "delete deployments default/b", "delete services default/c"}
		if diff := cmp.Diff(want, objects.Done()); diff != "" {
			t.Error(diff)
		}
		if a := applied(); !a.Has(now) {
			t.Errorf("the cluster has %+v", a)
		}
	})
}
