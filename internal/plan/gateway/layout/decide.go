package layout

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/limit"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/route"
)

// A path map knows paths alone, and whether it looks at the case of letters is not certain. What it cannot tell is decided by rewrites:
// each of its rules has a rewrite rule for each route that a request with such a path may belong to. Its conditions are those of the route,
// and it sends the request to an inner path. The path rule there leads to the backend of the route and gives the request the path that the
// client sent. Of several rewrite rules that hold, the last one decides, so that the best route comes last.

// inner is what inner paths begin with. A client that asks for one gets 404.
const inner = "/.kaz/"

// decides reports whether routes of a host need more than a path map.
func (h *host) decides() bool {
	return slices.ContainsFunc(h.routes, func(r route.Route) bool { return r.Sensitive || len(r.When) > 0 })
}

// decision is the path map of a listener with routes that need rewrites.
type decision struct {
	b      *builder
	l      *listener
	inMap  string
	rules  []azure.Child[network.GatewayPathRule]
	inside []azure.Child[network.GatewayPathRule] // for inner paths
	most   int                                    // conditions or headers of a rewrite rule set
}

// decide returns the rule of a listener. The newest object loses its routes as long as there are too many of something.
func (b *builder) decide(l *listener, rule network.GatewayRule) network.GatewayRule {
	for {
		made := b.trial()
		d := decision{b: made, l: l, inMap: b.prefix.Child("url", l.parts...)}
		whole := d.whole()
		if full := d.full(); full != "" && len(l.routes) > 0 {
			b.dropNewest(l, full)
			continue
		}
		b.take(made)
		g := &b.result.Gateway
		if len(d.rules)+len(d.inside) == 0 {
			rule.Pool, rule.Settings, rule.Redirect, rule.RewriteSet, rule.Distribution = whole.pool, whole.settings, whole.redirect,
				whole.rewrite, whole.distribution
			return rule
		}
		g.PathMaps = append(g.PathMaps, azure.Child[network.GatewayPathMap]{Name: d.inMap, Properties: network.GatewayPathMap{
			DefaultPool: whole.pool, DefaultSettings: whole.settings, DefaultRedirect: whole.redirect, DefaultRewriteSet: whole.rewrite,
			DefaultDistribution: whole.distribution, PathRules: slices.Concat(d.inside, d.rules),
		}})
		rule.RuleType, rule.PathMap = network.PathRule, b.ref("urlPathMaps", d.inMap)
		return rule
	}
}

// full says what there is too much of, "" for nothing.
func (d *decision) full() string {
	if n := len(d.rules) + len(d.inside); n > limit.PathRules {
		return fmt.Sprintf("a URL path map can have %d path rules", limit.PathRules)
	}
	if d.most > limit.InRewriteSet {
		return fmt.Sprintf("a rewrite rule set can have %d conditions and %d headers", limit.InRewriteSet, limit.InRewriteSet)
	}
	return ""
}

// dropNewest takes the routes of the newest object from a listener.
func (b *builder) dropNewest(l *listener, full string) {
	newest := slices.MaxFunc(l.routes, func(x, y route.Route) int { return route.Compare(x.Object, y.Object) }).Object
	l.routes = slices.DeleteFunc(l.routes, func(r route.Route) bool { return r.Object == newest })
	b.result.Problems = append(b.result.Problems, plan.Problem{
		Object: newest.Key(), Reason: limit.Reason,
		Message: fmt.Sprintf("the routes for %s are not served: %s, and older objects have taken them", l.hostKey, full),
	})
}

// class is a set of requests that one rule of a path map gets: those with a path, whatever the case of its letters, which is low here. A
// gateway that looks at the case gets the rule for the requests with one of the spellings.
type class struct {
	route.Path
	spellings []string
}

