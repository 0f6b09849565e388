// Package limit keeps an application gateway within the limits of Azure: the newest objects lose. Layer L1.
package limit

import (
	"fmt"
	"maps"
	"strings"

	"kaz/internal/plan"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// Reason is the reason of problems.
const Reason = "LimitExceeded"

// Limits of the SKUs Standard_v2 and WAF_v2. A gateway with firewall rules of CRS 3.1 or older has lower ones, which its document does
// not show; Azure's refusal tells then.
const (
	Hosts        = 5 // of a listener
	PathRules    = 100
	InRewriteSet = 40 // conditions, and as many headers
	listeners    = 100
	pools        = 100
	settings     = 100
	probes       = 100
	certificates = 100
	redirects    = 100
	ports        = 100
	rewriteSets  = 400
	roots        = 100
	streams      = 200
)

// kinds are the kinds of children that are counted, in the order in which a problem names them.
var kinds = []struct {
	name string
	most int
}{
	{"HTTP listeners", listeners},
	{"backend address pools", pools},
	{"backend HTTP settings", settings},
	{"probes", probes},
	{"SSL certificates", certificates},
	{"redirect configurations", redirects},
	{"frontend ports", ports},
	{"rewrite rule sets", rewriteSets},
	{"trusted root certificates", roots},
	{"listeners of TCP and TLS", streams},
	{"backend settings", settings},
}

// Indices of kinds.
const (
	aListener = iota
	aPool
	aSetting
	aProbe
	aCertificate
	aRedirect
	aPort
	aRewriteSet
	aRoot
	aStream
	aStreamSetting
)

// Admit returns the sites of the objects for which there is room beside what others have at the gateway. Sites are in the order of their
// objects, the oldest first.
func Admit(sites []route.Site, g live.Gateway) ([]route.Site, []plan.Problem) {
	c := counter{used: map[string]bool{}, chunks: map[string]int{}}
	p := g.Properties
	for kind, n := range map[int]int{
		aListener: live.Foreign(g, p.Listeners), aPool: live.Foreign(g, p.Pools), aSetting: live.Foreign(g, p.Settings),
		aProbe: live.Foreign(g, p.Probes), aCertificate: live.Foreign(g, p.Certificates), aRedirect: live.Foreign(g, p.Redirects),
		aPort: live.Foreign(g, p.Ports), aRewriteSet: live.Foreign(g, p.RewriteSets), aRoot: live.Foreign(g, p.TrustedRoots),
		aStream: live.Foreign(g, p.StreamListeners), aStreamSetting: live.Foreign(g, p.StreamSettings),
	} {
		c.counts[kind] = n
	}
	var admitted []route.Site
	var problems []plan.Problem
	for len(sites) > 0 {
		n := 1
		for n < len(sites) && sites[n].Object == sites[0].Object {
			n++
		}
		if full := c.add(sites[:n], g); full != "" {
			problems = append(problems, plan.Problem{Object: sites[0].Object.Key(), Reason: Reason, Message: full + "; the " +
				sites[0].Object.Kind + " is not served until there is room"})
		} else {
			admitted = append(admitted, sites[:n]...)
		}
		sites = sites[n:]
	}
	return admitted, problems
}

// counter counts the children that sites need.
type counter struct {
	counts [aStreamSetting + 1]int
	used   map[string]bool
	chunks map[string]int // number of hosts in the listener of a host
}

// add counts the children of an object if there is room, or says what there is too much of.
func (c *counter) add(sites []route.Site, g live.Gateway) (full string) {
	next := c.counts
	fresh := map[string]bool{}
	chunks := map[string]int{}
	need := func(kind int, parts ...any) {
		key := fmt.Sprint(kind) + "\x00" + strings.TrimSuffix(fmt.Sprintln(parts...), "\n")
		if !c.used[key] && !fresh[key] {
			fresh[key] = true
			next[kind]++
		}
	}
	for _, s := range sites {
		listener, _ := kindsOf(s)
		next[listener] += c.listeners(s, chunks)
		c.site(s, g, need)
	}
	for i, kind := range kinds {
		if next[i] > kind.most && next[i] > c.counts[i] {
			return fmt.Sprintf("an application gateway can have %d %s, and older objects have taken them", kind.most, kind.name)
		}
	}
	c.counts = next
	for key := range fresh {
		c.used[key] = true
	}
	maps.Copy(c.chunks, chunks)
	return ""
}

// kindsOf returns the kinds of the listeners and the settings of a site.
func kindsOf(s route.Site) (listener, setting int) {
	if s.Stream {
		return aStream, aStreamSetting
	}
	return aListener, aSetting
}

// site counts the children that a site needs beside its listeners.
func (c *counter) site(s route.Site, g live.Gateway, need func(kind int, parts ...any)) {
	if _, foreign := g.PortBesides(g.Mine, s.Port); !foreign {
		need(aPort, s.Port)
	}
	if s.TLS != nil && s.TLS.Certificate != nil {
		need(aCertificate, s.TLS.Certificate.Namespace, s.TLS.Certificate.Secret)
	}
	rest := false
	for _, r := range s.Routes {
		c.route(s, r, need)
		rest = rest || r.Path.Match >= route.All && (!s.Stream || r.Target.Backend != nil)
	}
	if !rest { // the rest leads to a pool without backends
		_, setting := kindsOf(s)
		need(aPool, "nowhere")
		need(setting, "nowhere")
	}
}

func (c *counter) route(s route.Site, r route.Route, need func(kind int, parts ...any)) {
	backends := r.Target.Shares
	if r.Target.Backend != nil {
		backends = []route.Share{{Backend: r.Target.Backend}}
	}
	for _, b := range backends {
		need(aPool, b.Namespace, b.Service, b.Port, b.Settings.Port)
		_, setting := kindsOf(s)
		need(setting, s.Object.Key(), b.Namespace, b.Service, b.Port, b.Variant)
		need(aProbe, s.Object.Key(), b.Namespace, b.Service, b.Port, b.Variant)
		for _, root := range b.Authorities {
			need(aRoot, root.Hash)
		}
	}
	if to := r.Target.Redirect; to != nil {
		need(aRedirect, to.Type, to.URL, to.KeepsPath)
	}
	if len(r.When) > 0 || r.Sensitive { // one for its path rule, and one for its inner path
		need(aRewriteSet, s.Port, s.Private, s.Hosts, r.Path)
		need(aRewriteSet, s.Port, s.Private, s.Hosts, s.Object.Key(), r.Rank)
	}
	if r.Target.RedirectTo != 0 {
		for i := range max(1, (len(s.Hosts)+Hosts-1)/Hosts) {
			need(aRedirect, s.Object.Key(), strings.Join(s.Hosts, ","), r.Target.RedirectTo, i)
		}
	}
	if r.Rewrite.Name != "" {
		need(aRewriteSet, r.Rewrite.Namespace, r.Rewrite.Name)
	}
}

// listeners returns how many further listeners a site needs at most. A host that shares its listener with others and gets other routes
// than they needs one of its own.
func (c *counter) listeners(s route.Site, chunks map[string]int) (n int) {
	hosts := s.Hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	fresh := map[bool][]string{} // by whether the host has a wildcard: a listener has hosts of one sort
	for _, host := range hosts {
		key := fmt.Sprint(s.Private, s.Port, " ", host)
		switch size := max(c.chunks[key], chunks[key]); {
		case size == 0:
			wild := strings.ContainsAny(host, "*?")
			fresh[wild] = append(fresh[wild], key)
		case size > 1:
			n++
			chunks[key] = 1
		}
	}
	for _, keys := range fresh {
		for _, key := range keys {
			chunks[key] = min(len(keys), Hosts)
		}
		n += (len(keys) + Hosts - 1) / Hosts
	}
	return n
}
