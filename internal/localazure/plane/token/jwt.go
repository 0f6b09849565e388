package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// jwt is a JSON web token before the check of its signature.
type jwt struct {
	header    header
	claims    claims
	signed    string
	signature []byte
}

type header struct {
	Algorithm     string   `json:"alg"`
	Type          string   `json:"typ,omitempty"`
	KeyID         string   `json:"kid,omitempty"`
	Thumbprint    string   `json:"x5t,omitempty"`
	Thumbprint256 string   `json:"x5t#S256,omitempty"`
	Chain         []string `json:"x5c,omitempty"`
}

type claims map[string]any

func (c claims) text(name string) string {
	s, _ := c[name].(string)
	return s
}

// time returns a moment in seconds since 1970, zero for none.
func (c claims) time(name string) time.Time {
	seconds, ok := c[name].(float64)
	if !ok {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// audiences is "aud", which is a string or a list.
func (c claims) audiences() []string {
	switch v := c["aud"].(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, a := range v {
			if s, ok := a.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

var errNotJWT = errors.New("not a JSON web token")

func parseJWT(text string) (*jwt, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, errNotJWT
	}
	j := &jwt{signed: parts[0] + "." + parts[1]}
	for i, into := range []any{&j.header, &j.claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, errNotJWT
		}
		if err := json.Unmarshal(data, into); err != nil {
			return nil, errNotJWT
		}
	}
	var err error
	if j.signature, err = base64.RawURLEncoding.DecodeString(parts[2]); err != nil || j.claims == nil {
		return nil, errNotJWT
	}
	return j, nil
}

// verify checks the signature with a public key. The token's algorithm must fit the key: "none" and keyed hashes never
// do.
func (j *jwt) verify(key crypto.PublicKey) error {
	sum := sha256.Sum256([]byte(j.signed))
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch j.header.Algorithm {
		case "RS256":
			return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], j.signature)
		case "PS256":
			return rsa.VerifyPSS(k, crypto.SHA256, sum[:], j.signature, nil)
		}
	case *ecdsa.PublicKey:
		const half = 32
		if j.header.Algorithm == "ES256" && len(j.signature) == 2*half {
			r, s := new(big.Int).SetBytes(j.signature[:half]), new(big.Int).SetBytes(j.signature[half:])
			if ecdsa.Verify(k, sum[:], r, s) {
				return nil
			}
			return errors.New("invalid signature")
		}
	}
	return fmt.Errorf("algorithm %q does not fit the key", j.header.Algorithm)
}

// sign returns a token signed with RS256.
func sign(key *rsa.PrivateKey, h header, c claims) (string, error) {
	h.Algorithm, h.Type = "RS256", "JWT"
	var parts []string
	for _, part := range []any{h, c} {
		data, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(data))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
