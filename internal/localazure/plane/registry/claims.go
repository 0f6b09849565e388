package registry

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// claims are the content of a registry's own tokens: the caller in refresh tokens, the access in access tokens.
type claims struct {
	jwt.RegisteredClaims
	Audience string   `json:"aud"` // the registry's host
	Kind     string   `json:"grant_type"`
	Client   string   `json:"appid,omitempty"`
	Object   string   `json:"oid,omitempty"`
	Tenant   string   `json:"tenant,omitempty"`
	Access   []access `json:"access,omitempty"`
}

// The kinds of tokens and their lifetimes.
const (
	refreshKind = "refresh_token"
	accessKind  = "access_token"

	refreshLife = 3 * time.Hour
	accessLife  = 75 * time.Minute

	issuer = "Azure Container Registry"
)

var errToken = errors.New("not a valid token of this registry")

// sign returns a JSON web token with the claims, signed with HS256.
func (s *Service) sign(t claims) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, t).SignedString(s.key)
}

// open verifies a token of a kind for a host and returns its claims.
func (s *Service) open(text, kind, host string, now time.Time) (claims, error) {
	var t claims
	_, err := jwt.ParseWithClaims(text, &t, func(*jwt.Token) (any, error) { return s.key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil || t.Kind != kind || t.Audience != host {
		return t, errToken
	}
	return t, nil
}
