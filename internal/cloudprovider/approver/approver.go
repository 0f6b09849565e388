// Package approver approves the requests of machines for the certificate of their node. The package joining decides. Layer L3.
package approver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	informers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"kaz/internal/plan/joining"
)

const (
	workers = 4
	// again is the wait before a request is looked at again that lacks a fact.
	again = 5 * time.Second
	// bindingPeriod is how often kubeadm's binding is deleted. kubeadm makes it again with each upgrade.
	bindingPeriod = 10 * time.Second
	// patience limits the reads for one decision.
	patience = 30 * time.Second
)

// The reasons of conditions and Events.
const (
	reasonApproved = "MachineAttested"
	reasonDenied   = "MachineNotAttested"
	reasonWaits    = "MachineNotFound"
)

// Config is what a cluster needs of a request.
type Config struct {
	// Subscription is that of the cluster, Domain the name of the signer in its cloud.
	Subscription, Domain string
	// Roots are the authorities that sign the signer's certificates.
	Roots *x509.CertPool
	// Machine returns the machine with a node of this name, or nil.
	Machine func(ctx context.Context, node string) (*joining.Machine, error)
	// Transport sends requests for the certificates of signers.
	Transport http.RoundTripper
}

// Controller approves and denies requests. Requests of other kinds are left to others.
type Controller struct {
	config   Config
	client   kubernetes.Interface
	informer informers.CertificateSigningRequestInformer
	events   record.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[string]
	issuers  *issuers
	now      func() time.Time
}

// New returns a controller. Run it to start it.
func New(c Config, client kubernetes.Interface, informer informers.CertificateSigningRequestInformer,
	events record.EventRecorder) (*Controller, error) {
	if c.Domain == "" {
		return nil, errors.New("this cloud has no signed documents of machines: allowed are AzurePublicCloud, AzureUSGovernmentCloud and " +
			"AzureChinaCloud")
	}
	a := &Controller{config: c, client: client, informer: informer, events: events, issuers: newIssuers(c.Transport), now: time.Now,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, again)),
	}
	look := func(object any) {
		if r, ok := object.(*certificates.CertificateSigningRequest); ok && joining.Concerns(r) {
			a.queue.Add(r.Name)
		}
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, is any) { look(is) }})
	return a, err
}

// Run decides about requests until ctx ends.
func (a *Controller) Run(ctx context.Context) {
	defer a.queue.ShutDown()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { wait.UntilWithContext(ctx, a.unbind, bindingPeriod) })
	for range workers {
		all.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	a.queue.ShutDown()
}

// unbind deletes kubeadm's binding, with which the controller manager approves every request that was made with the join token.
func (a *Controller) unbind(ctx context.Context) {
	err := a.client.RbacV1().ClusterRoleBindings().Delete(ctx, joining.Binding, metav1.DeleteOptions{})
	switch {
	case err == nil:
		slog.InfoContext(ctx, "deleted the binding with which the join token is enough for the certificate of any node",
			"clusterrolebinding", joining.Binding)
	case !apierrors.IsNotFound(err) && ctx.Err() == nil:
		slog.WarnContext(ctx, "the join token may be enough for the certificate of any node", "clusterrolebinding", joining.Binding,
			"error", err)
	}
}

// next decides about one request and reports whether the queue is still open.
func (a *Controller) next(ctx context.Context) bool {
	name, down := a.queue.Get()
	if down {
		return false
	}
	defer a.queue.Done(name)
	if err := a.look(ctx, name); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "a request for the certificate of a node is not decided yet", "request", name, "error", err)
		a.queue.AddRateLimited(name)
		return true
	}
	a.queue.Forget(name)
	return true
}

// look decides about a request if it is still undecided.
func (a *Controller) look(ctx context.Context, name string) error {
	r, err := a.informer.Lister().Get(name)
	if apierrors.IsNotFound(err) || err == nil && !joining.Concerns(r) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	verdict, why, err := a.decide(ctx, r)
	if err != nil {
		return err
	}
	if verdict == joining.Later {
		slog.InfoContext(ctx, "a request for the certificate of a node waits", "request", name, "why", why)
		a.events.Event(r, corev1.EventTypeWarning, reasonWaits, why)
		a.queue.AddAfter(name, again)
		return nil
	}
	return a.write(ctx, r, verdict, why)
}

// decide reads the facts and decides. An error is a fact that could not be read.
func (a *Controller) decide(ctx context.Context, r *certificates.CertificateSigningRequest) (joining.Verdict, string, error) {
	wanted, err := joining.Read(r)
	if err != nil {
		return joining.Deny, err.Error(), nil
	}
	facts := joining.Facts{Subscription: a.config.Subscription, Now: a.now(),
		Trust: joining.Trust{Roots: a.config.Roots, Domain: a.config.Domain}}
	var missing error
	facts.Trust.Intermediates, missing = a.issuers.pool(ctx, wanted.Signed.Issuers())
	if _, err := wanted.Signed.Verify(facts.Trust, facts.Now); err != nil {
		return joining.Deny, err.Error(), missing // no reads of Azure for documents that nobody trusts
	}
	if facts.Machine, err = a.config.Machine(ctx, wanted.Node); err != nil {
		return joining.Later, "", fmt.Errorf("machine of the node %s: %w", wanted.Node, err)
	}
	facts.Node, err = a.client.CoreV1().Nodes().Get(ctx, wanted.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		facts.Node, err = nil, nil
	}
	if err != nil {
		return joining.Later, "", err
	}
	verdict, why := joining.Decide(wanted, facts)
	return verdict, why, nil
}

// write approves or denies a request.
func (a *Controller) write(ctx context.Context, r *certificates.CertificateSigningRequest, verdict joining.Verdict, why string) error {
	condition := certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved, Message: why,
		LastUpdateTime: metav1.Now(),
	}
	kind := corev1.EventTypeNormal
	if verdict == joining.Deny {
		condition.Type, condition.Reason, kind = certificates.CertificateDenied, reasonDenied, corev1.EventTypeWarning
	}
	decided := r.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, condition)
	_, err := a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, r.Name, decided, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("%s %s: %w", condition.Type, r.Name, err)
	}
	slog.InfoContext(ctx, "decided about a request for the certificate of a node", "request", r.Name, "user", r.Spec.Username,
		"decision", condition.Type, "why", why)
	a.events.Event(r, kind, condition.Reason, why)
	return nil
}
