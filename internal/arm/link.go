package arm

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// trusted parses a URL that Azure gave, such as the next page of a list or the state of an operation. Every request
// carries a token. So the URL must lead to the endpoint's host, or to a regional name of that host, at the same port.
// Compute writes the default port of the scheme and leaves the query unencoded; the result has no default port and an
// encoded query.
func (b *builder) trusted(raw string) (*url.URL, error) {
	ref, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("azure answered with a URL that cannot be read: %w", err)
	}
	u := b.endpoint.ResolveReference(ref)
	host, own := strings.ToLower(u.Hostname()), strings.ToLower(b.endpoint.Hostname())
	regional := net.ParseIP(own) == nil && strings.HasSuffix(host, "."+own)
	if u.Scheme != b.endpoint.Scheme || host != own && !regional || portOf(u) != portOf(b.endpoint) || u.User != nil {
		return nil, fmt.Errorf("azure answered with a URL on %s://%s, which is not %s://%s: not followed, the token would go there",
			u.Scheme, u.Host, b.endpoint.Scheme, b.endpoint.Host)
	}
	u.RawQuery = encodeQuery(u.RawQuery)
	if portOf(u) == defaultPort(u.Scheme) {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u, nil
}

// portOf returns the port of a URL, the default of its scheme if the URL has none.
func portOf(u *url.URL) string { return cmp.Or(u.Port(), defaultPort(u.Scheme)) }

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// encodeQuery encodes the bytes of a query that an HTTP request cannot have. What is encoded
// already stays, so that a query with both forms keeps its meaning.
func encodeQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		c := query[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~&=+!*(),/:?@", c) >= 0,
			c == '%' && i+2 < len(query) && isHex(query[i+1]) && isHex(query[i+2]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
