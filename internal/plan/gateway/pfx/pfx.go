// Package pfx makes certificates of Kubernetes Secrets into PFX files, as application gateways take them. Layer L1: the same
// certificate and key give the same bytes.
package pfx

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/azure/secret"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

// most is the size of a PFX file that an application gateway takes.
const most = 16 << 10

// Encode returns a certificate chain and its key in PEM as a PFX file.
func Encode(certificate, key []byte) (route.Certificate, error) {
	var none route.Certificate
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return none, errors.New("tls.crt and tls.key are no certificate with its private key in PEM")
	}
	chain := make([]*x509.Certificate, len(pair.Certificate))
	for i, der := range pair.Certificate {
		if chain[i], err = x509.ParseCertificate(der); err != nil {
			return none, fmt.Errorf("tls.crt: %w", err)
		}
	}
	seed := sha256.Sum256(bytes.Join([][]byte{certificate, key}, []byte{0}))
	password := hex.EncodeToString(seed[:8])
	file, err := pkcs12.LegacyDES.WithRand(&stream{seed: seed}).Encode(pair.PrivateKey, chain[0], chain[1:], password)
	if err != nil {
		return none, fmt.Errorf("PFX: %w", err)
	}
	if len(file) > most {
		return none, fmt.Errorf("the certificate chain has %d bytes as a PFX file, allowed are %d", len(file), most)
	}
	return route.Certificate{
		Hash: naming.Content(certificate, key), PFX: secret.New(base64.StdEncoding.EncodeToString(file)), Password: secret.New(password),
		Expires: chain[0].NotAfter,
	}, nil
}

// stream gives bytes that follow from a seed. They salt the file. Its password is not secret to its readers: both go to Azure in one
// request.
type stream struct {
	seed  [sha256.Size]byte
	count uint64
	rest  []byte
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		if len(s.rest) == 0 {
			block := sha256.Sum256(binary.BigEndian.AppendUint64(bytes.Clone(s.seed[:]), s.count))
			s.count++
			s.rest = block[:]
		}
		k := copy(p[n:], s.rest)
		n, s.rest = n+k, s.rest[k:]
	}
	return len(p), nil
}
