package pullcredential

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// challenge is one way of authenticating that a server offers (RFC 9110, 11.6.1).
type challenge struct {
	scheme string
	params map[string]string
}

// parseChallenges reads a Www-Authenticate header, which may offer several ways.
// What it cannot read it skips.
func parseChallenges(header string) []challenge {
	var all []challenge
	s := scanner{header}
	for s.text != "" {
		s.skip(" \t,")
		word := s.token()
		if word == "" { // neither a scheme nor a parameter
			s.value()
			s.skip("=")
			continue
		}
		s.skip(" \t")
		if s.text == "" || s.text[0] != '=' { // a word alone is a scheme
			all = append(all, challenge{strings.ToLower(word), map[string]string{}})
			continue
		}
		s.drop()
		s.skip(" \t")
		if value := s.value(); len(all) > 0 {
			all[len(all)-1].params[strings.ToLower(word)] = value
		}
	}
	return all
}

// scanner takes a header apart from its front.
type scanner struct{ text string }

func (s *scanner) drop() {
	if s.text != "" {
		s.text = s.text[1:]
	}
}

func (s *scanner) skip(set string) { s.text = strings.TrimLeft(s.text, set) }

// token is a word.
func (s *scanner) token() string { return s.until("\"=, \t") }

func (s *scanner) until(end string) string {
	i := strings.IndexAny(s.text, end)
	if i < 0 {
		i = len(s.text)
	}
	word := s.text[:i]
	s.text = s.text[i:]
	return word
}

// value is a word, which may hold more here than elsewhere, or a text in quotes.
func (s *scanner) value() string {
	if s.text == "" || s.text[0] != '"' {
		return s.until("\", \t")
	}
	var value strings.Builder
	for s.drop(); s.text != ""; s.drop() {
		switch c := s.text[0]; {
		case c == '"':
			s.drop()
			return value.String()
		case c == '\\' && len(s.text) > 1:
			s.drop()
			value.WriteByte(s.text[0])
		default:
			value.WriteByte(c)
		}
	}
	return value.String() // the end of the quotes is missing
}

// service is what a registry calls itself in its challenge. The challenge must be
// the registry's own: a token that was meant for one host is not sent to another.
func service(host string, header http.Header) (string, error) {
	var bearers []challenge
	for _, line := range header.Values("Www-Authenticate") {
		for _, c := range parseChallenges(line) {
			if c.scheme == "bearer" {
				bearers = append(bearers, c)
			}
		}
	}
	if len(bearers) != 1 {
		return "", fmt.Errorf("registry %s offers %d Bearer challenges, want 1 Www-Authenticate header with one", host, len(bearers))
	}
	name, realm := bearers[0].params["service"], bearers[0].params["realm"]
	if name == "" || realm == "" {
		return "", fmt.Errorf("the challenge of registry %s has no realm or no service", host)
	}
	if err := sameHost(host, realm); err != nil {
		return "", fmt.Errorf("the challenge of registry %s: realm %q: %w", host, shorten(realm), err)
	}
	bare, _, _ := strings.Cut(host, ":")
	if !strings.EqualFold(name, host) && !strings.EqualFold(name, bare) {
		return "", fmt.Errorf("the challenge of registry %s is for service %q, want %s", host, shorten(name), bare)
	}
	return name, nil
}

// sameHost refuses a realm that is not at the host itself.
func sameHost(host, realm string) error {
	u, err := url.Parse(realm)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.Scheme != "https" || u.User != nil:
		return errors.New("not an https URL without a user")
	case !strings.EqualFold(strings.TrimSuffix(u.Host, ":443"), strings.TrimSuffix(host, ":443")):
		return fmt.Errorf("not at %s", host)
	}
	return nil
}
