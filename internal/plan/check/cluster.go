package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/nodes"
)

const (
	// patience is how long something may take that usually takes seconds to minutes: the address of a Service, a disk without its
	// volume.
	patience = 5 * time.Minute
	// uninitialized is the taint of a Node that the cloud provider has not initialized.
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

func machines(f *Facts, l *list) {
	off, used := map[string]bool{}, map[string]bool{}
	for _, m := range f.Machines {
		off[m.ID.Key()] = m.Off
	}
	for _, n := range f.Nodes {
		describe := "kubectl describe node " + n.Name
		if slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == uninitialized }) {
			l.add(n.Name, Warning, fmt.Sprintf("it is %v old and not initialized: it has the taint %s", f.age(n.CreationTimestamp.Time),
				uninitialized), "kubectl logs -n kube-system -l component=cloud-node-manager")
		}
		id, ok := nodes.MachineID(n.Spec.ProviderID)
		if !ok {
			continue // a Node outside Azure, or without a providerID so far
		}
		used[id.Key()] = true
		isOff, there := off[id.Key()]
		switch {
		case !strings.EqualFold(id.Subscription(), f.Group.Subscription()):
			l.add(n.Name, Warning, fmt.Sprintf("its providerID names the subscription %s, azure.json the subscription %s",
				id.Subscription(), f.Group.Subscription()), describe)
		case !id.Under(f.Group):
			l.add(n.Name, Unknown, "its machine is in another resource group, which is not read: "+string(id),
				"az vm show --ids "+string(id))
		case !there:
			l.add(n.Name, Problem, "its machine is not in Azure: "+string(id), describe)
		case isOff && ready(n):
			l.add(n.Name, Warning, "it is ready, and its machine is off or being deleted: "+string(id), describe)
		}
	}
	for _, m := range f.Machines {
		if !used[m.ID.Key()] && m.Set != "" && !m.Off {
			l.add(nodes.MachineName(m.ID), Warning, "the machine has no Node: "+string(m.ID),
				"read its boot log: az serial-console, or az vm boot-diagnostics get-boot-log")
		}
	}
}

func ready(n v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

// age returns how old something is, in whole seconds.
func (f *Facts) age(since time.Time) time.Duration { return f.Now.Sub(since).Truncate(time.Second) }

func services(f *Facts, l *list) {
	addresses, unread := f.frontendAddresses()
	last := f.lastEvents()
	for _, s := range f.Services {
		if s.Spec.Type != v1.ServiceTypeLoadBalancer || s.Spec.LoadBalancerClass != nil {
			continue
		}
		name := s.Namespace + "/" + s.Name
		mend := "kaz explain service " + name
		if gone := s.DeletionTimestamp; gone != nil {
			if age := f.age(gone.Time); age > patience {
				l.add(name, Problem, fmt.Sprintf("it is being deleted for %v and waits for %s", age, strings.Join(s.Finalizers, ", ")),
					mend)
			}
			continue
		}
		if age := f.age(s.CreationTimestamp.Time); len(s.Status.LoadBalancer.Ingress) == 0 && age > patience {
			l.add(name, Problem, fmt.Sprintf("it is %v old and has no address%s", age, said(last, "Service", s.Namespace, s.Name)), mend)
		}
		for _, in := range s.Status.LoadBalancer.Ingress {
			address, err := netip.ParseAddr(in.IP)
			switch {
			case err != nil || addresses[address]:
			case len(unread) > 0:
				l.add(name, Unknown, fmt.Sprintf("no frontend is known to have its address %s; the public IP of a frontend is not read: %s",
					in.IP, unread[0]), mend)
			default:
				l.add(name, Problem, "no frontend has its address "+in.IP, mend)
			}
		}
	}
}

// frontendAddresses returns the addresses of all frontends, and the public IPs of those of which no address is known.
func (f *Facts) frontendAddresses() (known map[netip.Addr]bool, unread []azure.ID) {
	public := map[string]string{}
	for _, ip := range f.PublicIPs {
		public[ip.ID.Key()] = ip.Properties.IPAddress
	}
	known = map[netip.Addr]bool{}
	for _, lb := range f.LoadBalancers {
		for _, fe := range lb.Properties.FrontendIPConfigurations {
			text, id := fe.Properties.PrivateIPAddress, fe.Properties.PublicIPAddress.To()
			if id != "" {
				var there bool
				if text, there = public[id.Key()]; !there {
					unread = append(unread, id)
				}
			}
			if address, err := netip.ParseAddr(text); err == nil {
				known[address] = true
			}
		}
	}
	return known, unread
}

// orphans finds frontends and public IPs of Services that were absent both before and after Azure was read.
func orphans(f *Facts, l *list) {
	owners, keys := map[string]bool{}, map[string]bool{}
	for _, s := range slices.Concat(f.Services, f.Present) {
		owners[naming.OwnerOf(&s)], keys[s.Namespace+"/"+s.Name] = true, true
	}
	const mend = "kaz explain service --all shows what the cloud-controller-manager will do with it"
	for _, lb := range f.LoadBalancers {
		if !f.balances(lb.ID.Name()) {
			continue
		}
		for _, fe := range lb.Properties.FrontendIPConfigurations {
			if naming.IsOwned(fe.Name) && !owners[naming.Owner(fe.Name)] {
				l.add(lb.ID.Name()+"/"+fe.Name, Warning, "the frontend is named after a Service that the cluster does not have: "+
					string(lb.ID), mend)
			}
		}
	}
	for _, ip := range f.PublicIPs {
		if why := f.orphaned(ip, owners, keys); why != "" {
			l.add(ip.ID.Name(), Warning, "the public IP "+ip.Properties.IPAddress+" is "+why+": "+string(ip.ID), mend)
		}
	}
}

// orphaned returns for which absent Services a public IP is, "" if it is for one that the cluster has or for another purpose. Tags name
// the cluster as well, since several can share a resource group.
func (f *Facts) orphaned(ip azure.Resource[network.PublicIPAddress], owners, keys map[string]bool) string {
	if owner := naming.PublicIPOwner(f.ClusterName, ip.ID.Name()); owners[owner] || naming.IsOfOther(ip.Tags, f.ClusterName) {
		return ""
	}
	served := naming.ServicesIn(ip.Tags)
	_, assigned := naming.ClusterIn(ip.Tags)
	if !assigned || len(served) == 0 || slices.ContainsFunc(served, func(key string) bool { return keys[key] }) {
		return ""
	}
	return "tagged with " + strings.Join(served, ", ") + ", which the cluster does not have"
}

// balances reports whether a load balancer is one of this cluster's.
func (f *Facts) balances(name string) bool {
	return slices.ContainsFunc(f.Balancers, func(own string) bool {
		return strings.EqualFold(name, own) || strings.EqualFold(name, own+cluster.InternalSuffix)
	})
}
