// Package pki makes and reads the secrets of a cluster. These are its certificate authorities, the key pair of service
// accounts, the keys that encrypt Secrets, the first bootstrap token, and the certificate of its first administrator. Layer L3.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"kaz/internal/azure/secret"
)

// caYears is how many years a certificate authority is valid.
const caYears = 10

// Authority is a certificate authority. During a rotation there is another one beside it: see [Authority.Phase].
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// others are trusted beside it: the next authority with its key, or the former one without.
	others []Authority
}

// Secrets are the secrets of a cluster.
type Secrets struct {
	CA, EtcdCA, FrontProxyCA Authority
	// ServiceAccount signs the tokens of service accounts.
	ServiceAccount *ecdsa.PrivateKey
	// Token is the bootstrap token.
	Token secret.Text
	// Encryption has the key that encrypts Secrets.
	Encryption EncryptionKeys
}

// New makes new secrets.
func New(now time.Time) (Secrets, error) {
	var s Secrets
	for name, authority := range map[string]*Authority{"kubernetes": &s.CA, "etcd-ca": &s.EtcdCA, "front-proxy-ca": &s.FrontProxyCA} {
		a, err := newAuthority(name, now)
		if err != nil {
			return Secrets{}, fmt.Errorf("certificate authority %s: %w", name, err)
		}
		*authority = a
	}
	var err error
	if s.ServiceAccount, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return Secrets{}, fmt.Errorf("key of service accounts: %w", err)
	}
	s.Token, s.Encryption = NewToken(), NewEncryptionKeys(now)
	return s, nil
}

// NewToken makes a bootstrap token: its ID, which is no secret, and its secret.
func NewToken() secret.Text { return secret.New(randomText(6) + "." + randomText(16)) }

// Join is the secret of the key vault with which machines join. It has the bootstrap token, and the hash of the certificate
// authority's key, by which machines recognise the cluster.
type Join struct {
	Token      secret.Text
	CACertHash string
}

// joinText is a Join as the key vault has it.
type joinText struct {
	Token      string `json:"token"`
	CACertHash string `json:"caCertHash"`
}

// ParseJoin reads a secret of the key vault. Its error has nothing of the secret.
func ParseJoin(text string) (Join, error) {
	var j joinText
	if err := json.Unmarshal([]byte(text), &j); err != nil || !tokenForm.MatchString(j.Token) || j.CACertHash == "" {
		return Join{}, errors.New("the secret with the join token: want a bootstrap token and the pin of the cluster as JSON")
	}
	return Join{secret.New(j.Token), j.CACertHash}, nil
}

var tokenForm = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// ID is the part of the token that is no secret.
func (j Join) ID() string {
	id, _, _ := strings.Cut(j.Token.Reveal(), ".")
	return id
}

// Text is the secret as the key vault has it.
func (j Join) Text() (string, error) {
	text, err := json.Marshal(joinText{j.Token.Reveal(), j.CACertHash})
	return string(text), err
}

// randomText has characters of bootstrap tokens.
func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz012345" // 32, so that no letter is more likely
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	for i := range b {
		b[i] = letters[b[i]%32]
	}
	return string(b)
}

func serial() (*big.Int, error) { return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) }

func newAuthority(name string, now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
	}
	number, err := serial()
	if err != nil {
		return Authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-5 * time.Minute),
		NotAfter:              now.AddDate(caYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{name},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return Authority{certificate: certificate, key: key}, err
}

// Certificate is the certificate of the authority in PEM.
func (a Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Bundle is the authority as the key vault has it, in PEM: the certificates that are trusted, and then the keys. The first certificate and
// the first key issue.
func (a Authority) Bundle() ([]byte, error) {
	text := a.Trusted()
	for _, one := range append([]Authority{a}, a.others...) {
		if one.key == nil {
			continue
		}
		key, err := keyPEM(one.key)
		if err != nil {
			return nil, err
		}
		text = append(text, key...)
	}
	return text, nil
}

// Pin is the hash of the authority's key, as kubeadm takes it to recognise the cluster.
func (a Authority) Pin() string { return Pin(a.certificate) }

// Pin is the hash of the key of a certificate, as kubeadm takes it to recognise a cluster.
func Pin(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Client issues a certificate for a user of the cluster, and its key.
func (a Authority) Client(user, group string, from, until time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	number, err := serial()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: user, Organization: []string{group}},
		NotBefore: from.Add(-5 * time.Minute), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}

// Parameters are the secrets by the parameters of the template.
func (s Secrets) Parameters() (map[string]string, error) {
	join, err := Join{s.Token, s.CA.Pin()}.Text()
	if err != nil {
		return nil, err
	}
	all := map[string]string{"bootstrapToken": join, "encryptionKeys": s.Encryption.Text()}
	for name, authority := range map[string]Authority{"pkiCA": s.CA, "pkiEtcdCA": s.EtcdCA, "pkiFrontProxyCA": s.FrontProxyCA} {
		bundle, err := authority.Bundle()
		if err != nil {
			return nil, err
		}
		all[name] = string(bundle)
	}
	account, err := accountBundle(s.ServiceAccount)
	all["pkiServiceAccount"] = string(account)
	return all, err
}

// TLS returns the configuration of a client. The authority issues the client's certificate. The client accepts servers with
// certificates of the same authority, or of another one that is trusted beside it.
func (a Authority) TLS(user string, now time.Time) (*tls.Config, error) {
	const valid = 24 * time.Hour
	certificate, key, err := a.Client(user, "", now, now.Add(valid))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool(), Certificates: []tls.Certificate{pair}}, nil
}
