package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kaz/internal/host/atomicfile"
)

// authority is the certificate authority of a local Azure. It signs a certificate for each name by which a client calls the
// server. Clients behind the proxy use the names of the public Azure.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	leafRenewal   = 30 * 24 * time.Hour
	mostLeaves    = 1000
)

// openAuthority reads the authority from a certificate file and the key file beside it, or creates both.
func openAuthority(file string) (*authority, error) {
	keyFile := strings.TrimSuffix(file, filepath.Ext(file)) + "-key.pem"
	certificate, certErr := os.ReadFile(file)
	key, keyErr := os.ReadFile(keyFile)
	switch {
	case errors.Is(certErr, os.ErrNotExist) && (keyErr == nil || errors.Is(keyErr, os.ErrNotExist)):
		return newAuthority(file, keyFile)
	case certErr != nil:
		return nil, certErr
	case errors.Is(keyErr, os.ErrNotExist):
		return nil, fmt.Errorf("%s exists but its key %s does not; name another file, or remove it to get a new authority", file, keyFile)
	case keyErr != nil:
		return nil, keyErr
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w; remove both to get a new authority", file, keyFile, err)
	}
	private, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s is not a certificate authority that kaz made; name another file", file)
	}
	if time.Until(pair.Leaf.NotAfter) < leafRenewal {
		return newAuthority(file, keyFile)
	}
	return &authority{certificate: pair.Leaf, key: private}, nil
}

func newAuthority(file, keyFile string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "kaz local Azure", Organization: []string{"kaz"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	// The key is written first: the next start refuses a certificate without a key.
	if err := atomicfile.Write(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}

func (a *authority) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.forClient}
}

// forClient returns a certificate for the name that the client sent, or for the address that it connected to.
func (a *authority) forClient(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
		if err != nil {
			return nil, err
		}
		name = host
	}
	return a.named(name)
}

// named returns a certificate for a name.
func (a *authority) named(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf := a.leaves[name]; leaf != nil && time.Until(leaf.Leaf.NotAfter) > leafRenewal {
		return leaf, nil
	}
	if a.leaves == nil || len(a.leaves) >= mostLeaves {
		a.leaves = map[string]*tls.Certificate{}
	}
	leaf, err := a.issue(name)
	if err == nil {
		a.leaves[name] = leaf
	}
	return leaf, err
}

func (a *authority) issue(name string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "kaz local Azure"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else {
		template.DNSNames = append(template.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
