package loadbalancer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Desired decides what Azure must hold for the Services of one commit, and names
// what is wrong with them. An error says that the snapshot cannot be read.
//
// New public IPs come first and alone, because the other documents tell of their
// addresses: the graph is then Pending, and the next one on a new snapshot writes
// load balancer and security group side by side.
func Desired(in Input) (plan.Graph, []plan.Problem, error) {
	f, err := readFacts(in)
	if err != nil {
		return plan.Graph{}, nil, err
	}
	b, found := readBatch(f)
	var g plan.Graph
	if len(b.base) == 0 {
		return g, once(found), nil
	}
	add := func(nodes ...plan.Node) {
		for _, n := range nodes {
			if err == nil {
				err = g.Add(n)
			}
		}
	}
	add(f.wantedPublicIPs(b)...)
	if g.Pending = f.newPublicIPs(b); len(g.Pending) > 0 {
		return g, once(found), err
	}
	lb := f.balancer(b, &found)
	if n, ok := lb.node(f, b); ok {
		add(n)
	}
	members, err2 := f.membership(lb, b, &found)
	if err2 != nil {
		return plan.Graph{}, nil, err2
	}
	add(members...)
	if n, ok := f.security(b, lb, &g.Pending); ok {
		add(n)
	}
	add(f.releasedPublicIPs(b, lb)...)
	return g, once(found), err
}

// once drops what was found a second time.
func once(found problems) []plan.Problem {
	var out []plan.Problem
	seen := make(map[plan.Problem]bool, len(found))
	for _, p := range found {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// facts is the snapshot, read once.
type facts struct {
	Input
	balancerExists bool
	lb             azure.Resource[network.LoadBalancer]
	groupExists    bool
	group          azure.Resource[network.SecurityGroup]
	ips            map[string]azure.Resource[network.PublicIPAddress] // by id key
	ipsOf          map[string][]azure.ID                              // by Service that a tag names
	uses           map[string][]use                                   // of frontends, by name in lower case
	frontendsBy    map[string][]azure.Child[network.FrontendIPConfiguration]
}

func readFacts(in Input) (*facts, error) {
	f := &facts{Input: in}
	var err error
	if f.lb, f.balancerExists, err = plan.View[network.LoadBalancer](in.Have, in.Config.LoadBalancer()); err != nil {
		return nil, err
	}
	if in.Config.SecurityGroupName != "" {
		if f.group, f.groupExists, err = plan.View[network.SecurityGroup](in.Have, in.Config.securityGroup()); err != nil {
			return nil, err
		}
	}
	if err := f.readPublicIPs(); err != nil {
		return nil, err
	}
	f.uses = usesOf(f.lb.Properties)
	f.frontendsBy = frontendsByOwner(f.lb.Properties)
	return f, nil
}

// batch is the Services of a commit that are to be brought about.
type batch struct {
	live []wish
	gone []wish          // of these only service and base count
	base map[string]bool // of both, in lower case
}

// readBatch reads the Services in the order of their keys. One with a problem is
// left out, and thereby left as it is. A key may be there twice: a Service that is
// gone and its successor of the same name.
func readBatch(f *facts) (batch, problems) {
	b := batch{base: make(map[string]bool, len(f.Services))}
	var found problems
	services := slices.SortedFunc(slices.Values(f.Services), func(a, b Service) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), strings.Compare(string(a.UID), string(b.UID)))
	})
	for _, s := range services {
		if s.Gone {
			w := wish{service: s, base: baseName(s.Service)}
			var wrong problems
			if f.refuseLeftovers(w, &wrong); !wrong.blocking() {
				b.gone = append(b.gone, w)
				b.base[strings.ToLower(w.base)] = true
			}
			found = append(found, wrong...)
			continue
		}
		w, wrong := readWish(s)
		f.refuseWithoutGroup(s, &wrong)
		f.refuseConflicts(w, &wrong)
		found = append(found, wrong...)
		if !wrong.blocking() {
			b.live = append(b.live, w)
			b.base[strings.ToLower(w.base)] = true
		}
	}
	return b, found
}

func (f *facts) refuseWithoutGroup(s Service, found *problems) {
	switch {
	case f.Config.SecurityGroupName == "":
		found.refuse(s.Key(), ReasonSecurityGroup, "securityGroupName is not configured, allowed is the name of the nodes' network security group")
	case !f.groupExists:
		found.refuse(s.Key(), ReasonSecurityGroup, "network security group %s is not found", f.Config.securityGroup())
	}
}

// refuseLeftovers keeps a Service from being taken for gone while it has a frontend
// in the internal load balancer, which kaz does not write yet.
func (f *facts) refuseLeftovers(w wish, found *problems) {
	name, err := f.internalFrontend(w)
	switch {
	case err != nil:
		found.refuse(w.service.Key(), ReasonUnsupported, "%v", err)
	case name != "":
		found.refuse(w.service.Key(), ReasonUnsupported, "frontend %s of %s is still there: internal load balancers are not supported yet", name, f.Config.internalBalancer())
	}
}

// internalFrontend is the name of a Service's frontend in the internal load
// balancer, "" for none.
func (f *facts) internalFrontend(w wish) (string, error) {
	if !asksForMore(w.service) {
		return "", nil
	}
	lb, _, err := plan.View[network.LoadBalancer](f.Have, f.Config.internalBalancer())
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		if ownerBase(fe.Name) == strings.ToLower(w.base) {
			return fe.Name, nil
		}
	}
	return "", err
}

// names is the keys of the batch's Services.
func (b batch) names() []string {
	var names []string
	for _, w := range slices.Concat(b.live, b.gone) {
		names = append(names, w.service.Key())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// summary says for whom something is done: by name as long as they are few.
func summary(names []string) string {
	const few = 3
	switch n := len(names); {
	case n == 0:
		return "nobody"
	case n > few:
		return fmt.Sprintf("%d Services", n)
	}
	return strings.Join(names, ", ")
}
