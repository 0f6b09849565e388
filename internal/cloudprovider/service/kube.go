package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/key"
)

// kube writes to Services in Kubernetes, to so many at once. All of it goes to the
// subresource status, the one that the roles of running clusters allow, and bears
// the UID, so that a successor of the same name is never taken for the Service.
type kube struct {
	client kubernetes.Interface
	turns  *semaphore.Weighted
}

type object = map[string]any

// hold puts the finalizer in place: from then on the Service does not go without our
// knowing. The Service tells of resource groups in which something may be made for it, until
// [kube.show] takes the notes off.
func (k kube) hold(ctx context.Context, s *corev1.Service, groups []key.Note) (*corev1.Service, error) {
	notes := make([]metav1.Condition, len(groups))
	for i, n := range groups {
		notes[i] = n.Condition()
		notes[i].LastTransitionTime = metav1.Now()
	}
	held, err := k.patch(ctx, s, object{
		"metadata": object{"uid": s.UID, "finalizers": []string{helpers.LoadBalancerCleanupFinalizer}},
		"status":   object{"conditions": notes},
	})
	if err != nil {
		return nil, fmt.Errorf("add load balancer cleanup finalizer: %w", err)
	}
	return held, nil
}

// show writes the addresses into the status, and takes the notes of groups off. What the
// Service says of its status may be older than what it was given last.
func (k kube) show(ctx context.Context, s *corev1.Service, ingress, last []corev1.LoadBalancerIngress, noted []string) error {
	if sameIngress(s.Status.LoadBalancer.Ingress, ingress) && (last == nil || sameIngress(last, ingress)) && len(noted) == 0 {
		return nil
	}
	_, err := k.patch(ctx, s, object{
		"metadata": object{"uid": s.UID}, "status": object{"loadBalancer": object{"ingress": ingress}, "conditions": without(noted)},
	})
	if err != nil {
		return fmt.Errorf("update load balancer status: %w", err)
	}
	return nil
}

// without takes notes of groups off.
func without(noted []string) []object {
	notes := make([]object, len(noted))
	for i, name := range noted {
		notes[i] = object{"type": name, "$patch": "delete"}
	}
	return notes
}

// release takes addresses, notes and finalizer away. A Service that is gone has none.
func (k kube) release(ctx context.Context, s *corev1.Service, noted []string) error {
	if !helpers.HasLBFinalizer(s) && len(s.Status.LoadBalancer.Ingress) == 0 {
		return nil
	}
	_, err := k.patch(ctx, s, object{
		"metadata": object{"uid": s.UID, "$deleteFromPrimitiveList/finalizers": []string{helpers.LoadBalancerCleanupFinalizer}},
		"status":   object{"loadBalancer": object{"ingress": nil}, "conditions": without(noted)},
	})
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("remove load balancer cleanup finalizer: %w", err)
	}
	return nil
}

func (k kube) patch(ctx context.Context, s *corev1.Service, body object) (*corev1.Service, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if err := k.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer k.turns.Release(1)
	out, err := k.client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || isSuccessors(err) {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	return out, err
}

// errGone is the error of a write to a Service that is not there any more.
var errGone = errors.New("the Service is gone")

// isSuccessors reports whether the API server refuses a write because the object that it
// has by that name bears another UID.
func isSuccessors(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// sameIngress compares statuses. The API server fills in how an address is
// reached where nothing is said.
func sameIngress(a, b []corev1.LoadBalancerIngress) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.LoadBalancerIngress) bool {
		return equality.Semantic.DeepEqual(spelledOut(a), spelledOut(b))
	})
}

func spelledOut(in corev1.LoadBalancerIngress) corev1.LoadBalancerIngress {
	if in.IP != "" && in.IPMode == nil {
		in.IPMode = new(corev1.LoadBalancerIPModeVIP)
	}
	return in
}
