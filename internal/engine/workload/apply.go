package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"kaz/internal/plan/cluster/boot"
)

// fieldManager owns the fields of manifests. The boot script of the first member applies them with the same name.
const fieldManager = "kaz"

// kindWait is how long a kind may take to be known after its CustomResourceDefinition.
const kindWait = 30 * time.Second

// lasting are kinds of objects that hold what cannot be had again.
var lasting = []string{"Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"}

// Apply brings objects to their manifests, in this order, and deletes those that only the manifests of before have. Objects that hold
// data stay.
func (c *Cluster) Apply(ctx context.Context, before, now []boot.Manifest) error {
	old, err := objects(before)
	if err != nil {
		return err
	}
	all, err := objects(now)
	if err != nil {
		return err
	}
	c.say("apply %d objects of add-ons and extensions", len(all))
	stays := map[string]bool{}
	for _, object := range all {
		stays[key(object)] = true
		if err := c.applyOne(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", identity(object), err)
		}
	}
	for _, object := range slices.Backward(old) {
		if stays[key(object)] {
			continue
		}
		if err := c.remove(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", identity(object), err)
		}
	}
	return nil
}

// applyOne applies an object. It waits for a kind that is not known yet.
func (c *Cluster) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := c.clientOf(object)
	for deadline := time.Now().Add(kindWait); meta.IsNoMatchError(err) && time.Now().Before(deadline); {
		if err := Pause(ctx, c.poll()); err != nil {
			return err
		}
		c.Kinds.Reset()
		client, err = c.clientOf(object)
	}
	if err != nil {
		return err
	}
	apply := func() error {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	}
	if err = apply(); !apierrors.IsInvalid(err) || object.GetKind() != "Job" || object.GetAnnotations()[hookAnnotation] == "" {
		return err
	}
	return c.again(ctx, client, object, apply)
}

// The annotations of Helm at objects of charts.
const (
	hookAnnotation   = "helm.sh/hook"
	policyAnnotation = "helm.sh/resource-policy"
)

// again makes the Job of a hook anew: Jobs cannot change, and each version of a chart may have another one.
func (c *Cluster) again(ctx context.Context, client dynamic.ResourceInterface, job *unstructured.Unstructured, apply func() error) error {
	c.say("  %s runs again", identity(job))
	gone := metav1.DeletePropagationBackground
	err := client.Delete(ctx, job.GetName(), metav1.DeleteOptions{PropagationPolicy: &gone})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for deadline := time.Now().Add(kindWait); ; {
		err := apply() // which is refused while the old one goes
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) || time.Now().After(deadline) {
			return err
		}
		if err := Pause(ctx, c.poll()); err != nil {
			return err
		}
	}
}

func (c *Cluster) remove(ctx context.Context, object *unstructured.Unstructured) error {
	if slices.Contains(lasting, object.GetKind()) || object.GetAnnotations()[policyAnnotation] == "keep" {
		c.say("  %s is no longer in a manifest, and stays", identity(object))
		return nil
	}
	client, err := c.clientOf(object)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.say("  delete %s", identity(object))
	err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// objects are those of manifests.
func objects(manifests []boot.Manifest) ([]*unstructured.Unstructured, error) {
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

// key tells objects apart, whichever version their manifests have.
func key(object *unstructured.Unstructured) string {
	namespace := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	return object.GroupVersionKind().GroupKind().String() + " " + namespace + "/" + object.GetName()
}

// identity names an object for people: "Deployment kube-system/web".
func identity(object *unstructured.Unstructured) string {
	return strings.TrimSpace(object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
}

// clientOf is the client of an object's kind and namespace.
func (c *Cluster) clientOf(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.Kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	client := c.Objects.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return client, nil
	}
	return client.Namespace(cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)), nil
}
