package pullcredential

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// challenge is one authentication challenge of a server (RFC 9110, 11.6.1).
type challenge struct {
	scheme string
	params map[string]string
}

// parseChallenges parses a Www-Authenticate header, which may have several challenges. It skips
// invalid parts.
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
		if s.text == "" || s.text[0] != '=' { // a word without "=" is a scheme
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

// scanner reads a header from its start.
type scanner struct{ text string }

func (s *scanner) drop() {
	if s.text != "" {
		s.text = s.text[1:]
	}
}

func (s *scanner) skip(set string) { s.text = strings.TrimLeft(s.text, set) }

// token reads a word.
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

// value reads a word with additional characters, or a quoted text.
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
	return value.String() // the closing quote is missing
}

// service returns the registry's name in its challenge. The challenge must belong to the host, so
// that a token is never sent to another host.
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

// sameHost returns an error if the realm is not at the host.
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
