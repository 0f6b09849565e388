package routing

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rewrite is a rule of a rewrite rule set.
type Rewrite struct {
	Name     string
	Sequence int
	// Conditions must all hold.
	Conditions        []Condition
	Request, Response []HeaderAction
	URL               *URLAction
}

// Condition compares a variable with a pattern.
type Condition struct {
	Variable string
	Pattern  *regexp.Regexp
	Negate   bool
}

// HeaderAction sets a header. An empty value removes it. With a pattern only the values that match are changed.
type HeaderAction struct {
	Name, Value string
	Pattern     *regexp.Regexp
	Negate      bool
}

// URLAction changes the path or the arguments of a request. The values can have variables.
type URLAction struct {
	Path, Query string
	// Reroute chooses the path rule again, by the new path.
	Reroute bool
}

// late reports whether the rule depends on the response.
func (r Rewrite) late() bool {
	return slices.ContainsFunc(r.Conditions, func(c Condition) bool {
		return strings.HasPrefix(c.Variable, "http_resp_") || c.Variable == "var_http_status"
	})
}

// rewritesOf returns the rules of a set in the order of their sequence. A rule with a pattern that is not served is left out.
func (c *compiler) rewritesOf(of reference) []Rewrite {
	var all []Rewrite
	for _, r := range c.rewrites[of.name()].Rules {
		made := Rewrite{Name: r.Name, Sequence: int(r.Sequence)}
		ok := true
		for _, condition := range r.Conditions {
			pattern, compiled := c.pattern(of, r.Name, condition.Pattern, condition.IgnoreCase)
			ok = ok && compiled
			made.Conditions = append(made.Conditions, Condition{Variable: strings.ToLower(condition.Variable), Pattern: pattern,
				Negate: condition.Negate})
		}
		for _, list := range []struct {
			from []headerAction
			to   *[]HeaderAction
		}{{r.Actions.Request, &made.Request}, {r.Actions.Response, &made.Response}} {
			for _, h := range list.from {
				action := HeaderAction{Name: h.Name, Value: h.Value}
				if m := h.Matcher; m != nil {
					pattern, compiled := c.pattern(of, r.Name, m.Pattern, m.IgnoreCase)
					ok = ok && compiled
					action.Pattern, action.Negate = pattern, m.Negate
				}
				*list.to = append(*list.to, action)
			}
		}
		if u := r.Actions.URL; u != nil {
			made.URL = &URLAction{Path: u.Path, Query: u.Query, Reroute: u.Reroute}
		}
		if ok {
			all = append(all, made)
		}
	}
	slices.SortStableFunc(all, func(a, b Rewrite) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

func (c *compiler) pattern(set reference, rule, text string, ignoreCase bool) (*regexp.Regexp, bool) {
	if ignoreCase {
		text = "(?i)" + text
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		c.problem("rewrite rule %s of %s has a pattern that is not served here: %v", rule, set.ID.Name(), err)
		return nil, false
	}
	return pattern, true
}

// Exchange is a request and its response, as rewrites see and change them.
type Exchange struct {
	Method, Host, Path, Query string
	// Original is the path with the query as the client sent it.
	Original string
	// Header are the headers for the backend, Response those for the client.
	Header, Response http.Header
	// ForwardedFor are the headers X-Forwarded-For as the client sent them.
	ForwardedFor []string
	Status       int
	Proto        string
	Client       netip.AddrPort
	ServerPort   uint16
	TLS          *tls.ConnectionState

	asked    *asked
	captures map[string]string
	held     map[string]bool // rules by name whose conditions held when the request came
}

// asked is a request as the client sent it. Rewrites do not change it: Azure's documentation says of the variable uri_path that it is the
// path before any manipulation.
type asked struct{ host, path, query string }

// Request applies the rules to the request. It reports whether the path rule is to be chosen again, and whether the address changed. The
// rules of a path rule that is chosen again see the request as the client sent it, too.
func (x *Exchange) Request(rules []Rewrite) (reroute, changed bool) {
	if x.asked == nil {
		x.asked = &asked{host: x.Host, path: x.Path, query: x.Query}
	}
	x.captures, x.held = map[string]string{}, map[string]bool{}
	for _, r := range rules {
		if r.late() || !x.holds(r) {
			continue
		}
		x.held[r.Name] = true
		for _, h := range r.Request {
			if strings.EqualFold(h.Name, "Host") {
				x.Host = cmp.Or(x.expand(h.Value), x.Host)
				continue
			}
			x.change(x.Header, h)
		}
		if r.URL == nil {
			continue
		}
		before := x.Path + "?" + x.Query
		newPath, newQuery := x.expand(r.URL.Path), x.expand(r.URL.Query)
		if newPath != "" {
			x.Path = "/" + strings.TrimPrefix(newPath, "/")
		}
		if r.URL.Query != "" {
			x.Query = strings.TrimPrefix(newQuery, "?")
		}
		changed = changed || before != x.Path+"?"+x.Query
		reroute = reroute || r.URL.Reroute
	}
	return reroute, changed
}

// Respond applies the rules to the response.
func (x *Exchange) Respond(rules []Rewrite) {
	for _, r := range rules {
		if r.late() && !x.holds(r) || !r.late() && !x.held[r.Name] {
			continue
		}
		for _, h := range r.Response {
			x.change(x.Response, h)
		}
	}
}

// change sets or removes a header.
func (x *Exchange) change(header http.Header, h HeaderAction) {
	value := x.expand(h.Value)
	name := http.CanonicalHeaderKey(h.Name)
	if h.Pattern == nil {
		if value == "" {
			header.Del(name)
		} else {
			header.Set(name, value)
		}
		return
	}
	var kept []string
	for _, had := range header[name] {
		if h.Pattern.MatchString(had) == h.Negate {
			kept = append(kept, had)
		} else if value != "" {
			kept = append(kept, value)
		}
	}
	header[name] = kept
	if len(kept) == 0 {
		header.Del(name)
	}
}

// holds reports whether all conditions of a rule hold, and keeps what their patterns capture.
func (x *Exchange) holds(r Rewrite) bool {
	for _, c := range r.Conditions {
		groups := c.Pattern.FindStringSubmatch(x.variable(c.Variable))
		if (groups == nil) != c.Negate {
			return false
		}
		for i, group := range groups {
			if i > 0 {
				x.captures[c.Variable+"_"+strconv.Itoa(i)] = group
			}
		}
	}
	return true
}

// named matches a variable in a value.
var named = regexp.MustCompile(`\{[A-Za-z0-9_-]+\}`)

// expand replaces the variables in a value. A variable that the exchange lacks is empty.
func (x *Exchange) expand(value string) string {
	return named.ReplaceAllStringFunc(value, func(braced string) string {
		name := strings.ToLower(braced[1 : len(braced)-1])
		if captured, ok := x.captures[name]; ok {
			return captured
		}
		return x.variable(name)
	})
}

// variable returns the value of a variable: a header of the request or the response, or a server variable.
func (x *Exchange) variable(name string) string {
	if header, ok := strings.CutPrefix(name, "http_req_"); ok {
		if header == "host" {
			return x.Host
		}
		return strings.Join(x.Header.Values(header), ", ")
	}
	if header, ok := strings.CutPrefix(name, "http_resp_"); ok {
		return strings.Join(x.Response.Values(header), ", ")
	}
	if cookie, ok := strings.CutPrefix(name, "var_cookie_"); ok {
		return cookieOf(x.Header, cookie)
	}
	if of, ok := variables[strings.TrimPrefix(name, "var_")]; ok {
		return of(x)
	}
	return ""
}

func cookieOf(header http.Header, name string) string {
	request := http.Request{Header: header}
	for _, c := range request.Cookies() {
		if strings.EqualFold(c.Name, name) {
			return c.Value
		}
	}
	return ""
}

// variables are the server variables.
var variables = map[string]func(x *Exchange) string{
	"host":           func(x *Exchange) string { return x.asked.host },
	"uri_path":       func(x *Exchange) string { return x.asked.path },
	"request_uri":    func(x *Exchange) string { return x.Original },
	"query_string":   func(x *Exchange) string { return x.asked.query },
	"request_query":  func(x *Exchange) string { return x.asked.query },
	"request_method": func(x *Exchange) string { return x.Method },
	"http_method":    func(x *Exchange) string { return x.Method },
	"http_version":   func(x *Exchange) string { return x.Proto },
	"http_status": func(x *Exchange) string {
		if x.Status == 0 {
			return ""
		}
		return strconv.Itoa(x.Status)
	},
	"client_ip":   func(x *Exchange) string { return x.Client.Addr().String() },
	"client_port": func(x *Exchange) string { return strconv.Itoa(int(x.Client.Port())) },
	"server_port": func(x *Exchange) string { return strconv.Itoa(int(x.ServerPort)) },
	"request_scheme": func(x *Exchange) string {
		if x.TLS != nil {
			return "https"
		}
		return "http"
	},
	"add_x_forwarded_for_proxy": func(x *Exchange) string {
		return strings.Join(append(slices.Clip(x.ForwardedFor), x.Client.Addr().String()), ", ")
	},
	"ssl_enabled": func(x *Exchange) string {
		if x.TLS != nil {
			return "on"
		}
		return ""
	},
	"ssl_connection_protocol": func(x *Exchange) string {
		if x.TLS == nil {
			return ""
		}
		return strings.Replace(tls.VersionName(x.TLS.Version), "TLS ", "TLSv", 1)
	},
	"ssl_cipher": func(x *Exchange) string {
		if x.TLS == nil {
			return ""
		}
		return tls.CipherSuiteName(x.TLS.CipherSuite)
	},
	"ssl_server_name": func(x *Exchange) string {
		if x.TLS == nil {
			return ""
		}
		return x.TLS.ServerName
	},
}
