package gatewayapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/route"
)

const (
	kindService = "Service"
	kindSecret  = "Secret"
)

// reference is what an object in a namespace refers to.
type reference struct {
	from, fromNamespace string // kind and namespace
	kind, namespace     string
	name                string
}

// permitted reports whether a reference stays in its namespace, or a ReferenceGrant of the other one allows it.
func (o Objects) permitted(r reference) bool {
	return r.namespace == r.fromNamespace || slices.ContainsFunc(o.Grants, func(g *gatewayv1.ReferenceGrant) bool {
		return g.Namespace == r.namespace && slices.ContainsFunc(g.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
			return f.Group == gatewayv1.GroupName && string(f.Kind) == r.from && string(f.Namespace) == r.fromNamespace
		}) && slices.ContainsFunc(g.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
			return t.Group == "" && string(t.Kind) == r.kind && (t.Name == nil || string(*t.Name) == r.name)
		})
	})
}

// value is what a pointer points to, or the usual value.
func value[T any](p *T, usual T) T {
	if p == nil {
		return usual
	}
	return *p
}

// Uses are the objects that another one depends on, by namespace/name.
type Uses struct{ Services, Secrets, Gateways, Sets []string }

// RouteUses returns what a route refers to.
func RouteUses(h Route) Uses {
	var u Uses
	own := gatewayv1.Namespace(h.GetNamespace())
	refs, _ := ParentsOf(h)
	for _, p := range refs {
		key := string(value(p.Namespace, own)) + "/" + string(p.Name)
		switch {
		case is(p, KindGateway):
			u.Gateways = append(u.Gateways, key)
		case is(p, KindSet):
			u.Sets = append(u.Sets, key)
		}
	}
	for _, b := range slices.Concat(BackendsOf(h)...) {
		if string(value(b.Kind, kindService)) == kindService {
			u.Services = append(u.Services, string(value(b.Namespace, own))+"/"+string(b.Name))
		}
	}
	return u
}

// GatewayUses returns what a Gateway refers to.
func GatewayUses(g *gatewayv1.Gateway) Uses {
	var u Uses
	for _, l := range g.Spec.Listeners {
		u.Secrets = append(u.Secrets, secretsOf(g.Namespace, l.TLS)...)
	}
	return u
}

// secretsOf returns the Secrets of a listener in a namespace.
func secretsOf(namespace string, tls *gatewayv1.ListenerTLSConfig) (all []string) {
	if tls == nil {
		return nil
	}
	for _, ref := range tls.CertificateRefs {
		all = append(all, string(value(ref.Namespace, gatewayv1.Namespace(namespace)))+"/"+string(ref.Name))
	}
	return all
}

// certificate returns the certificate of an HTTPS or TLS listener of an object of a kind in a namespace.
func (r *reader) certificate(of, in string, l gatewayv1.Listener) (*route.TLS, problem) {
	const invalid = gatewayv1.ListenerReasonInvalidCertificateRef
	if l.TLS == nil || len(l.TLS.CertificateRefs) == 0 {
		return nil, because(invalid, "tls.certificateRefs is empty; want a Secret of type kubernetes.io/tls")
	}
	if mode := value(l.TLS.Mode, gatewayv1.TLSModeTerminate); mode != gatewayv1.TLSModeTerminate {
		return nil, because(gatewayv1.ListenerReasonUnsupportedValue, "tls.mode is %s; allowed is Terminate", mode)
	}
	ref := l.TLS.CertificateRefs[0]
	if group, kind := value(ref.Group, ""), value(ref.Kind, kindSecret); group != "" || kind != kindSecret {
		return nil, because(invalid, "tls.certificateRefs has a %s of group %q; allowed is a Secret", kind, group)
	}
	namespace := string(value(ref.Namespace, gatewayv1.Namespace(in)))
	if !r.permitted(reference{of, in, kindSecret, namespace, string(ref.Name)}) {
		return nil, because(gatewayv1.ListenerReasonRefNotPermitted,
			"no ReferenceGrant in namespace %s allows %ss of %s to use Secret %s", namespace, of, in, ref.Name)
	}
	c, err := r.Cluster.Certificate(namespace, string(ref.Name))
	if err != nil {
		return nil, because(invalid, "%v", err)
	}
	return &route.TLS{Certificate: &c}, problem{}
}

// namespace returns a namespace, nil if it is not known.
func (o Objects) namespace(name string) *corev1.Namespace {
	for _, n := range o.Namespaces {
		if n.Name == name {
			return n
		}
	}
	return nil
}
