package service

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/reconcile"
)

// freshness is when the commits last read Azure past the cache, and last changed something:
// else each change of a node would be read and written once for each Service.
type freshness struct{ read, wrote time.Time }

// presence is which Services had something in Azure when their last commit ended: the others are
// asked for in the API server, and a deleted Service counts for nothing though informers may
// still have it, as its finalizer goes last.
type presence struct{ inAzure, deleted map[types.UID]bool }

// note notes the Services of a commit that has ended.
func (p *presence) note(in loadbalancer.Input) {
	absent := leftover.Absent(in)
	if p.inAzure == nil {
		p.inAzure, p.deleted = map[types.UID]bool{}, map[types.UID]bool{}
	}
	for _, s := range in.Services {
		delete(p.inAzure, s.UID)
		switch {
		case s.Gone:
			p.deleted[s.UID] = true
		case !absent[s.UID]:
			p.inAzure[s.UID] = true
		}
	}
}

// withoutDeleted leaves deleted Services out: what they shared with others goes with the last of
// those. Those that informers do not have any more are forgotten.
func (p *presence) withoutDeleted(others []*corev1.Service) []*corev1.Service {
	still := map[types.UID]bool{}
	others = slices.DeleteFunc(others, func(s *corev1.Service) bool {
		if p.deleted[s.UID] {
			still[s.UID] = true
		}
		return p.deleted[s.UID]
	})
	p.deleted = still
	return others
}

// deletionGroups are the resource groups in which public IPs of Services are to be deleted, until that
// is done: nothing in Azure shows them reliably.
type deletionGroups map[types.UID][]key.Note

func (g deletionGroups) add(more map[types.UID][]key.Note) {
	for uid, notes := range more {
		g[uid] = append(g[uid], notes...)
	}
}

// recall tells Services of theirs, and forgets Services that do not exist any more.
func (g deletionGroups) recall(services []loadbalancer.Service, known []*corev1.Service) []loadbalancer.Service {
	exists := decision.UIDs(services)
	for _, s := range known {
		exists[s.UID] = true
	}
	maps.DeleteFunc(g, func(uid types.UID, _ []key.Note) bool { return !exists[uid] })
	return withGroups(services, g)
}

// withGroups are Services that have asked for more resource groups.
func withGroups(services []loadbalancer.Service, more map[types.UID][]key.Note) []loadbalancer.Service {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Groups = slices.Concat(s.Groups, more[s.UID])
	}
	return services
}

// rejectedAddresses are addresses of nodes that Azure has not taken into a pool, with its
// reason: a commit that tried them again would fail for all Services.
type rejectedAddresses map[string]string

// stillOf are those that nodes have. A comparison of everything tries them again: the virtual
// network may be another one by now.
func (r rejectedAddresses) stillOf(nodes []*corev1.Node, drift bool) map[string]string {
	still := map[string]string{}
	if drift {
		return still
	}
	for _, n := range nodes {
		for _, ip := range cluster.InternalIPs(n) {
			if reason, rejected := r[ip.String()]; rejected {
				still[ip.String()] = reason
			}
		}
	}
	return still
}

// rejectedBy are the addresses that Azure names in a refusal, each with what it says.
func rejectedBy(out reconcile.Outcome) map[string]string {
	rejected := map[string]string{}
	for _, res := range out.Failed() {
		e, ok := errors.AsType[*azure.Error](res.Err)
		if !ok || e.Kind != azure.Invalid {
			continue
		}
		text := strings.ToLower(e.Target + " " + e.Message)
		for _, p := range balancerIn(res.Step).BackendAddressPools {
			if !controller.Mentions(text, res.Step.ID.Child(network.BackendAddressPools, p.Name).Key()) {
				continue
			}
			named := slices.DeleteFunc(slices.Clone(p.Properties.LoadBalancerBackendAddresses),
				func(m azure.Child[network.BackendAddress]) bool {
					return m.Properties.IPAddress == "" || !controller.Mentions(text, strings.ToLower(m.Name)) &&
						!controller.Mentions(text, strings.ToLower(m.Properties.IPAddress))
				})
			if len(named) == len(p.Properties.LoadBalancerBackendAddresses) {
				continue // the pool would be empty: it is not about a node
			}
			for _, m := range named {
				rejected[m.Properties.IPAddress] = e.Message
			}
		}
	}
	return rejected
}
