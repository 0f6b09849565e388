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
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is what a kept certificate must still be good for.
	renewBefore = 30 * 24 * time.Hour
)

// authority signs certificates. Its own is kept in files.
type authority struct {
	dir  string
	file string // the certificate, PEM
	cert *x509.Certificate
	key  crypto.Signer
}

// request says what a certificate is for. Hosts make it a server's, a user makes it a client's.
type request struct {
	user   string
	groups []string
	names  []string
	ips    []net.IP
}

// openAuthority reads the authority of that name, or makes it when there is none.
func openAuthority(dir, name string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	cert, key, err := readPair(certFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		cert, key, err = makeAuthority(certFile, keyFile, name)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", name, err)
	}
	return &authority{dir: dir, file: certFile, cert: cert, key: key}, nil
}

func makeAuthority(certFile, keyFile, name string) (*x509.Certificate, crypto.Signer, error) {
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
	return sign(template, template, key, key, certFile, keyFile)
}

// issue returns the files of a certificate for the request. A kept one is used as long as it answers the request and is
// not about to expire.
func (a *authority) issue(name string, r request) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	if kept, _, err := readPair(certFile, keyFile); err == nil && a.answers(kept, r) {
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
	if _, _, err := sign(template, a.cert, key, a.key, certFile, keyFile); err != nil {
		return "", "", fmt.Errorf("certificate %s: %w", name, err)
	}
	return certFile, keyFile, nil
}

// usages makes every certificate a client's: a server that is also a client (etcd's peers) then needs only one.
func (r request) usages() []x509.ExtKeyUsage {
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.names)+len(r.ips) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	return usages
}

func (a *authority) answers(kept *x509.Certificate, r request) bool {
	if kept.CheckSignatureFrom(a.cert) != nil || time.Now().Add(renewBefore).After(kept.NotAfter) {
		return false
	}
	return kept.Subject.CommonName == r.user &&
		slices.Equal(kept.Subject.Organization, r.groups) &&
		slices.Equal(kept.DNSNames, r.names) &&
		slices.EqualFunc(kept.IPAddresses, r.ips, net.IP.Equal)
}

func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer, certFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	if err := writeKey(keyFile, key); err != nil {
		return nil, nil, err
	}
	if err := replaceFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return replaceFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
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

// readPair reads a certificate and its key, and checks that they belong together.
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

// replaceFile writes a file in one step, so that a program killed midway leaves the old one or the new one.
func replaceFile(file string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, mode); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
