package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

const (
	farGroup           = azure.ID("/subscriptions/s/resourceGroups/far")
	privateConnections = "Microsoft.Network/privateLinkServices/privateEndpointConnections"
)

// hide is a snapshot of all but the public IPs of a group that cannot be read.
func hide(w *subscription, why azure.Kind) plan.Snapshot {
	const fullType = "Microsoft.Network/publicIPAddresses"
	have := w.snapshot()
	for _, d := range have.List(farGroup, fullType) {
		have = have.Without(d.ID())
	}
	return have.WithUnread(farGroup, fullType, why)
}

// TestWhatCannotBeReadStays checks that a list that could not be read is not an empty one. A Service that needs it is
// refused. Existing parts stay, though nothing else shows their address.
func TestWhatCannotBeReadStays(t *testing.T) {
	for _, why := range []azure.Kind{azure.Denied, azure.NotFound} {
		w := newSubscription(2)
		web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
		web.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-resource-group": "far"}
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
			Services: []loadbalancer.Service{{Service: web}, {Service: api}}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		elsewhere := web.DeepCopy()
		elsewhere.Annotations = nil
		for name, services := range map[string][]loadbalancer.Service{
			"all are compared":        {{Service: web}, {Service: api}},
			"it asks for another one": {{Service: elsewhere}, {Service: api}},
			"it is deleted":           {{Service: web, Gone: true}, {Service: api}},
			"it was forgotten":        {{Service: elsewhere, Gone: true}, {Service: api}},
		} {
			t.Run(why.String()+"/"+name, func(t *testing.T) {
				in := in
				in.Services, in.Have = services, hide(w, why)
				graph, found, err := loadbalancer.Desired(in)
				if err != nil {
					t.Fatal(err)
				}
				p, err := plan.Diff(in.Have, graph)
				if err != nil || !p.Empty() {
					t.Errorf("%v, %s", err, p)
				}
				if len(found) != 1 || found[0].Object != "default/web" || found[0].Warning ||
					found[0].Reason != problem.Unread || !strings.Contains(found[0].Message, `"far"`) {
					t.Errorf("found %v", found)
				}
			})
		}
	}
}

// TestANoteOfAGroupThatMayNotBeReadStays checks that a note of a resource group that may have
// addresses stays until the group has been read.
func TestANoteOfAGroupThatMayNotBeReadStays(t *testing.T) {
	for what, tags := range map[string]loadbalancer.Config{
		"no tags": {}, "tags": {Tags: azure.Tags{"team": "a"}}, "system tags": {SystemTags: []string{"sys"}},
		"both": {Tags: azure.Tags{"team": "a"}, SystemTags: []string{"sys"}},
	} {
		for why, want := range map[azure.Kind]bool{azure.Denied: true, azure.NotFound: false} {
			w := newSubscription(2)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2),
				Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
			in.Config.Tags, in.Config.SystemTags = tags.Tags, tags.SystemTags
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			id := in.Config.LoadBalancer().Parent().Resource("Microsoft.Network/networkSecurityGroups", in.Config.SecurityGroupName)
			group := w.docs[id.Key()]
			fill(group, object{"tags": object{}})
			group["tags"].(object)["kaz-"+in.Config.ClusterName+"-public-ips-in-far"] = "true"
			in.Have = hide(w, why)
			graph, _, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(in.Have, graph)
			if err != nil || p.Empty() != want {
				t.Errorf("%s, %v: %v, %s", what, why, err, p)
			}
		}
	}
}

