package routing

import (
	"path"
	"slices"
	"strings"
)

// Site returns the first site with the host at its listener, nil for none. The host has no port.
func (f *Front) Site(host string) *Site {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for i := range f.Sites {
		if f.Sites[i].serves(host) {
			return &f.Sites[i]
		}
	}
	return nil
}

func (s *Site) serves(host string) bool {
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, func(h string) bool { return matchesHost(h, host) })
}

// Certified returns the site that a client for a server name gets the certificate of: the site with the most specific host. A name
// that no site has gets the certificate of the first site.
func (f *Front) Certified(name string) *Site {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	var best *Site
	length := -1
	for i := range f.Sites {
		for _, h := range f.Sites[i].Hosts {
			if n := specificity(h); matchesHost(h, name) && n > length {
				best, length = &f.Sites[i], n
			}
		}
	}
	if best != nil || len(f.Sites) == 0 {
		return best
	}
	for i := range f.Sites {
		if len(f.Sites[i].Hosts) == 0 {
			return &f.Sites[i]
		}
	}
	return &f.Sites[0]
}

// specificity orders hosts: those without wildcards first, then by the number of other characters.
func specificity(host string) int {
	const exact = 1 << 20
	wild := strings.Count(host, "*") + strings.Count(host, "?")
	if wild == 0 {
		return exact
	}
	return len(host) - wild
}

// matchesHost compares a host with a pattern: * stands for any characters, ? for one. Both are in lower case.
func matchesHost(pattern, host string) bool {
	p, h, star, mark := 0, 0, -1, 0
	for h < len(host) {
		switch {
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == host[h]):
			p++
			h++
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, h
			p++
		case star >= 0:
			mark++
			p, h = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// Choose returns the action for a path, and the part of the path that the pattern fixes, "" for the default action. The first path
// rule that matches decides. Application gateways compare without regard to case, unless exact is set.
func (s *Site) Choose(requested string, exact bool) (action Action, literal string) {
	clean := Clean(requested)
	for _, p := range s.Paths {
		for _, pattern := range p.Patterns {
			if fixed, ok := matchesPath(pattern, clean, exact); ok {
				return p.Action, fixed
			}
		}
	}
	return s.Default, ""
}

// Chosen is what becomes of a request.
type Chosen struct {
	Action
	// Literal is the part of the path that the pattern of the path rule fixes.
	Literal string
	// Changed says that rewrites have changed the path or the query.
	Changed bool
}

// mostRounds is how often the path rule of a request is chosen.
const mostRounds = 10

// Route chooses what becomes of a request, and rewrites it. The rewrites of a path rule can lead to another path rule, with rewrites of its
// own; it returns false if that does not end, which Azure answers with 500. Redirects have no rewrites.
func (s *Site) Route(x *Exchange, exact bool) (c Chosen, ends bool) {
	for range mostRounds {
		c.Action, c.Literal = s.Choose(x.Path, exact)
		if c.Redirect != nil {
			c.Rewrites = nil
			return c, true
		}
		reroute, changed := x.Request(c.Rewrites)
		c.Changed = c.Changed || changed
		if !reroute {
			return c, true
		}
	}
	return c, false
}

// Clean resolves the dot segments of a path, as the gateway does before it compares. A slash at the end stays.
func Clean(requested string) string {
	if requested == "" || requested[0] != '/' {
		return "/"
	}
	clean := path.Clean(requested)
	if last := requested[strings.LastIndexByte(requested, '/')+1:]; clean != "/" && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return clean
}

// matchesPath returns what a pattern fixes of a path that it matches: all of it, or what is before the *.
func matchesPath(pattern, requested string, exact bool) (string, bool) {
	fixed, open := strings.CutSuffix(pattern, "*")
	same := strings.EqualFold
	if exact {
		same = func(a, b string) bool { return a == b }
	}
	if !open {
		return requested, same(fixed, requested)
	}
	if len(requested) < len(fixed) || !same(requested[:len(fixed)], fixed) {
		return "", false
	}
	return requested[:len(fixed)], true
}

// Override returns the path for a backend with a path in its settings: the path of the settings replaces the part that the pattern
// fixes. The default action fixes nothing, so there the path of the settings is put before the path of the request.
func Override(override, requested, literal string) string {
	if override == "" {
		return requested
	}
	rest := strings.TrimPrefix(requested, "/")
	if len(literal) <= len(requested) {
		rest = strings.TrimPrefix(requested[len(literal):], "/")
	}
	if rest == "" {
		return override
	}
	return strings.TrimSuffix(override, "/") + "/" + rest
}

// Location is the address that a redirect leads to. Arguments are the query of the request without its question mark.
func (r *Redirect) Location(host, requested, arguments string) string {
	to := r.URL
	if to == "" {
		to = r.Scheme + "://"
		if r.Host != "" {
			host = r.Host
		}
		if r.Scheme == "http" && r.Port == 80 || r.Scheme == "https" && r.Port == 443 {
			to += bracketed(host)
		} else {
			to += joinHostPort(host, r.Port)
		}
	}
	if r.IncludePath && requested != "" {
		to = strings.TrimSuffix(to, "/") + "/" + strings.TrimPrefix(requested, "/")
	}
	if r.IncludeArgs && arguments != "" {
		separator := "?"
		if strings.Contains(to, "?") {
			separator = "&"
		}
		to += separator + arguments
	}
	return to
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
