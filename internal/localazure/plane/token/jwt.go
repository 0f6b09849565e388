package token

import (
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	library "github.com/golang-jwt/jwt/v5"
)

// jwt is a JSON web token before the check of its signature.
type jwt struct {
	header    header
	claims    claims
	method    library.SigningMethod
	signed    string
	signature []byte
}

type header struct {
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
	all, _ := library.MapClaims(c).GetAudience()
	return all
}

var errNotJWT = errors.New("not a JSON web token")

func parseJWT(text string) (*jwt, error) {
	parser := library.NewParser()
	t, parts, err := parser.ParseUnverified(text, library.MapClaims{})
	if err != nil {
		return nil, errNotJWT
	}
	j := &jwt{claims: claims(t.Claims.(library.MapClaims)), method: t.Method, signed: parts[0] + "." + parts[1], signature: t.Signature}
	data, err := parser.DecodeSegment(parts[0])
	if err != nil || json.Unmarshal(data, &j.header) != nil {
		return nil, errNotJWT
	}
	return j, nil
}

// verify checks the signature with a public key. The token's algorithm must fit the key: "none" and keyed hashes never
// do.
func (j *jwt) verify(key crypto.PublicKey) error {
	if !slices.Contains([]string{"RS256", "PS256", "ES256"}, j.method.Alg()) {
		return fmt.Errorf("algorithm %q is not allowed", j.method.Alg())
	}
	return j.method.Verify(j.signed, j.signature, key)
}

// sign returns a token signed with RS256.
func sign(key *rsa.PrivateKey, h header, c claims) (string, error) {
	t := library.NewWithClaims(library.SigningMethodRS256, library.MapClaims(c))
	t.Header["kid"], t.Header["x5t"] = h.KeyID, h.Thumbprint
	return t.SignedString(key)
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
