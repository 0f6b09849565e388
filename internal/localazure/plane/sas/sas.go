// Package sas checks when, how and from where a shared access signature of Azure Storage may be used. Layer L2.
package sas

import (
	"crypto/hmac"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour/storage"
)

// Codes of refusals.
const (
	Failed   = "AuthenticationFailed"
	protocol = "AuthorizationProtocolMismatch"
	address  = "AuthorizationSourceIPMismatch"
)

// Check checks the time, the protocol and the address in the parameters of a shared access signature. It returns the code
// and the message of a refusal, or empty texts. It does not check the signature.
func Check(r *http.Request, v url.Values, now time.Time) (code, message string) {
	if start := v.Get("st"); start != "" {
		if at, err := ParseTime(start); err != nil || now.Before(at) {
			return Failed, outside("begins", start)
		}
	}
	if end, err := ParseTime(v.Get("se")); err != nil || !now.Before(end) {
		return Failed, outside("ends", v.Get("se"))
	}
	if v.Get("spr") == "https" && r.TLS == nil {
		return protocol, Mismatch("protocol")
	}
	if allowed := v.Get("sip"); allowed != "" && !inRange(r.RemoteAddr, allowed) {
		return address, Mismatch("source IP")
	}
	return "", ""
}

func outside(verb, at string) string {
	return Failure("Signature not valid in the specified time frame: it " + verb + " at " + at + ".")
}

// Failure returns the message of a request that is not authenticated.
func Failure(detail string) string {
	return "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the " +
		"signature. " + detail
}

// Mismatch returns the message for a signature or token that is valid, but for other requests.
func Mismatch(what string) string {
	return "This request is not authorized to perform this operation using this " + what + "."
}

// ParseTime reads a time as signatures and stored access policies spell it.
func ParseTime(text string) (at time.Time, err error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z", "2006-01-02"} {
		if at, err = time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return at, err
}

// inRange reports whether an address with a port is in a range ADDRESS or ADDRESS-ADDRESS.
func inRange(remote, allowed string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	first, last, ranged := strings.Cut(allowed, "-")
	if !ranged {
		last = first
	}
	ip, err := netip.ParseAddr(host)
	from, fromErr := netip.ParseAddr(first)
	to, toErr := netip.ParseAddr(last)
	ip = ip.Unmap()
	return err == nil && fromErr == nil && toErr == nil && ip.Compare(from) >= 0 && ip.Compare(to) <= 0
}

// SignedBy reports whether one of the keys of an account has made the signature of a text.
func SignedBy(keys [2]string, text, signature string) bool {
	found := false
	for _, key := range keys {
		if key != "" && hmac.Equal([]byte(storage.Sign(key, text)), []byte(signature)) {
			found = true
		}
	}
	return found
}