// classes returns the path rules that routes need, in the order in which they match. The path / alone cannot be a rule.
func classes(routes []route.Route) []class {
	var all []class
	for _, r := range routes {
		p := route.Path{Match: r.Path.Match, Literal: strings.ToLower(r.Path.Literal)}
		if p.Match >= route.All || p.Literal == "/" {
			continue
		}
		i := slices.IndexFunc(all, func(c class) bool { return c.Path == p })
		if i < 0 {
			i = len(all)
			all = append(all, class{Path: p})
		}
		if !slices.Contains(all[i].spellings, r.Path.Literal) {
			all[i].spellings = append(all[i].spellings, r.Path.Literal)
			slices.Sort(all[i].spellings)
		}
	}
	slices.SortFunc(all, func(x, y class) int { return route.ComparePaths(x.Path, y.Path) })
	return all
}

// others is the class of the requests that no path rule gets.
func others() class { return class{Path: route.Path{Match: route.All}} }

func (c class) isOthers() bool { return c.Match == route.All }

// patterns returns the patterns of the path rule.
func (c class) patterns() []string {
	var all []string
	for _, spelling := range c.spellings {
		all = append(all, route.Path{Match: c.Match, Literal: spelling}.Patterns()...)
	}
	return all
}

// String tells the class from others of its path map.
func (c class) String() string {
	if c.isOthers() {
		return "others"
	}
	return strings.Join(c.Patterns(), " ")
}

// reaches reports whether a request of the class can have a path of a route. A request with a path of a route never gets to the others: the
// route's own rule has it, in the route's spelling.
func (c class) reaches(p route.Path) bool {
	literal := strings.ToLower(p.Literal)
	switch {
	case p.Match >= route.All:
		return true
	case c.isOthers():
		return p.Literal == "/"
	case p.Match == route.Exact:
		return c.Match == route.Exact && c.Literal == literal
	case p.Match == route.Element:
		return c.Literal == literal || strings.HasPrefix(c.Literal, literal+"/")
	default:
		return strings.HasPrefix(c.Literal, literal)
	}
}

// guard returns the pattern that tells the paths of a route from others of the class, "" if all are the route's.
func (c class) guard(r route.Route) string {
	if r.Path.Match >= route.All || !c.isOthers() && (!r.Sensitive || r.Path.Literal == strings.ToUpper(r.Path.Literal) &&
		r.Path.Literal == strings.ToLower(r.Path.Literal)) {
		return ""
	}
	return r.Path.Pattern()
}

// candidates returns the routes that a request of the class may belong to, the best first. The last one takes all that are left.
func (d *decision) candidates(c class) []route.Route {
	var all []route.Route
	for _, r := range d.l.routes {
		if c.reaches(r.Path) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, route.CompareRoutes)
	for i, r := range all {
		if len(r.When) == 0 && c.guard(r) == "" {
			return all[:i+1]
		}
	}
	return append(all, route.Route{Object: d.l.first, Path: others().Path, Target: route.Target{Status: route.NotFound}})
}

// whole makes the path rules of all classes, and returns the target of all other requests.
func (d *decision) whole() target {
	for _, c := range classes(d.l.routes) {
		t := d.class(c)
		const longest = 80
		first := d.candidates(c)[0]
		name := naming.Local(longest, "pr", fmt.Sprint(int(c.Match)), c.Literal)
		rule := t.pathRule(c.patterns(), first.FirewallPolicy)
		d.rules = append(d.rules, azure.Child[network.GatewayPathRule]{Name: name, Properties: rule})
		d.needs(name, c)
	}
	return d.class(others())
}

// needs notes the objects of a class's path rule.
func (d *decision) needs(name string, c class) {
	for _, r := range d.candidates(c) {
		d.b.needs(name, r.Object)
		d.b.needs(d.inMap, r.Object)
	}
}

func (t target) pathRule(paths []string, policy azure.ID) network.GatewayPathRule {
	rule := network.GatewayPathRule{
		Paths: paths, Pool: t.pool, Settings: t.settings, Redirect: t.redirect, RewriteSet: t.rewrite, Distribution: t.distribution,
	}
	if policy != "" {
		rule.FirewallPolicy = azure.Ref(policy)
	}
	return rule
}

