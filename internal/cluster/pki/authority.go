package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Phase is how far the rotation of an authority has come in the key vault.
type Phase string

// The phases. Each one accepts all certificates of the phase before it and of the one after it.
const (
	// Settled is an authority alone.
	Settled Phase = "settled"
	// Trusting is an authority that issues, beside the next one, which is trusted.
	Trusting Phase = "trusting"
	// Issuing is a new authority that issues, beside the former one, which is trusted.
	Issuing Phase = "issuing"
)

// Parse reads an authority from certificates and keys in PEM, as [Authority.Bundle] writes them. Its errors have nothing of a key.
func Parse(bundle []byte) (Authority, error) {
	var all []Authority
	var keys []*ecdsa.PrivateKey
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE":
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return Authority{}, fmt.Errorf("certificate authority: %w", err)
			}
			all = append(all, Authority{certificate: certificate})
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			private, ok := key.(*ecdsa.PrivateKey)
			if err != nil || !ok {
				return Authority{}, errors.New("key of a certificate authority: want an ECDSA key in PKCS #8")
			}
			keys = append(keys, private)
		}
	}
	for i := range all {
		for _, key := range keys {
			if key.PublicKey.Equal(all[i].certificate.PublicKey) {
				all[i].key = key
			}
		}
	}
	if len(all) == 0 || all[0].key == nil || len(all) > 2 {
		return Authority{}, errors.New("certificate authority: want a certificate and its ECDSA key in PEM, and during a rotation the " +
			"certificate of one other authority")
	}
	a := all[0]
	a.others = all[1:]
	return a, nil
}

// Sign returns a signature of a text with the key of the authority, as openssl takes it.
func (a Authority) Sign(text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return ecdsa.SignASN1(rand.Reader, a.key, sum[:])
}

// Signed reports whether the authority, or one that is trusted beside it, has signed a text.
func (a Authority) Signed(text, signature []byte) bool {
	sum := sha256.Sum256(text)
	return slices.ContainsFunc(append([]Authority{a}, a.others...), func(one Authority) bool {
		key, ok := one.certificate.PublicKey.(*ecdsa.PublicKey)
		return ok && ecdsa.VerifyASN1(key, sum[:], signature)
	})
}

// Phase is how far the rotation of the authority has come.
func (a Authority) Phase() Phase {
	switch {
	case len(a.others) == 0:
		return Settled
	case a.others[0].key != nil:
		return Trusting
	}
	return Issuing
}

// Trusted are the certificates of the authority and of those that are trusted beside it, in PEM. The first one issues.
func (a Authority) Trusted() []byte {
	text := a.Certificate()
	for _, other := range a.others {
		text = append(text, other.Certificate()...)
	}
	return text
}

// Certificates are the authorities that are trusted.
func (a Authority) Certificates() []*x509.Certificate {
	all := []*x509.Certificate{a.certificate}
	for _, other := range a.others {
		all = append(all, other.certificate)
	}
	return all
}

// Newest is the authority that issues after the rotation, and trusts what the authority trusts.
func (a Authority) Newest() Authority {
	if a.Phase() != Trusting {
		return a
	}
	newest := a.others[0]
	newest.others = []Authority{{certificate: a.certificate}}
	return newest
}

// Trust makes the next authority, which is trusted and issues nothing yet. One that is there stays.
func (a Authority) Trust(now time.Time) (Authority, error) {
	if a.Phase() == Trusting {
		return a, nil
	}
	if a.Phase() == Issuing {
		return a, errors.New("certificate authority: the former one is trusted: finish that rotation before the next one")
	}
	next, err := newAuthority(a.certificate.Subject.CommonName, now)
	if err != nil {
		return a, fmt.Errorf("certificate authority: %w", err)
	}
	a.others = []Authority{next}
	return a, nil
}

// Issue lets the next authority issue. The former one is trusted, and its key is forgotten.
func (a Authority) Issue() (Authority, error) {
	if a.Phase() == Settled {
		return a, errors.New("certificate authority: there is no next one that machines trust: begin a rotation first")
	}
	return a.Newest(), nil
}

// Finish forgets the former authority.
func (a Authority) Finish() (Authority, error) {
	if a.Phase() == Trusting {
		return a, errors.New("certificate authority: the next one does not issue yet: let it issue before the former one is forgotten")
	}
	a.others = nil
	return a, nil
}

// pool are the authorities that are trusted.
func (a Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range a.Certificates() {
		pool.AddCert(certificate)
	}
	return pool
}

// TrustedBy checks that a client with these roots in PEM accepts servers with certificates of the newest authority.
func (a Authority) TrustedBy(roots []byte) bool {
	newest := a.Newest().certificate
	return slices.ContainsFunc(certificates(roots), newest.Equal)
}

// Accepts reports whether servers that trust only the newest authority accept a certificate of a client in PEM.
func (a Authority) Accepts(client []byte) bool {
	all := certificates(client)
	return len(all) > 0 && all[0].CheckSignatureFrom(a.Newest().certificate) == nil
}

// SameTrust reports whether PEM has the certificates of all authorities that are trusted, and no others.
func (a Authority) SameTrust(roots []byte) bool {
	all, want := certificates(roots), a.Certificates()
	lacks := func(one *x509.Certificate) bool { return !slices.ContainsFunc(all, one.Equal) }
	return len(all) == len(want) && !slices.ContainsFunc(want, lacks)
}

// certificates are those in PEM that can be read.
func certificates(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, certificate)
		}
	}
	return all
}
