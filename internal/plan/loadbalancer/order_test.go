package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// TestOrderOfArrival checks that Azure has the same state in the end, whatever the order in which
// Services come and the size of the batches. Exceptions are the priorities of security rules, the
// order of lists, the addresses that Azure chooses and the choice of a load balancer. The first
// Service at a shared address gives the frontend its name and has the private link service there.
func TestOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conf := genConfig(t)
		given := genFriends(t, conf)
		states := make([]map[string]any, 2)
		for i := range states {
			in := given
			in.Services = rapid.Permutation(given.Services).Draw(t, "order")
			states[i] = arrive(t, in, rapid.IntRange(1, 3).Draw(t, "at a time"))
		}
		if d := cmp.Diff(states[0], states[1]); d != "" {
			t.Fatal("it depends on the order (-one +other):\n" + d)
		}
	})
}

// genFriends draws Services of which none is refused for another's sake: where two want the
// same thing, the first one has it.
func genFriends(t *rapid.T, conf loadbalancer.Config) loadbalancer.Input {
	in := genCommit(t, conf)
	for i := range in.Services {
		in.Services[i].Gone = false
		for p := range in.Services[i].Spec.Ports { // Kubernetes gives out a node port once
			in.Services[i].Spec.Ports[p].NodePort += 100 * int32(i)
		}
	}
	in.Complete = true
	w := newSubscription(3)
	w.trusting = true // TestNeedsAreEnough
	addOwn(w)
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, r := range rounds {
		for _, p := range r.problems {
			refused[p.Object] = refused[p.Object] || !p.Warning
		}
	}
	in.Services = slices.DeleteFunc(in.Services, func(s loadbalancer.Service) bool {
		// Where there are several load balancers, the choice decides which Services have an IPv4
		// frontend beside them.
		return refused[s.Key()] || len(conf.Balancers) > 0 && slices.Equal(s.Spec.IPFamilies, []v1.IPFamily{v1.IPv6Protocol})
	})
	return in
}

// arrive serves Services in their order, in batches, and then all, as the controller does with
// deferred Services. It returns the state of Azure.
func arrive(t *rapid.T, in loadbalancer.Input, some int) map[string]any {
	w := newSubscription(3)
	w.trusting = true // TestNeedsAreEnough
	addOwn(w)
	c := cluster{}
	for _, batch := range append(slices.Collect(slices.Chunk(in.Services, some)), in.Services) {
		now := in
		now.Services = nil
		for _, s := range batch {
			now.Services = append(now.Services, loadbalancer.Service{Service: s.DeepCopy()})
		}
		now = c.know(now)
		settle(t, w, now)
		c.tell(t, w, now)
	}
	checkServed(t, w, in)
	return unordered(w, len(in.Config.Balancers) > 0)
}

// unordered is all of Azure without what the order of arrival decides.
func unordered(w *subscription, several bool) map[string]any {
	docs := state(w)
	n := namesIn(docs)
	out := map[string]any{}
	for key, x := range docs {
		doc := x.(object)
		switch id := azure.ID(key); {
		case id.Is("Microsoft.Network/networkSecurityGroups"):
			forgetPriorities(doc, several)
		case id.Is("Microsoft.Network/publicIPAddresses"):
			if of, ok := sub(doc, "tags")["k8s-azure-service"].(string); ok {
				sub(doc, "tags")["k8s-azure-service"] = strings.Join(slices.Sorted(strings.SplitSeq(of, ",")), ",")
			}
		case id.Is("Microsoft.Network/privateLinkServices"):
			key, doc = n.link(key, doc)
		case id.Is("Microsoft.Network/loadBalancers") && several:
			key = forgetChoice(id, doc)
		}
		plain := n.plain(doc)
		if other, two := out[key]; two {
			plain = united(other, plain)
		}
		out[key] = plain
	}
	return out
}

// forgetPriorities takes away which priorities security rules have, and, where there are
// several load balancers, the nodes, which are at the one that was chosen.
func forgetPriorities(group object, several bool) {
	p := sub(group, "properties")
	nodes := map[any]bool{}
	for _, n := range addressed(machines(3)) {
		for _, six := range []bool{false, true} {
			nodes[addressOf(n, six)] = several
		}
	}
	rules := []any{}
	for _, r := range children(p, "securityRules") {
		rp := sub(r, "properties")
		delete(rp, "priority")
		to, _ := rp["destinationAddressPrefixes"].([]any)
		if one := rp["destinationAddressPrefix"]; one != nil {
			to = append(to, one)
		}
		delete(rp, "destinationAddressPrefix")
		to = slices.DeleteFunc(to, func(x any) bool { return nodes[x] })
		rp["destinationAddressPrefixes"] = to
		if len(to) > 0 { // to the nodes alone: there is none where a load balancer without nodes was chosen
			rules = append(rules, r)
		}
	}
	p["securityRules"] = rules
}

