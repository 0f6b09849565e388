package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
)

// material are the certificates of a gateway by their names in lower case.
type material struct {
	certificates map[string]*tls.Certificate
	roots        map[string]*x509.Certificate
	clientRoots  map[string]*x509.Certificate
}

// cachedCertificate is a certificate with the text that it was read from.
type cachedCertificate struct {
	text, password string
	certificate    *tls.Certificate
}

// material reads the certificates of a document. Those that cannot be read are left out, and named in the error.
func (g *gateway) material(s *source) (*material, error) {
	m := &material{certificates: map[string]*tls.Certificate{}, roots: map[string]*x509.Certificate{},
		clientRoots: map[string]*x509.Certificate{}}
	var problems []error
	cache := map[string]cachedCertificate{}
	for _, c := range appgateway.Certificates(s.doc) {
		text, password := c.Data.Reveal(), c.Password.Reveal()
		if c.VaultSecret != "" {
			text, password = s.vault[vaultKey(c.VaultSecret)], ""
		}
		had := g.cache[c.Name]
		if had.certificate == nil || had.text != text || had.password != password {
			made, err := appgateway.Read(text, password)
			if err != nil {
				problems = append(problems, fmt.Errorf("certificate %s: %w", c.Name, err))
				continue
			}
			had = cachedCertificate{text, password, &made}
		}
		cache[c.Name] = had
		m.certificates[c.Name] = had.certificate
	}
	g.cache = cache
	for list, into := range map[string]map[string]*x509.Certificate{
		"properties.trustedRootCertificates": m.roots, "properties.trustedClientCertificates": m.clientRoots,
	} {
		for _, c := range behaviour.Objects(s.doc, list) {
			name := appgateway.Key(c)
			certificate, err := appgateway.ReadRoot(behaviour.Text(c, "properties.data"))
			if err != nil {
				problems = append(problems, fmt.Errorf("certificate %s: %w", name, err))
				continue
			}
			into[name] = certificate
		}
	}
	return m, errors.Join(problems...)
}

// poolOf returns the certificates with the names. A name without a certificate is an error: nothing must be trusted in its place.
func poolOf(all map[string]*x509.Certificate, names []string) (*x509.CertPool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	for _, name := range names {
		c := all[name]
		if c == nil {
			return nil, fmt.Errorf("there is no certificate %s", name)
		}
		pool.AddCert(c)
	}
	return pool, nil
}
