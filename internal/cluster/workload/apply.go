package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kaz/internal/cluster/boot"
	"kaz/internal/pause"
)

// fieldManager owns the fields of manifests. The boot script of the first member applies them with the same name.
const fieldManager = "kaz"

// kindWait is how long a kind may take to be known after its CustomResourceDefinition.
const kindWait = 30 * time.Second

// lasting are the kinds of objects that hold data which cannot be restored. Apply does not delete them.
var lasting = []string{"Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim"}

// Apply applies the manifests in now, in this order. Then it deletes the objects that were applied before, or that the
// manifests in before have, and that are no longer in now. Objects that hold data stay. At the end Apply records in the
// cluster what it applied.
func (c *Cluster) Apply(ctx context.Context, before, now []boot.Manifest) error {
	objects := applier{c}
	applied, err := c.Applied(ctx)
	if err != nil {
		return err
	}
	gone, err := applied.gone(before, now)
	if err != nil {
		return err
	}
	all, err := boot.Objects(now)
	if err != nil {
		return err
	}
	c.say("apply %d objects of add-ons and extensions", len(all))
	for _, object := range all {
		if err := objects.applyOne(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", identity(object), err)
		}
	}
	for _, object := range slices.Backward(gone) {
		if err := objects.remove(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", identity(object), err)
		}
	}
	return objects.note(ctx, now)
}

// applier applies and deletes objects of manifests.
type applier struct{ *Cluster }

// applyOne applies an object. It waits for a kind that is not known yet.
func (c applier) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := c.clientOf(object)
	for deadline := time.Now().Add(kindWait); meta.IsNoMatchError(err) && time.Now().Before(deadline); {
		if err := pause.For(ctx, c.poll()); err != nil {
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

// hookAnnotation is at objects of the hooks of charts.
const hookAnnotation = "helm.sh/hook"

// again makes the Job of a hook anew: Jobs cannot change, and each version of a chart may have another one.
func (c applier) again(ctx context.Context, client dynamic.ResourceInterface, job *unstructured.Unstructured, apply func() error) error {
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
		if err := pause.For(ctx, c.poll()); err != nil {
			return err
		}
	}
}

// stays reports whether an object stays when no manifest has it any more.
func stays(object *unstructured.Unstructured) bool {
	return slices.Contains(lasting, object.GetKind()) || object.GetAnnotations()[boot.PolicyAnnotation] == "keep"
}

func (c applier) remove(ctx context.Context, object *unstructured.Unstructured) error {
	if stays(object) {
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

// identity names an object for people: "Deployment kube-system/web".
func identity(object *unstructured.Unstructured) string {
	return strings.TrimSpace(object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
}

// clientOf is the client of an object's kind and namespace.
func (c applier) clientOf(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
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
