package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

// Keys are public keys that verify tokens, by key id.
type Keys []Key

// Key is one public key. A key without an ID fits every token.
type Key struct {
	ID     string
	Public crypto.PublicKey
}

// jwk is a JSON web key.
type jwk struct {
	Type      string `json:"kty"`
	Use       string `json:"use,omitempty"`
	ID        string `json:"kid,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
}

// ParseKeys parses a JSON web key set, or public keys in PEM such as kube-apiserver's file of service account keys.
func ParseKeys(data []byte) (Keys, error) {
	if block, _ := pem.Decode(data); block != nil {
		return parsePEM(data)
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("neither PEM nor a JSON web key set: %w", err)
	}
	var keys Keys
	for i, k := range set.Keys {
		public, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("key %d of the JSON web key set: %w", i, err)
		}
		keys = append(keys, Key{ID: k.ID, Public: public})
	}
	if len(keys) == 0 {
		return nil, errors.New("the JSON web key set has no keys")
	}
	return keys, nil
}

func parsePEM(data []byte) (Keys, error) {
	var keys Keys
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		var public any
		var err error
		switch block.Type {
		case "PUBLIC KEY":
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				public = c.PublicKey
			}
		default:
			err = fmt.Errorf("PEM block %q, want PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE", block.Type)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key{Public: public})
	}
	return keys, nil
}

func (k jwk) public() (crypto.PublicKey, error) {
	number := func(name, text string) (*big.Int, error) {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(data) == 0 {
			return nil, fmt.Errorf("%s is not base64url", name)
		}
		return new(big.Int).SetBytes(data), nil
	}
	switch k.Type {
	case "RSA":
		n, err := number("n", k.N)
		if err != nil {
			return nil, err
		}
		e, err := number("e", k.E)
		if err != nil || !e.IsInt64() || e.Int64() > 1<<31-1 || e.Int64() < 3 {
			return nil, errors.New("e is not a public exponent")
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
	case "EC":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil {
			return nil, errors.New("x is not base64url")
		}
		y, err := base64.RawURLEncoding.DecodeString(k.Y)
		if err != nil {
			return nil, errors.New("y is not base64url")
		}
		if k.Curve != "P-256" {
			return nil, fmt.Errorf("curve %q, want P-256", k.Curve)
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	}
	return nil, fmt.Errorf("key type %q, want RSA or EC", k.Type)
}

// verify checks a token with the key that it names, or with the keys without an ID.
func (ks Keys) verify(j *jwt) error {
	err := errors.New("no key has the id " + j.header.KeyID)
	for _, k := range ks {
		if k.ID != "" && j.header.KeyID != "" && k.ID != j.header.KeyID {
			continue
		}
		if err = j.verify(k.Public); err == nil {
			return nil
		}
	}
	return err
}

// keyID derives the id of a key from the key.
func keyID(key *rsa.PublicKey) string {
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(key))
	return base64.RawURLEncoding.EncodeToString(sum[:20])
}

// published returns the signing key as clients read it.
func published(key *rsa.PublicKey) jwk {
	const bits = 8
	e := big.NewInt(int64(key.E))
	return jwk{
		Type: "RSA", Use: "sig", ID: keyID(key),
		N: base64.RawURLEncoding.EncodeToString(key.N.FillBytes(make([]byte, (key.N.BitLen()+bits-1)/bits))),
		E: base64.RawURLEncoding.EncodeToString(e.Bytes()),
	}
}