// forgetChoice removes the choice of a load balancer, and the members of its pools. It returns the id
// key of all of them.
func forgetChoice(id azure.ID, balancer object) string {
	name, internal := "any", strings.HasSuffix(string(id), "-internal")
	if internal {
		name += "-internal"
	}
	for _, pool := range children(sub(balancer, "properties"), "backendAddressPools") {
		if strings.HasPrefix(pool["name"].(string), "kubernetes") {
			delete(sub(pool, "properties"), "loadBalancerBackendAddresses")
		}
	}
	balancer["name"] = name
	return string(id.Parent()) + "/" + name
}

// arrivalNames are what things are called whatever came first.
type arrivalNames struct {
	addresses map[string]string // that Azure chose
	frontends map[string]string // by id in lower case
	shared    map[string]bool   // frontends of several Services, by name
}

func namesIn(docs map[string]any) arrivalNames {
	n := arrivalNames{map[string]string{}, map[string]string{}, map[string]bool{}}
	for key, doc := range docs {
		p := sub(doc.(object), "properties")
		if address, ok := p["ipAddress"].(string); ok && azure.ID(key).Is("Microsoft.Network/publicIPAddresses") {
			n.addresses[address] = "address of " + azure.ID(key).Name()
		}
		if !azure.ID(key).Is("Microsoft.Network/loadBalancers") {
			continue
		}
		for _, fe := range children(p, "frontendIPConfigurations") {
			id, fp := strings.ToLower(fe["id"].(string)), sub(fe, "properties")
			ip, public := fp["publicIPAddress"].(object)
			address, _ := fp["privateIPAddress"].(string)
			switch {
			case public:
				n.frontends[id] = "at " + azure.ID(ip["id"].(string)).Name()
			case fp["privateIPAllocationMethod"] == "Static":
				n.frontends[id] = "at " + address
			default:
				n.frontends[id] = fe["name"].(string)
				n.addresses[address] = "address of " + fe["name"].(string)
			}
		}
		first := map[string]string{}
		for _, r := range children(p, "loadBalancingRules") {
			at := azure.ID(sub(sub(r, "properties"), "frontendIPConfiguration")["id"].(string)).Name()
			owner, _, _ := strings.Cut(r["name"].(string), "-")
			if first[at] == "" {
				first[at] = owner
			}
			n.shared[at] = n.shared[at] || first[at] != owner
		}
	}
	return n
}

// link is a private link service without the Service that its name and its tag name. Of several Services at one frontend,
// any may own it.
func (n arrivalNames) link(key string, doc object) (string, object) {
	ref := children(sub(doc, "properties"), "loadBalancerFrontendIpConfigurations")[0]["id"].(string)
	at, called := azure.ID(ref).Name(), n.frontends[strings.ToLower(ref)]
	if n.shared[at] {
		delete(sub(doc, "tags"), "k8s-azure-owner-service")
	}
	sub(doc, "properties")["loadBalancerFrontendIpConfigurations"] = []any{called}
	return strings.ReplaceAll(key, at, called), parse(strings.ReplaceAll(string(text(doc)), at, called))
}

// plain is a value with names that do not depend on an order, and its lists sorted.
func (n arrivalNames) plain(x any) any {
	switch x := x.(type) {
	case string:
		if called, ok := n.addresses[x]; ok {
			return called
		}
		if called, ok := n.frontends[strings.ToLower(x)]; ok {
			return called
		}
		for _, balancer := range []string{"/loadBalancers/lb2", "/loadBalancers/kubernetes"} {
			x = strings.ReplaceAll(x, balancer, "/loadBalancers/any")
		}
		return x
	case object:
		if id, ok := x["id"].(string); ok && n.frontends[strings.ToLower(id)] != "" {
			x["name"] = n.frontends[strings.ToLower(id)]
		}
		for k := range x {
			x[k] = n.plain(x[k])
		}
	case []any:
		for i := range x {
			x[i] = n.plain(x[i])
		}
		return inOrder(x)
	}
	return x
}

// inOrder sorts a list by its elements' texts, and drops what is there twice.
func inOrder(list []any) []any {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(string(text(a)), string(text(b))) })
	return slices.CompactFunc(list, func(a, b any) bool { return string(text(a)) == string(text(b)) })
}

// united is two load balancers as one.
func united(a, b any) any {
	switch a := a.(type) {
	case object:
		for k, v := range b.(object) {
			if one, ok := a[k]; ok {
				v = united(one, v)
			}
			a[k] = v
		}
	case []any:
		return inOrder(append(a, b.([]any)...))
	}
	return a
}
