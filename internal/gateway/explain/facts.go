package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/reconcile"
)

// Config is how the controller serves Ingresses.
type Config struct {
	planner.Config
	Class ingress.Class
	// Namespaces are those of the Ingresses, none for all.
	Namespaces []string
}

// Azure reads the gateway, and runs the action that shows the health of its backends.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Facts are what Kubernetes and Azure say about one Ingress.
type Facts struct {
	Config
	Ingress    *networking.Ingress
	Classes    []*networking.IngressClass
	Ingresses  []*networking.Ingress // all that the controller serves
	Objects    *cluster.Objects
	Slices     []*discovery.EndpointSlice // in the namespace of the Ingress
	Secrets    []*corev1.Secret           // with certificates, in the namespace of the Ingress
	Have       plan.Snapshot              // with the gateway, if it is there
	PublicIP   string
	Health     []Health
	HealthNote string         // why the health is not known
	Warnings   []corev1.Event // about the Ingress
}

// Health is the health of one backend as some settings reach it, by the names of the gateway's children.
type Health struct {
	Pool, Settings, Address, State, Log string
}

// Gather reads the facts about an Ingress. From Azure it reads the gateway, its public IP address and the health of its backends: three
// requests, and the polls of the last one.
func Gather(ctx context.Context, client kubernetes.Interface, from Azure, c Config, namespace, name string) (*Facts, error) {
	f := &Facts{Config: c}
	var err error
	if f.Ingress, err = client.NetworkingV1().Ingresses(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("read ingress %s/%s: %w", namespace, name, err)
	}
	if err := f.readIngresses(ctx, client); err != nil {
		return nil, err
	}
	if err := f.readObjects(ctx, client); err != nil {
		return nil, err
	}
	return f, f.readAzure(ctx, from)
}

// readIngresses reads the Ingresses with which this one shares the gateway.
func (f *Facts) readIngresses(ctx context.Context, client kubernetes.Interface) error {
	classes, err := client.NetworkingV1().IngressClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ingressclasses: %w", err)
	}
	f.Classes = pointers(classes.Items)
	namespaces := f.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		all, err := client.NetworkingV1().Ingresses(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list ingresses: %w", err)
		}
		for _, i := range pointers(all.Items) {
			if i.DeletionTimestamp == nil && f.Class.Takes(i, f.Classes) {
				f.Ingresses = append(f.Ingresses, i)
			}
		}
	}
	return nil
}

// isServed reports whether the controller serves the Ingress at all.
func (f *Facts) isServed() bool {
	return slices.ContainsFunc(f.Ingresses, func(i *networking.Ingress) bool {
		return i.Namespace == f.Ingress.Namespace && i.Name == f.Ingress.Name
	})
}

// readObjects reads what the Ingresses refer to, in their namespaces alone.
func (f *Facts) readObjects(ctx context.Context, client kubernetes.Interface) error {
	var services []*corev1.Service
	var endpoints []*discovery.EndpointSlice
	var secrets []*corev1.Secret
	var pods []*corev1.Pod
	for _, namespace := range f.namespaces() {
		core := client.CoreV1()
		s, err := core.Services(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list services: %w", err)
		}
		e, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list endpointslices: %w", err)
		}
		t, err := core.Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeTLS)})
		if err != nil {
			return fmt.Errorf("list secrets of the type %s: %w", corev1.SecretTypeTLS, err)
		}
		p, err := core.Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		services, endpoints = append(services, pointers(s.Items)...), append(endpoints, pointers(e.Items)...)
		secrets, pods = append(secrets, pointers(t.Items)...), append(pods, pointers(p.Items)...)
	}
	f.Slices, f.Secrets = inNamespace(endpoints, f.Ingress.Namespace), inNamespace(secrets, f.Ingress.Namespace)
	f.Objects = cluster.New(services, endpoints, secrets, pods)
	return f.readEvents(ctx, client)
}

// namespaces are those of all Ingresses.
func (f *Facts) namespaces() []string {
	all := []string{f.Ingress.Namespace}
	for _, i := range f.Ingresses {
		all = append(all, i.Namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// readEvents reads the warnings about the Ingress.
func (f *Facts) readEvents(ctx context.Context, client kubernetes.Interface) error {
	selector := fields.Set{"involvedObject.kind": ingress.Kind, "involvedObject.name": f.Ingress.Name}.AsSelector().String()
	events, err := client.CoreV1().Events(f.Ingress.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == ingress.Kind && e.InvolvedObject.Name == f.Ingress.Name {
			f.Warnings = append(f.Warnings, e)
		}
	}
	return nil
}

// readAzure reads the gateway. One that is not there is a fact.
func (f *Facts) readAzure(ctx context.Context, from Azure) error {
	have, err := reconcile.Take(ctx, from, reconcile.Needs{Resources: []azure.ID{f.Gateway}})
	if err != nil {
		return err
	}
	f.Have = have
	g, ok, err := plan.View[network.ApplicationGateway](have, f.Gateway)
	if !ok || err != nil {
		return err
	}
	for _, frontend := range g.Properties.Frontends {
		if id := frontend.Properties.PublicIPAddress.To(); id != "" && f.PublicIP == "" {
			if f.PublicIP, err = publicAddress(ctx, from, id); err != nil {
				return err
			}
		}
	}
	f.readHealth(ctx, from)
	return ctx.Err()
}

func publicAddress(ctx context.Context, from azure.Reader, id azure.ID) (string, error) {
	doc, err := from.Get(ctx, id)
	if azure.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read public IP address %s: %w", id.Name(), err)
	}
	ip, err := azure.Decode[network.PublicIPAddress](doc)
	return ip.Properties.IPAddress, err
}

// healthTimeout bounds the action that shows the health of backends: an answer without health is better than none.
const healthTimeout = time.Minute

// readHealth asks the gateway for the health of its backends. It is a fact if that fails.
func (f *Facts) readHealth(ctx context.Context, from azure.Writer) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	answer, err := azure.Do(ctx, from, azure.Request{Verb: azure.Post, ID: f.Gateway, Action: "backendhealth"})
	if err != nil {
		f.HealthNote = err.Error()
		if refused, ok := errors.AsType[*azure.Error](err); ok && refused.Kind == azure.Denied {
			f.HealthNote = "it needs the right Microsoft.Network/applicationGateways/backendhealth/action: " + err.Error()
		}
		return
	}
	if f.Health, err = readHealthAnswer(answer); err != nil {
		f.HealthNote = err.Error()
	}
}

// inNamespace returns the objects of a namespace.
func inNamespace[T metav1.Object](all []T, namespace string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(o T) bool { return o.GetNamespace() != namespace })
}

func pointers[T any](all []T) []*T {
	made := make([]*T, len(all))
	for i := range all {
		made[i] = &all[i]
	}
	return made
}

// className is the class of the Ingress as it says it.
func (f *Facts) className() string {
	if value := f.Ingress.Annotations[ingress.ClassAnnotation]; value != "" {
		return value
	}
	if f.Ingress.Spec.IngressClassName != nil {
		return *f.Ingress.Spec.IngressClassName
	}
	return ""
}

// sameName compares names of children, as Azure does.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