// class returns the target of a class with the rewrites that decide about its requests.
func (d *decision) class(c class) target {
	candidates := d.candidates(c)
	best, rest := candidates[0], candidates[len(candidates)-1]
	set := rewriting{}
	if len(best.When) == 0 {
		guard := pathCondition(c.guard(best))
		for _, r := range slices.Backward(candidates[1:]) {
			set.send(slices.Concat(negated(guard), d.conditions(c, r)), d.inner(r))
		}
		if len(candidates) == 1 {
			guard = nil
		}
		set.change(best, guard, false)
		return d.target(best, set, c.String())
	}
	if !rest.Change.IsZero() {
		set.send(nil, d.inner(rest))
	}
	for _, r := range slices.Backward(candidates[:len(candidates)-1]) {
		set.send(d.conditions(c, r), d.inner(r))
	}
	return d.target(rest, set, c.String())
}

// conditions are those of a route, for a request of the class.
func (d *decision) conditions(c class, r route.Route) []network.GatewayRewriteCondition {
	all := pathCondition(c.guard(r))
	for _, w := range r.When {
		variable, pattern := w.Variable()
		all = append(all, network.GatewayRewriteCondition{Variable: variable, Pattern: pattern})
	}
	return all
}

func pathCondition(pattern string) []network.GatewayRewriteCondition {
	if pattern == "" {
		return nil
	}
	return []network.GatewayRewriteCondition{{Variable: pathVariable, Pattern: pattern}}
}

func negated(conditions []network.GatewayRewriteCondition) []network.GatewayRewriteCondition {
	all := slices.Clone(conditions)
	for i := range all {
		all[i].Negate = !all[i].Negate
	}
	return all
}

// inner returns the inner path of a route, and makes its path rule.
func (d *decision) inner(r route.Route) string {
	const longest = 80
	id := fmt.Sprint(r.Target.Status)
	if r.Target.Status == 0 || len(r.When) > 0 || r.Path.Match < route.All {
		id = naming.Local(longest-len(inner), r.Object.Kind, r.Object.Namespace, r.Object.Name, fmt.Sprint(r.Rank))
	}
	path := inner + id
	name := naming.Local(longest, "pr", path)
	if slices.ContainsFunc(d.inside, func(p azure.Child[network.GatewayPathRule]) bool { return p.Name == name }) {
		d.b.needs(name, r.Object)
		return path
	}
	set := rewriting{}
	if r.Target.Status == 0 {
		set.change(r, nil, true)
	}
	// The place is taken before the rule for what clients ask for by themselves.
	at := len(d.inside)
	d.inside = append(d.inside, azure.Child[network.GatewayPathRule]{Name: name})
	if r.Target.Status == 0 {
		set.send([]network.GatewayRewriteCondition{{Variable: pathVariable, Pattern: "^/\\.kaz/", IgnoreCase: true}}, d.inner(route.Route{
			Object: r.Object, Path: others().Path, Target: route.Target{Status: route.NotFound},
		}))
	}
	d.inside[at].Properties = d.target(r, set, path).pathRule([]string{path}, r.FirewallPolicy)
	d.b.needs(name, r.Object)
	d.b.needs(d.inMap, r.Object)
	return path
}

// target returns where a route leads, with rewrites. A redirect has none.
func (d *decision) target(r route.Route, set rewriting, of string) target {
	t := d.b.target(d.l, r)
	if len(set.rules) == 0 {
		return t
	}
	if t.redirect != nil {
		d.b.conflict(r.Object, "a redirect of %s takes paths (%s) from routes that look at more than the path, or at the case of letters: "+
			"an application gateway cannot have both there", d.l.hostKey, of)
		return t
	}
	d.most = max(d.most, set.conditions, set.headers)
	name := d.b.prefix.Child("rs", append(slices.Clone(d.l.parts), of)...)
	d.b.rewrites[name] = azure.Child[network.GatewayRewriteSet]{Name: name, Properties: network.GatewayRewriteSet{Rules: set.rules}}
	d.b.needs(name, r.Object)
	t.rewrite = d.b.ref("rewriteRuleSets", name)
	return t
}
