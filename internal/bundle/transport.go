package bundle

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// patience is how long a server may take to begin an answer.
const patience = 2 * time.Minute

// NewTransport returns a transport that also trusts the certificate authorities of a PEM text, and uses the proxy of the environment.
func NewTransport(authorities []byte) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = patience
	if len(authorities) == 0 {
		return transport, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a machine without authorities of its own
	}
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, errors.New("it has no certificate: want PEM blocks CERTIFICATE")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return transport, nil
}