// TestALinkInAGroupThatMayNotBeRead checks that a private link service in a resource group that may
// not be read concerns its own Service only. It keeps the Service as long as there can be one.
func TestALinkInAGroupThatMayNotBeRead(t *testing.T) {
	for why, stays := range map[azure.Kind]bool{azure.Denied: true, azure.NotFound: false} {
		w := newSubscription(2)
		web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
		web.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: web}, {Service: api}}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		web.Annotations["service.beta.kubernetes.io/azure-pls-create"] = "true"
		web.Annotations["service.beta.kubernetes.io/azure-pls-resource-group"] = "far"
		for gone, want := range map[bool]bool{false: true, true: stays} {
			in.Services = []loadbalancer.Service{{Service: web, Gone: gone}, {Service: api}}
			in.Have = w.snapshot().WithUnread(farGroup, "Microsoft.Network/privateLinkServices", why)
			graph, found, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(in.Have, graph)
			refused := len(found) == 1 && found[0].Object == "default/web" && strings.Contains(found[0].Message, `"far"`)
			if err != nil || p.Empty() != want || refused != want {
				t.Errorf("%v, gone %v: %v, %v\n%s", why, gone, err, found, p)
			}
		}
	}
}

// TestConnectionsThatMayNotBeRead checks that a private link service goes when its connections have
// ended. Where the connections may not be read, it stays with its Service, which gets a problem; the
// other Service is served.
func TestConnectionsThatMayNotBeRead(t *testing.T) {
	const create = "service.beta.kubernetes.io/azure-pls-create"
	w := newSubscription(2)
	addOwn(w)
	web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
	web.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true", create: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	links := w.snapshot().List(in.Config.LoadBalancer().Parent(), "Microsoft.Network/privateLinkServices")
	if len(links) != 1 {
		t.Fatalf("there are %d private link services, want 1", len(links))
	}
	link := links[0].ID()
	sub(w.docs[link.Key()],
		"properties")["privateEndpointConnections"] = []any{object{"id": string(link.Child("privateEndpointConnections", "theirs"))}}
	stays := web.DeepCopy()
	unlinked := web.DeepCopy()
	delete(unlinked.Annotations, create)
	for name, c := range map[string]struct {
		web     loadbalancer.Service
		refused bool
	}{
		"it stays":            {loadbalancer.Service{Service: stays}, false},
		"it is deleted":       {loadbalancer.Service{Service: web, Gone: true}, true},
		"it asks for no more": {loadbalancer.Service{Service: unlinked}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Services = []loadbalancer.Service{c.web, {Service: api}}
			in.Have = w.snapshot()
			if _, lists := loadbalancer.Needs(in); !slices.ContainsFunc(lists, func(q azure.Query) bool {
				return q.Scope.Equal(link) && loadbalancer.MayBeUnread(in.Config, q.Scope, q.Type)
			}) {
				t.Errorf("the connections are not among what may be unread: %v", lists)
			}
			in.Have = in.Have.WithUnread(link, privateConnections, azure.Denied)
			graph, found, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(in.Have, graph)
			if err != nil || p.Empty() || strings.Contains(p.String(), link.Name()) {
				t.Errorf("%v, %s", err, p)
			}
			refused := len(found) == 1 && found[0].Object == "default/web" && found[0].Reason == problem.Unread &&
				strings.Contains(found[0].Message, privateConnections+"/read")
			if refused != c.refused || !refused && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestASubnetThatMayNotBeRead checks that a subnet that may not be read delays the Services that ask
// for an address there. What such a Service has there stays as long as the Service does.
func TestASubnetThatMayNotBeRead(t *testing.T) {
	w := newSubscription(2)
	web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
	web.Annotations = map[string]string{
		"service.beta.kubernetes.io/azure-load-balancer-internal":        "true",
		"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "apps",
	}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: web}, {Service: api}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	elsewhere := web.DeepCopy()
	delete(elsewhere.Annotations, "service.beta.kubernetes.io/azure-load-balancer-internal-subnet")
	linked := web.DeepCopy() // asks for two things there
	linked.Annotations["service.beta.kubernetes.io/azure-pls-create"] = "true"
	external := web.DeepCopy() // and its annotation says nothing
	external.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] = "false"
	in.Have = w.snapshot()
	for _, id := range subnetsOf(in) {
		in.Have = in.Have.Without(id).WithUnread(id, id.Type(), azure.Denied)
	}
	for name, c := range map[string]struct {
		web     loadbalancer.Service
		refused bool
	}{
		"it asks for it":                {loadbalancer.Service{Service: web}, true},
		"it asks for a link there, too": {loadbalancer.Service{Service: linked}, true},
		"it asks for another one":       {loadbalancer.Service{Service: elsewhere}, false},
		"it asks for a public IP":       {loadbalancer.Service{Service: external}, false},
		"it is deleted":                 {loadbalancer.Service{Service: web, Gone: true}, false},
		"it is changed and deleted":     {loadbalancer.Service{Service: elsewhere, Gone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Services = []loadbalancer.Service{c.web, {Service: api}}
			graph, found, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			found = slices.DeleteFunc(found, func(p plan.Problem) bool { return p.Reason == problem.Unheeded })
			p, err := plan.Diff(in.Have, graph)
			if err != nil || p.Empty() != c.refused {
				t.Errorf("%v, %s", err, p)
			}
			refused := len(found) == 1 && found[0].Object == "default/web" && !found[0].Warning &&
				found[0].Reason == problem.Unread &&
				strings.Contains(found[0].Message, `azure-load-balancer-internal-subnet: "apps" may not be read`)
			if refused != c.refused || !refused && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}

// subnetsOf are the subnets that a decision can do without.
func subnetsOf(in loadbalancer.Input) (ids []azure.ID) {
	all, _ := loadbalancer.Needs(in)
	for _, id := range all {
		if loadbalancer.MayBeUnread(in.Config, id, id.Type()) {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestWhatMayBeUnread checks that nothing is decided without the cluster's own resources, whichever
// Service names them.
func TestWhatMayBeUnread(t *testing.T) {
	web := service("web", tcp(80, 30080))
	for name, want := range map[string]int{"": 0, strings.ToUpper(config().Subnet): 0, "apps": 1} {
		web.Annotations = map[string]string{
			"service.beta.kubernetes.io/azure-load-balancer-internal":        "true",
			"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": name,
		}
		in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: web}}}
		if got := subnetsOf(in); len(got) != want {
			t.Errorf("%q: %v may be unread, want %d", name, got, want)
		}
	}
}

// TestAVirtualNetworkIsMissing checks that a missing virtual network is reported as missing, and not as a subnet. If the
// network may not be read, the report says that it may be missing.
func TestAVirtualNetworkIsMissing(t *testing.T) {
	const kind = "Microsoft.Network/virtualNetworks"
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true",
		"service.beta.kubernetes.io/azure-load-balancer-internal-subnet": "nope"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: web}}}
	vnet := azure.GroupID("s", in.Config.VirtualNetworkResourceGroup).Resource(kind, in.Config.VirtualNetwork)
	subnet := vnet.Child("subnets", "nope")
	asks := func(have plan.Snapshot) bool {
		in := in
		in.Have = have
		ids, _ := loadbalancer.Needs(in)
		return slices.ContainsFunc(ids, vnet.Equal)
	}
	there := newSubscription(2).snapshot()
	missing := there.WithAbsent(subnet, "Resource nope not found.")
	if asks(there) || !asks(missing) || !loadbalancer.MayBeUnread(in.Config, vnet, kind) {
		t.Error("the network is to be looked at where its subnet is not there, and nowhere else, if that is allowed")
	}
	for want, have := range map[string]plan.Snapshot{
		`"nope" is not found in virtual network ` + string(vnet) +
			", allowed": missing.With(azure.Document(`{"id":"` + vnet + `"}`)),
		`"nope" is not found in virtual network ` + string(vnet) +
			", or the network is not there, allowed": missing.WithUnread(vnet, kind, azure.Denied),
		"the virtual network " + string(vnet) +
			` of the subnet "nope" is not found, allowed is one that is there: make it, or configure another vnetName or vnetResourceGroup; Azure says: No such group.`: missing.WithAbsent(vnet, "No such group."),
	} {
		in.Have = have
		_, found, err := loadbalancer.Desired(in)
		if err != nil || len(found) != 1 || found[0].Reason != problem.Subnet || !strings.Contains(found[0].Message, want) {
			t.Errorf("%v, %v, want %s", err, found, want)
		}
	}
}
