package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/controller"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
)

// addresses are the addresses of the gateway.
type addresses struct {
	publicID        azure.ID
	public, private string
}

// Reasons of events about the status; they are AGIC's.
const (
	reasonStatus = "UnableToUpdateIngressStatus"
	reasonReset  = "ResetIngressStatus"
)

// publish reports the problems of a decision that was written, and has the status of its Ingresses written.
func (c *Controller) publish(ctx context.Context, ch choice, d planner.Decision) {
	c.readAddresses(ctx, d)
	problems := map[string][]plan.Problem{}
	for _, p := range d.Problems {
		key := strings.TrimPrefix(p.Object, objectKey(""))
		problems[key] = append(problems[key], p)
	}
	served := 0
	for _, key := range slices.Sorted(maps.Keys(ch.chosen)) {
		c.report(key, problems[key])
		address := ""
		if private, ok := d.Served[objectKey(key)]; ok {
			served++
			if address = c.address.public; private {
				address = c.address.private
			}
		}
		c.want(key, address)
	}
	for _, key := range ch.batch { // what left
		if _, ok := ch.chosen[key]; !ok && key != everything {
			c.want(key, "")
			c.mu.Lock()
			delete(c.events, key)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	refused := len(c.refused)
	c.mu.Unlock()
	c.config.Metrics.objects(served, len(ch.chosen)-served, refused)
}

// readAddresses reads the addresses of the gateway. The public one is read again when the gateway has another public IP.
func (c *Controller) readAddresses(ctx context.Context, d planner.Decision) {
	f, _ := d.Live.Frontend(true)
	c.address.private = f.Properties.PrivateIPAddress
	f, _ = d.Live.Frontend(false)
	id := f.Properties.PublicIPAddress.To()
	if id == "" || id.Equal(c.address.publicID) && c.address.public != "" {
		return
	}
	doc, err := c.config.Azure.Fresh().Get(ctx, id)
	var ip azure.Resource[network.PublicIPAddress]
	if err == nil {
		ip, err = azure.Decode[network.PublicIPAddress](doc)
	}
	if err != nil {
		c.config.Log.Warn("cannot read the address of the application gateway", "public_ip", id, "error", err)
		return
	}
	c.address.publicID, c.address.public = id, ip.Properties.IPAddress
}

// want has an address written to the status of an Ingress, "" for none.
func (c *Controller) want(key, address string) {
	c.mu.Lock()
	c.wanted[key] = address
	c.mu.Unlock()
	if i := c.kube.ingress(key); i != nil && !c.hasStatus(i, address) {
		c.statuses.Mark(key, reasons{})
	}
}

// hasStatus reports whether the status of an Ingress needs no change. An address that is not the gateway's is another controller's.
func (c *Controller) hasStatus(i *networking.Ingress, address string) bool {
	have := i.Status.LoadBalancer.Ingress
	if address != "" {
		return len(have) == 1 && have[0].IP == address
	}
	return !slices.ContainsFunc(have, func(x networking.IngressLoadBalancerIngress) bool {
		return x.IP != "" && (x.IP == c.address.public || x.IP == c.address.private)
	})
}

// updateStatuses writes statuses until the queue ends.
func (c *Controller) updateStatuses(ctx context.Context) {
	for {
		key, down := c.statuses.Get()
		if down {
			return
		}
		c.statuses.Take(key)
		c.updateStatus(ctx, key)
		c.statuses.Done(key)
	}
}

func (c *Controller) updateStatus(ctx context.Context, key string) {
	i := c.kube.ingress(key)
	if i == nil || ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	address := c.wanted[key]
	c.mu.Unlock()
	i = i.DeepCopy()
	i.Status.LoadBalancer.Ingress = nil
	if address != "" {
		i.Status.LoadBalancer.Ingress = []networking.IngressLoadBalancerIngress{{IP: address}}
	}
	_, err := c.config.Kube.NetworkingV1().Ingresses(i.Namespace).UpdateStatus(ctx, i, metav1.UpdateOptions{})
	switch {
	case err == nil && address == "":
		c.config.Events.Event(i, corev1.EventTypeNormal, reasonReset, "The application gateway does not serve the Ingress")
	case err == nil, apierrors.IsNotFound(err), ctx.Err() != nil:
	case apierrors.IsConflict(err): // a newer Ingress is on its way
		c.statuses.MarkAfter(key, reasons{}, controller.Delay(nil, 1))
	default:
		c.config.Events.Event(i, corev1.EventTypeWarning, reasonStatus, err.Error())
		c.statuses.MarkAfter(key, reasons{}, controller.Delay(err, 1))
	}
}

// report writes Events about the problems of an Ingress that it has not had before.
func (c *Controller) report(key string, problems []plan.Problem) {
	c.mu.Lock()
	known, ok := c.events[key]
	if !ok {
		known = &controller.Deduplicator[plan.Problem]{}
		c.events[key] = known
	}
	fresh := known.New(problems)
	c.mu.Unlock()
	i := c.kube.ingress(key)
	if i == nil {
		return
	}
	for _, p := range fresh {
		c.config.Events.Event(i, corev1.EventTypeWarning, p.Reason, p.Message)
	}
}
