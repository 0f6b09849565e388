package ingress

import (
	"errors"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/key"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// securedHosts are hosts with the same certificate.
type securedHosts struct {
	hosts []string
	tls   *route.TLS
}

// secured splits hosts into those of each certificate and those without. No hosts stand for all hosts, and plain is then not nil if these
// have no certificate. A host with a certificate that cannot be used is in neither: it must not be served in clear.
func (r *reader) secured(hosts []string) (secured []securedHosts, plain []string) {
	asked := hosts
	if len(hosts) == 0 {
		asked = []string{""}
	}
	for _, host := range asked {
		t, err := r.tlsOf(host)
		switch {
		case err != nil:
		case t == nil:
			plain = append(plain, host)
		default:
			var of []string
			if host != "" {
				of = []string{host}
			}
			i := slices.IndexFunc(secured, func(s securedHosts) bool { return sameTLS(s.tls, t) })
			if i < 0 {
				secured = append(secured, securedHosts{tls: t})
				i = len(secured) - 1
			}
			secured[i].hosts = append(secured[i].hosts, of...)
		}
	}
	return secured, plain
}

func sameTLS(a, b *route.TLS) bool {
	return a.Installed == b.Installed && (a.Certificate == nil) == (b.Certificate == nil) &&
		(a.Certificate == nil || a.Certificate.Secret == b.Certificate.Secret)
}

var errNoCertificate = errors.New("the certificate cannot be used")

// tlsOf returns how a host speaks TLS, nil if it does not.
func (r *reader) tlsOf(host string) (*route.TLS, error) {
	secret, asked := r.secretOf(host)
	installed := value(r, key.SSLCertificate)
	t := &route.TLS{Profile: value(r, key.SSLProfile)}
	if t.Profile != "" && !live.Has(r.Gateway.Properties.SSLProfiles, t.Profile) {
		r.drop(ReasonProfile, "%s: the application gateway has no SSL profile %q", key.SSLProfile.Name, t.Profile)
		return nil, errNoCertificate
	}
	if asked {
		c, err := r.Objects.Certificate(r.ingress.Namespace, secret)
		if err == nil {
			t.Certificate = &c
			return t, nil
		}
		if installed == "" {
			r.warn(ReasonSecret, "spec.tls: %v; want a Secret of type kubernetes.io/tls; host %q is not served", err, host)
			return nil, errNoCertificate
		}
		r.warn(ReasonSecret, "spec.tls: %v; %s is used instead", err, key.SSLCertificate.Name)
	}
	switch {
	case installed == "":
		return nil, nil
	case !live.Has(r.Gateway.Properties.Certificates, installed):
		r.drop(ReasonCertificate, "%s: the application gateway has no SSL certificate %q", key.SSLCertificate.Name, installed)
		return nil, errNoCertificate
	}
	t.Installed = installed
	return t, nil
}

// secretOf returns the Secret of spec.tls for a host: that of the host itself, of a wildcard, or of an entry without hosts.
func (r *reader) secretOf(host string) (string, bool) {
	for _, fits := range []func(t networking.IngressTLS) bool{
		func(t networking.IngressTLS) bool { return host != "" && containsFold(t.Hosts, host) },
		func(t networking.IngressTLS) bool {
			_, parent, ok := strings.Cut(host, ".")
			return ok && containsFold(t.Hosts, "*."+parent)
		},
		func(t networking.IngressTLS) bool { return len(t.Hosts) == 0 },
	} {
		for _, t := range r.ingress.Spec.TLS {
			if t.SecretName != "" && fits(t) {
				return t.SecretName, true
			}
		}
	}
	return "", false
}

func containsFold(all []string, text string) bool {
	return slices.ContainsFunc(all, func(x string) bool { return strings.EqualFold(x, text) })
}
