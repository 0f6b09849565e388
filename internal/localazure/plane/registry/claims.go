package registry

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// claims are the content of a registry's own tokens: the caller in refresh tokens, the access in access tokens.
type claims struct {
	Issuer   string   `json:"iss"`
	Audience string   `json:"aud"` // the registry's host
	Subject  string   `json:"sub"`
	Issued   int64    `json:"iat"`
	Begins   int64    `json:"nbf"`
	Expires  int64    `json:"exp"`
	ID       string   `json:"jti"`
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
	body, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(body)
	return signed + "." + encode(s.seal(signed)), nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s *Service) seal(text string) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// open verifies a token of a kind for a host and returns its claims.
func (s *Service) open(text, kind, host string, now time.Time) (claims, error) {
	var t claims
	last := strings.LastIndexByte(text, '.')
	if last < 0 {
		return t, errToken
	}
	signature, err := base64.RawURLEncoding.DecodeString(text[last+1:])
	if err != nil || !hmac.Equal(signature, s.seal(text[:last])) {
		return t, errToken
	}
	_, part, _ := strings.Cut(text[:last], ".")
	body, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || json.Unmarshal(body, &t) != nil {
		return t, errToken
	}
	if t.Kind != kind || t.Audience != host || now.Unix() >= t.Expires {
		return t, errToken
	}
	return t, nil
}
