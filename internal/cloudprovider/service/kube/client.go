// Package kube reads and writes Services in the API server. Layer L3.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/key"
)

// Client reads and writes Services, a limited number at once. It writes only to the subresource status, which the roles of
// running clusters allow. Each write bears the UID, so that a later Service of the same name is never taken for the
// Service.
type Client struct {
	client kubernetes.Interface
	turns  *semaphore.Weighted
}

// New is a client that sends at most atOnce requests at once, and at least one.
func New(client kubernetes.Interface, atOnce int) Client {
	return Client{client: client, turns: semaphore.NewWeighted(int64(max(atOnce, 1)))}
}

type object = map[string]any

// Hold puts the finalizer in place: from then on the Service stays until kaz releases it. The
// Service records resource groups in which something may be made for it, until [Client.Show] removes
// the notes.
func (k Client) Hold(ctx context.Context, s *corev1.Service, groups []key.Note) (*corev1.Service, error) {
	notes := make([]metav1.Condition, len(groups))
	for i, n := range groups {
		notes[i] = n.Condition()
		notes[i].LastTransitionTime = metav1.Now()
	}
	finalizers := object{"finalizers": []string{helpers.LoadBalancerCleanupFinalizer}}
	return k.patch(ctx, s, "add load balancer cleanup finalizer", finalizers, object{"conditions": notes})
}

// Show writes the addresses into the status, and removes the notes of groups. The Service may show an older status than the
// last one that was written to it.
func (k Client) Show(ctx context.Context, s *corev1.Service, ingress, last []corev1.LoadBalancerIngress, noted []string) error {
	if SameIngress(s.Status.LoadBalancer.Ingress, ingress) && (last == nil || SameIngress(last, ingress)) && len(noted) == 0 {
		return nil
	}
	_, err := k.patch(ctx, s, "update load balancer status", object{}, statusOf(ingress, noted))
	return err
}

func statusOf(ingress []corev1.LoadBalancerIngress, noted []string) object {
	notes := make([]object, len(noted))
	for i, name := range noted {
		notes[i] = object{"type": name, "$patch": "delete"}
	}
	return object{"loadBalancer": object{"ingress": ingress}, "conditions": notes}
}

// Release removes addresses, notes and finalizer. A Service that is gone has none, so that is no error.
func (k Client) Release(ctx context.Context, s *corev1.Service, noted []string) error {
	if !helpers.HasLBFinalizer(s) && len(s.Status.LoadBalancer.Ingress) == 0 {
		return nil
	}
	finalizers := object{"$deleteFromPrimitiveList/finalizers": []string{helpers.LoadBalancerCleanupFinalizer}}
	_, err := k.patch(ctx, s, "remove load balancer cleanup finalizer", finalizers, statusOf(nil, noted))
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// patch writes to a Service, and returns it as it is then. The purpose is for the error.
func (k Client) patch(ctx context.Context, s *corev1.Service, purpose string, metadata, status object) (*corev1.Service, error) {
	metadata["uid"] = s.UID
	text, err := json.Marshal(object{"metadata": metadata, "status": status})
	if err == nil {
		err = k.turns.Acquire(ctx, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	defer k.turns.Release(1)
	out, err := k.client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.StrategicMergePatchType, text,
		metav1.PatchOptions{}, "status")
	refusal, ok := errors.AsType[*apierrors.StatusError](err)
	// The object of that name bears another UID.
	isSuccessors := ok && apierrors.IsInvalid(err) && refusal.ErrStatus.Details != nil && slices.ContainsFunc(
		refusal.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	if apierrors.IsNotFound(err) || isSuccessors {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return out, nil
}

// ErrGone is the error of a write to a Service that is not there any more.
var ErrGone = errors.New("the Service is gone")

// SameIngress compares statuses. The API server fills in the IP mode of an address if it is missing.
func SameIngress(a, b []corev1.LoadBalancerIngress) bool {
	spelledOut := func(in corev1.LoadBalancerIngress) corev1.LoadBalancerIngress {
		if in.IP != "" && in.IPMode == nil {
			in.IPMode = new(corev1.LoadBalancerIPModeVIP)
		}
		return in
	}
	return slices.EqualFunc(a, b, func(a, b corev1.LoadBalancerIngress) bool {
		return equality.Semantic.DeepEqual(spelledOut(a), spelledOut(b))
	})
}

// All are the Services that the API server has.
func (k Client) All(ctx context.Context) ([]*corev1.Service, error) { return k.Live(ctx, nil) }

// Live returns the Services that the API server has, at least the asked ones of them. A single Service is listed by name.
// For several Services all are listed, because one request costs less than many. The roles of running clusters allow list,
// and not get.
func (k Client) Live(ctx context.Context, asked []*corev1.Service) ([]*corev1.Service, error) {
	namespace, o := metav1.NamespaceAll, metav1.ListOptions{}
	if len(asked) == 1 {
		namespace, o.FieldSelector = asked[0].Namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, asked[0].Name).String()
	}
	if err := k.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer k.turns.Release(1)
	list, err := k.client.CoreV1().Services(namespace).List(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("ask the API server which Services there are: %w", err)
	}
	return Pointers(list.Items), nil
}

// Pointers are pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// eventsWithin is how long a start waits for the events that exist. A cluster can have very many.
const eventsWithin = 5 * time.Second

// LeftFailed are the Services for which the last event of an earlier process was a failure. They get an event when they are
// served, though a start sends no events for Services in place. They get none if the events cannot be listed. The roles of
// running clusters may not allow it, or it may take too long. The parameter outcomes has the reasons of events that report
// an outcome, and whether that was a success.
func (k Client) LeftFailed(ctx context.Context, outcomes map[string]bool) map[types.UID]bool {
	ctx, cancel := context.WithTimeout(ctx, eventsWithin)
	defer cancel()
	last, failed := map[types.UID]time.Time{}, map[types.UID]bool{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return k.client.CoreV1().Events(metav1.NamespaceAll).List(ctx, o)
	}
	services := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.kind", "Service").String()}
	err := pager.New(list).EachListItem(ctx, services, func(o runtime.Object) error {
		if e, ok := o.(*corev1.Event); ok {
			uid, at := e.InvolvedObject.UID, e.LastTimestamp.Time
			if well, is := outcomes[e.Reason]; is && (at.After(last[uid]) || well && at.Equal(last[uid])) {
				last[uid], failed[uid] = at, !well
			}
		}
		return nil
	})
	if err != nil {
		slog.DebugContext(ctx, "last events of services are not known", "error", err)
	}
	return failed
}

// Addresses are the addresses in statuses, each once.
func Addresses(statuses ...[]corev1.LoadBalancerIngress) []string {
	var all []string
	for _, in := range slices.Concat(statuses...) {
		if in.IP != "" && !slices.Contains(all, in.IP) {
			all = append(all, in.IP)
		}
	}
	return all
}
