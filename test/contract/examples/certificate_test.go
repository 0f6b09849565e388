package examples_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"sync"
	"time"

	"software.sslmate.com/src/go-pkcs12"
)

// certificate is a certificate in base64, with its key in a PFX with the password that the examples have.
func certificate(withKey bool) string {
	pfx, der := certificates()
	if withKey {
		return pfx
	}
	return der
}

// certificates makes a certificate, which is valid at the time of a synctest bubble.
var certificates = sync.OnceValues(func() (pfx, der string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	const years = 50
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(years, 0, 0), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		panic(err)
	}
	data, err := pkcs12.Modern.Encode(key, leaf, nil, hidden)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(data), base64.StdEncoding.EncodeToString(raw)
})
