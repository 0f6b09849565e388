package explain

import (
	"cmp"
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/rewriteobject"
	"kaz/internal/reconcile"
)

// Config is how the controller serves Ingresses.
type Config struct {
	planner.Config
	Class ingress.Class
	// Namespaces are those of the objects, none for all.
	Namespaces []string
	// Applications are all application gateways of the controller, none for the one that is explained alone. The first one serves the
	// Ingresses.
	Applications []azure.ID
}

// servesIngresses reports whether the application gateway that is explained serves the Ingresses.
func (c Config) servesIngresses() bool {
	return len(c.Applications) == 0 || c.Applications[0].Equal(c.Gateway)
}

// Azure reads the gateway, and runs the action that shows the health of its backends.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Subject is the object that is explained. Kind is that of the planner.
type Subject struct{ Kind, Namespace, Name string }

func (s Subject) key() string { return s.Kind + "/" + s.Namespace + "/" + s.Name }

// Clients are the clients of the API server. Those of kinds that the controller does not serve are nil.
type Clients struct {
	Kube       kubernetes.Interface
	GatewayAPI gatewayclient.Interface
	Dynamic    dynamic.Interface
}

// Facts are what Kubernetes and Azure say about one object.
type Facts struct {
	Config
	Subject    Subject
	Ingress    *networking.Ingress // nil unless it is the subject
	gateway    *gatewayv1.Gateway
	route      gatewayapi.Route
	Classes    []*networking.IngressClass
	Ingresses  []*networking.Ingress // all that the controller serves
	Rewrites   rewriteobject.Reader  // nil if the API server has no such objects
	Prohibited prohibited.Targets
	API        gatewayapi.Objects // with the Gateways of this application gateway alone
	Objects    *cluster.Objects
	Slices     []*discovery.EndpointSlice
	Secrets    []*corev1.Secret // with certificates
	Have       plan.Snapshot    // with the gateway, if it is there
	PublicIP   string
	PrivateIP  string
	Health     []Health
	HealthNote string         // why the health is not known
	Events     []corev1.Event // warnings about the subject
}

// Gather reads the facts about an object. From Azure it reads the gateway, its public IP address and the health of its backends: three
// requests, and the polls of the last one.
func Gather(ctx context.Context, clients Clients, from Azure, c Config, subject Subject) (*Facts, error) {
	f := &Facts{Config: c, Subject: subject}
	var err error
	if subject.Kind == ingress.Kind {
		f.Ingress, err = clients.Kube.NetworkingV1().Ingresses(subject.Namespace).Get(ctx, subject.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read ingress %s/%s: %w", subject.Namespace, subject.Name, err)
		}
	}
	if err := f.gather(ctx, clients, from); err != nil {
		return nil, err
	}
	if f.isThere() {
		f.readHealth(ctx, from)
	}
	return f, ctx.Err()
}

// GatherAll reads the facts about all objects that the controller serves, but for the health of backends and for events. It only reads.
func GatherAll(ctx context.Context, clients Clients, from azure.Reader, c Config) (*Facts, error) {
	f := &Facts{Config: c}
	return f, f.gather(ctx, clients, from)
}

// gather reads what decides.
func (f *Facts) gather(ctx context.Context, clients Clients, from azure.Reader) error {
	for _, read := range []func() error{
		func() error { return f.readIngresses(ctx, clients.Kube) },
		func() error { return f.readObjectsOfAGIC(ctx, clients) },
		func() error { return f.readAPI(ctx, clients) },
		func() error { return f.readObjects(ctx, clients.Kube) },
		func() error { return f.readAzure(ctx, from) },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	f.assign()
	return nil
}

// readIngresses reads the Ingresses with which this one shares the gateway.
func (f *Facts) readIngresses(ctx context.Context, client kubernetes.Interface) error {
	classes, err := client.NetworkingV1().IngressClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ingressclasses: %w", err)
	}
	f.Classes = pointers(classes.Items)
	if !f.servesIngresses() {
		return nil
	}
	for _, namespace := range f.watched() {
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

// watched are the namespaces of the objects that the controller serves; that of all stands for any.
func (c Config) watched() []string {
	if len(c.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return c.Namespaces
}

// isServed reports whether the controller serves the Ingress at all.
func (f *Facts) isServed() bool {
	return slices.ContainsFunc(f.Ingresses, func(i *networking.Ingress) bool {
		return i.Namespace == f.Ingress.Namespace && i.Name == f.Ingress.Name
	})
}

// readObjects reads what the objects refer to, in their namespaces and those of their backends and certificates alone.
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
	f.Slices, f.Secrets = endpoints, secrets
	f.Objects = cluster.New(services, endpoints, secrets, pods)
	return f.readEvents(ctx, client)
}

// namespaces are those of the subject, of all objects that are served, and of what they refer to.
func (f *Facts) namespaces() []string {
	var all []string
	if f.Subject.Kind != "" {
		all = append(all, f.Subject.Namespace)
	}
	for _, i := range f.Ingresses {
		all = append(all, i.Namespace)
	}
	for _, key := range f.referred() {
		namespace, _, _ := strings.Cut(key, "/")
		all = append(all, namespace)
	}
	if namespace, _, ok := strings.Cut(f.Answers, "/"); ok {
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// readEvents reads the warnings about the subject.
func (f *Facts) readEvents(ctx context.Context, client kubernetes.Interface) error {
	of := f.Subject
	if of.Kind == "" {
		return nil
	}
	selector := fields.Set{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name}.AsSelector().String()
	events, err := client.CoreV1().Events(of.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == of.Kind && e.InvolvedObject.Name == of.Name {
			f.Events = append(f.Events, e)
		}
	}
	return nil
}

// readAzure reads the gateway. One that is not there is a fact.
func (f *Facts) readAzure(ctx context.Context, from azure.Reader) error {
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
		f.PrivateIP = cmp.Or(f.PrivateIP, frontend.Properties.PrivateIPAddress)
		if id := frontend.Properties.PublicIPAddress.To(); id != "" && f.PublicIP == "" {
			if f.PublicIP, err = publicAddress(ctx, from, id); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// isThere reports whether the gateway exists.
func (f *Facts) isThere() bool {
	_, ok, err := plan.View[struct{}](f.Have, f.Gateway)
	return ok && err == nil
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
	answer, err := azure.Do(ctx, from, azure.Request{Verb: azure.Post, ID: f.Gateway, Action: health.Action})
	if err != nil {
		f.HealthNote = err.Error()
		if refused, ok := errors.AsType[*azure.Error](err); ok && refused.Kind == azure.Denied {
			f.HealthNote = "it needs the right Microsoft.Network/applicationGateways/backendhealth/action: " + err.Error()
		}
		return
	}
	if f.Health, err = health.Read(answer); err != nil {
		f.HealthNote = err.Error()
	}
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
