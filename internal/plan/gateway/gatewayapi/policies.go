package gatewayapi

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

const kindConfigMap = "ConfigMap"

// authorities is the key of a ConfigMap with certificates of authorities.
const authorities = "ca.crt"

// policy is a BackendTLSPolicy as it is read.
type policy struct {
	*gatewayv1.BackendTLSPolicy
	roots              []route.Root
	accepted, resolved problem
}

// readPolicies reads all policies, the oldest first. Of several for the same port of a Service the first one counts.
func (r *reader) readPolicies() []*policy {
	var all []*policy
	type target struct{ namespace, name, section string }
	taken := map[target]string{}
	ordered := slices.Clone(r.TLSPolicies)
	slices.SortFunc(ordered, func(a, b *gatewayv1.BackendTLSPolicy) int {
		return route.Compare(policyObject(a), policyObject(b))
	})
	for _, p := range ordered {
		if p.DeletionTimestamp != nil {
			continue
		}
		made := &policy{BackendTLSPolicy: p}
		r.readAuthorities(made)
		for _, to := range p.Spec.TargetRefs {
			key := target{p.Namespace, string(to.Name), string(value(to.SectionName, ""))}
			if other, conflict := taken[key]; conflict {
				made.accepted = because(gatewayv1.PolicyReasonConflicted, "%s, which is older, is for Service %s, too", other, to.Name)
			} else {
				taken[key] = KeyOf(p)
			}
		}
		all = append(all, made)
	}
	return all
}

func policyObject(p *gatewayv1.BackendTLSPolicy) route.Object {
	return route.Object{Kind: "BackendTLSPolicy", Namespace: p.Namespace, Name: p.Name, Created: p.CreationTimestamp.Time}
}

// readAuthorities reads the certificates that those of backends are checked against. Without any, backends get no requests.
func (r *reader) readAuthorities(p *policy) {
	v := p.Spec.Validation
	if len(v.SubjectAltNames) > 0 {
		p.accepted = because(gatewayv1.PolicyReasonInvalid,
			"spec.validation.subjectAltNames is set; an application gateway checks hostname alone")
		return
	}
	for _, ref := range v.CACertificateRefs {
		if ref.Group != "" || ref.Kind != kindConfigMap {
			p.resolved = because(gatewayv1.BackendTLSPolicyReasonInvalidKind,
				"spec.validation.caCertificateRefs has a %s of group %q; allowed is a ConfigMap", ref.Kind, ref.Group)
			continue
		}
		roots := r.authoritiesOf(p.Namespace, string(ref.Name))
		if len(roots) == 0 {
			p.resolved = because(gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef,
				"ConfigMap %s/%s has no certificates in PEM at %s", p.Namespace, ref.Name, authorities)
		}
		p.roots = append(p.roots, roots...)
	}
	if len(v.CACertificateRefs) > 0 && len(p.roots) == 0 {
		p.accepted = because(gatewayv1.BackendTLSPolicyReasonNoValidCACertificate, "%s", p.resolved.message)
	}
}

// authoritiesOf returns the certificates of a ConfigMap.
func (r *reader) authoritiesOf(namespace, name string) (roots []route.Root) {
	for _, m := range r.ConfigMaps {
		if m.Namespace != namespace || m.Name != name {
			continue
		}
		for rest := []byte(m.Data[authorities]); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return roots
			}
			if _, err := x509.ParseCertificate(block.Bytes); err == nil {
				roots = append(roots, route.Root{Hash: naming.Content(block.Bytes), Data: base64.StdEncoding.EncodeToString(block.Bytes)})
			}
		}
	}
	return nil
}

// policiesOf returns the policies for a port of a Service: first the one that counts.
func (r *reader) policiesOf(namespace, service, port string) []*policy {
	var sections, whole []*policy
	for _, p := range r.policies {
		if p.Namespace != namespace {
			continue
		}
		for _, to := range p.Spec.TargetRefs {
			switch {
			case string(to.Name) != service || to.Group != "" || to.Kind != kindService:
			case to.SectionName == nil:
				whole = append(whole, p)
			case string(*to.SectionName) == port:
				sections = append(sections, p)
			}
		}
	}
	return append(sections, whole...)
}

// note adds a Gateway to the ancestors of a policy.
func (r *reader) note(p *policy, g *gateway) {
	group, kind, namespace := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind(KindGateway), gatewayv1.Namespace(g.Namespace)
	key, there := KeyOf(p), gatewayv1.BackendTLSPolicyReasonResolvedRefs
	for _, a := range r.result.Policies[key] {
		if string(a.AncestorRef.Name) == g.Name && *a.AncestorRef.Namespace == namespace {
			return
		}
	}
	r.result.Policies[key] = append(r.result.Policies[key], gatewayv1.PolicyAncestorStatus{
		AncestorRef: gatewayv1.ParentReference{
			Group: &group, Kind: &kind, Namespace: &namespace, Name: gatewayv1.ObjectName(g.Name),
		},
		ControllerName: Controller,
		Conditions: []metav1.Condition{
			condition(gatewayv1.PolicyConditionAccepted, p.Generation, gatewayv1.PolicyReasonAccepted, "", p.accepted),
			condition(gatewayv1.BackendTLSPolicyConditionResolvedRefs, p.Generation, there, "", p.resolved),
		},
	})
}
