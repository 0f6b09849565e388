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

// ticket is what a registry's own tokens say: refresh tokens who somebody is, access
// tokens what they may do.
type ticket struct {
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

// Kinds of tickets, and how long they are good for.
const (
	refreshKind = "refresh_token"
	accessKind  = "access_token"

	refreshLife = 3 * time.Hour
	accessLife  = 75 * time.Minute

	issuer = "Azure Container Registry"
)

var errTicket = errors.New("not a token of this registry, or not any more")

// sign makes a token of a ticket, a JSON web token with HS256.
func (s *Service) sign(t ticket) (string, error) {
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

// open reads a token of a kind that was made for a host.
func (s *Service) open(text, kind, host string, now time.Time) (ticket, error) {
	var t ticket
	last := strings.LastIndexByte(text, '.')
	if last < 0 {
		return t, errTicket
	}
	signature, err := base64.RawURLEncoding.DecodeString(text[last+1:])
	if err != nil || !hmac.Equal(signature, s.seal(text[:last])) {
		return t, errTicket
	}
	_, part, _ := strings.Cut(text[:last], ".")
	body, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || json.Unmarshal(body, &t) != nil {
		return t, errTicket
	}
	if t.Kind != kind || t.Audience != host || now.Unix() >= t.Expires {
		return t, errTicket
	}
	return t, nil
}
