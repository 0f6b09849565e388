package explain

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"time"

	"github.com/smallstep/pkcs7"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// shownCertificates are the certificates of a gateway as Azure shows them: the public part in PKCS #7.
type shownCertificates struct {
	Certificates []azure.Child[struct {
		Public string `json:"publicCertData"`
	}] `json:"sslCertificates"`
}

// certificate is what is known of a listener's certificate: what the gateway has, or else what the Secret has.
func (d *decision) certificate(ref *azure.Reference) *Certificate {
	if ref == nil {
		return nil
	}
	name := ref.To().Name()
	c := &Certificate{Part: d.part("sslCertificates", name)}
	leaf := d.atGateway(name)
	for _, key := range d.secrets {
		namespace, secret, _ := strings.Cut(key, "/")
		made, err := d.Objects.Certificate(namespace, secret)
		if err != nil || !sameName(name, d.Prefix.Child("cert", made.Namespace, made.Secret, made.Hash)) {
			continue
		}
		c.Secret = made.Namespace + "/" + made.Secret
		if leaf == nil {
			leaf = certificateIn(d.Secrets, made.Namespace, made.Secret)
		}
	}
	if leaf != nil {
		c.Subject, c.Expires = leaf.Subject.String(), leaf.NotAfter
	}
	return c
}

// atGateway is the certificate that the gateway has with a name, nil if it has none or does not show it.
func (d *decision) atGateway(name string) *x509.Certificate {
	shown, ok, err := plan.View[shownCertificates](d.Have, d.Config.Gateway)
	if !ok || err != nil {
		return nil
	}
	for _, c := range shown.Properties.Certificates {
		if !sameName(c.Name, name) {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(c.Properties.Public)
		if err != nil {
			return nil
		}
		message, err := pkcs7.Parse(raw)
		if err != nil || len(message.Certificates) == 0 {
			return nil
		}
		return message.Certificates[0]
	}
	return nil
}

// certificateIn is the certificate in one of Secrets, nil if there is none.
func certificateIn(secrets []*corev1.Secret, namespace, name string) *x509.Certificate {
	for _, s := range secrets {
		if s.Namespace != namespace || s.Name != name {
			continue
		}
		if block, _ := pem.Decode(s.Data[corev1.TLSCertKey]); block != nil {
			if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
				return leaf
			}
		}
	}
	return nil
}

// soon is how long before its expiry a certificate is reported.
const soon = 14 * 24 * time.Hour

// expiry reports certificates that have expired, or will soon.
func (d *decision) expiry() {
	for _, l := range d.Listeners {
		c := l.Certificate
		if c == nil || c.Expires.IsZero() {
			continue
		}
		at := c.Expires.UTC().Format(time.RFC3339)
		switch {
		case !c.Expires.After(d.now):
			d.problem("the certificate %s of listener %s has expired at %s: renew %s", c.Name, l.Name, at, source(c))
		case c.Expires.Before(d.now.Add(soon)):
			d.warn("the certificate %s of listener %s expires at %s: renew %s", c.Name, l.Name, at, source(c))
		}
	}
}

func source(c *Certificate) string {
	if c.Secret == "" {
		return "it at the gateway"
	}
	return "Secret " + c.Secret
}
