package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kaz/internal/host/atomicfile"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is the remaining lifetime below which a certificate is renewed.
	renewBefore = 30 * 24 * time.Hour
)

// authority is a certificate authority, stored in files.
type authority struct {
	dir  string
	file string // the certificate, PEM
	cert *x509.Certificate
	key  crypto.Signer
}

// request describes a certificate. A user makes it a client certificate, names or addresses make it a server certificate.
type request struct {
	user   string
	groups []string
	names  []string
	ips    []net.IP
}

// openAuthority reads the authority with a name, or creates it.
func openAuthority(dir, name string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	cert, key, err := readPair(certFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		cert, key, err = createAuthority(certFile, keyFile, name)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return &authority{dir: dir, file: certFile, cert: cert, key: key}, nil
}

// createAuthority creates a self-signed certificate authority in two files.
func createAuthority(certFile, keyFile, name string) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "kaz " + name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, writePair(cert, key, certFile, keyFile)
}

// issue returns the files of a certificate for a request. It reuses the stored certificate if that fits the request and
// does not expire soon.
func (a *authority) issue(name string, r request) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	if stored, _, err := readPair(certFile, keyFile); err == nil && a.fits(stored, r) {
		return certFile, keyFile, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.user, Organization: r.groups},
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: r.usages(),
		DNSNames:    r.names,
		IPAddresses: r.ips,
	}
	cert, err := sign(template, a.cert, key, a.key)
	if err == nil {
		err = writePair(cert, key, certFile, keyFile)
	}
	if err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	return certFile, keyFile, nil
}

// usages returns the key usages. Every certificate is a client certificate, so that a server that is also a client, such
// as a peer of etcd, needs only one.
func (r request) usages() []x509.ExtKeyUsage {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.names)+len(r.ips) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	return usages
}

// fits reports whether a certificate fits the request and does not expire soon.
func (a *authority) fits(cert *x509.Certificate, r request) bool {
	if cert.CheckSignatureFrom(a.cert) != nil || time.Now().Add(renewBefore).After(cert.NotAfter) {
		return false
	}
	return cert.Subject.CommonName == r.user &&
		slices.Equal(cert.Subject.Organization, r.groups) &&
		slices.Equal(cert.DNSNames, r.names) &&
		slices.EqualFunc(cert.IPAddresses, r.ips, net.IP.Equal)
}

// sign returns a certificate for a key, signed by the key of its parent.
func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// writePair writes a certificate and its key, the key first.
func writePair(cert *x509.Certificate, key crypto.Signer, certFile, keyFile string) error {
	if err := writeKey(keyFile, key); err != nil {
		return err
	}
	return atomicfile.Write(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func readKey(file string) (crypto.Signer, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: %T is no signing key", file, key)
	}
	return signer, nil
}

// readPair reads a certificate and its key. It fails if they do not match.
func readPair(certFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	block, err := readPEM(certFile)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", certFile, err)
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, nil, err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("%s is not the key of %s", keyFile, certFile)
	}
	return cert, key, nil
}

func readPEM(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM data", file)
	}
	return block.Bytes, nil
}
