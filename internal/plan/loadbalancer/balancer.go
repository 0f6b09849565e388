package loadbalancer

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// balancer is the load balancer as it shall be.
type balancer struct {
	network.LoadBalancer
	kept   map[string]bool // ids of public IPs that remain at a frontend, by key
	exists bool
	stays  bool // has frontends, which Azure demands of every load balancer
	shrank bool // lost a frontend
	pooled bool // has the cluster's pool
}

func (f *facts) balancer(b batch, found *problems) balancer {
	lb := balancer{exists: f.balancerExists, kept: map[string]bool{}}
	f.frontends(b, &lb, found)
	f.rulesAndProbes(b, &lb)
	for _, p := range f.lb.Properties.BackendAddressPools {
		lb.BackendAddressPools = append(lb.BackendAddressPools, kept(p))
	}
	pool := f.Config.pool().Name()
	lb.pooled = slices.ContainsFunc(lb.BackendAddressPools, func(p azure.Child[network.BackendAddressPool]) bool { return sameText(p.Name, pool) })
	if len(b.live) > 0 && !lb.pooled {
		lb.BackendAddressPools = append(lb.BackendAddressPools, azure.Child[network.BackendAddressPool]{Name: pool})
		lb.pooled = true
	}
	for _, fe := range lb.FrontendIPConfigurations {
		if ip := fe.Properties.PublicIPAddress; ip != nil {
			lb.kept[ip.ID.Key()] = true
		}
	}
	lb.stays = len(lb.FrontendIPConfigurations) > 0
	return lb
}

// frontends gives each live Service its frontend and takes away those of the
// batch's Services that nothing else stands at.
func (f *facts) frontends(b batch, lb *balancer, found *problems) {
	mine := make(map[string]wish, len(b.live))
	for _, w := range b.live {
		mine[strings.ToLower(w.base)] = w
	}
	leaving := make(map[string]string, len(b.gone))
	for _, w := range b.gone {
		leaving[strings.ToLower(w.base)] = w.service.Key()
	}
	have := make(map[string]bool, len(mine))
	lb.FrontendIPConfigurations = make([]azure.Child[network.FrontendIPConfiguration], 0, len(f.lb.Properties.FrontendIPConfigurations)+len(mine))
	for _, fe := range f.lb.Properties.FrontendIPConfigurations {
		owner := ownerBase(fe.Name)
		w, live := mine[owner]
		switch {
		case live && sameText(fe.Name, w.base):
			fe.Properties.PublicIPAddress = azure.Ref(f.publicIPOf(w))
			lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, fe)
			have[owner] = true
			continue
		case b.base[owner]:
			rest := f.remaining(b, fe.Name)
			if len(rest) == 0 {
				lb.shrank = true
				continue
			}
			if key, ok := leaving[owner]; ok {
				found.warn(key, ReasonFrontendKept, "frontend %s and its public IP stay: the %s %q stands at it", fe.Name, rest[0].what, rest[0].name)
			}
		}
		lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, kept(fe))
	}
	for _, w := range b.live {
		if !have[strings.ToLower(w.base)] {
			lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, azure.Child[network.FrontendIPConfiguration]{
				Name:       w.base,
				Properties: network.FrontendIPConfiguration{PublicIPAddress: azure.Ref(f.publicIPOf(w))},
			})
		}
	}
}

// kept is an element of others, which stays as it is.
func kept[P any](c azure.Child[P]) azure.Child[P] {
	c.Keep = true
	return c
}

// rulesAndProbes replaces the batch's rules and probes and carries all others.
func (f *facts) rulesAndProbes(b batch, lb *balancer) {
	had := f.lb.Properties
	lb.LoadBalancingRules = make([]azure.Child[network.LoadBalancingRule], 0, len(had.LoadBalancingRules)+len(b.live))
	twice := map[string]bool{} // rules in which Azure has repeated the pool
	for _, r := range had.LoadBalancingRules {
		if !b.base[ownerBase(r.Name)] {
			lb.LoadBalancingRules = append(lb.LoadBalancingRules, kept(r))
			continue
		}
		twice[strings.ToLower(r.Name)] = len(r.Properties.BackendAddressPools) > 0
	}
	lb.Probes = make([]azure.Child[network.Probe], 0, len(had.Probes)+len(b.live))
	for _, p := range had.Probes {
		if !b.base[ownerBase(p.Name)] {
			lb.Probes = append(lb.Probes, kept(p))
		}
	}
	for _, w := range b.live {
		for _, r := range w.rules {
			view := f.ruleView(w, r)
			if twice[strings.ToLower(r.name)] {
				view.Properties.BackendAddressPools = []azure.Reference{*view.Properties.BackendAddressPool}
			}
			lb.LoadBalancingRules = append(lb.LoadBalancingRules, view)
		}
		lb.Probes = append(lb.Probes, w.probes...)
	}
}

func (f *facts) ruleView(w wish, r rule) azure.Child[network.LoadBalancingRule] {
	lb := f.Config.LoadBalancer()
	view := network.LoadBalancingRule{
		Protocol: r.protocol, FrontendPort: r.port, BackendPort: r.port,
		EnableFloatingIP: new(true), EnableTCPReset: r.reset, LoadDistribution: r.distribution,
		DisableOutboundSNAT: new(f.Config.DisableOutboundSNAT), IdleTimeoutInMinutes: new(r.idleMinutes),
		FrontendIPConfiguration: azure.Ref(lb.Child(network.FrontendIPConfigurations, w.base)),
		BackendAddressPool:      azure.Ref(f.Config.pool()),
	}
	if r.probe != "" {
		view.Probe = azure.Ref(lb.Child(network.Probes, r.probe))
	}
	return azure.Child[network.LoadBalancingRule]{Name: r.name, Properties: view}
}

// node is the load balancer's place in the graph. Azure knows no load balancer
// without a frontend, so with the last one it goes as a whole.
func (lb balancer) node(f *facts, b batch) (plan.Node, bool) {
	id := f.Config.LoadBalancer()
	names := b.names()
	switch {
	case lb.stays:
		r := azure.Resource[network.LoadBalancer]{ID: id, Properties: lb.LoadBalancer, Tags: wantedTags(f.Config, nil, f.lb.Tags)}
		if !lb.exists {
			r.Location, r.SKU = f.Config.Location, &azure.SKU{Name: "Standard"}
		}
		return plan.Wanted(r, "frontends, rules and probes of "+summary(names), names...), true
	case lb.exists && lb.shrank:
		return plan.Gone[network.LoadBalancer](id, "its last frontend goes with "+summary(names), names...), true
	}
	return plan.Node{}, false
}

// going reports whether the load balancer is deleted.
func (lb balancer) going() bool { return lb.exists && lb.shrank && !lb.stays }
