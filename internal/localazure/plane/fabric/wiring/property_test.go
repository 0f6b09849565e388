package wiring_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/wiring"
)

type (
	object = map[string]any
	list   = []any
)

const provider = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network"

func ref(path string) object { return object{"id": provider + path} }

// drawStory draws documents of a cluster, complete or in parts.
func drawStory(t *rapid.T) story {
	s := story{state: wiring.State{Instance: "rapid", Attached: map[string]wiring.Attachment{}, Healthy: map[string]bool{}}}
	add := func(id string, doc object) {
		doc["id"] = provider + id
		s.documents = append(s.documents, doc)
	}
	maybe := func(name string) bool { return rapid.Bool().Draw(t, name) }
	subnet := object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}
	if maybe("subnet group") {
		subnet["networkSecurityGroup"] = ref("/networkSecurityGroups/g")
	}
	subnet["routeTable"] = ref("/routeTables/r")
	add("/virtualNetworks/v", object{"properties": object{"addressSpace": object{"addressPrefixes": list{"10.1.0.0/16", "fd01::/48"}},
		"subnets": list{object{"name": "n", "properties": subnet}}}})
	machines := rapid.IntRange(0, 4).Draw(t, "machines")
	for i := range machines {
		id := fmt.Sprintf("/networkInterfaces/m%d", i)
		pool := list{ref("/loadBalancers/b/backendAddressPools/p")}
		add(id, object{"properties": object{"enableIPForwarding": maybe("forwarding"), "ipConfigurations": list{
			object{"name": "4",
				"properties": object{"primary": true, "privateIPAddress": fmt.Sprintf("10.1.0.%d", 4+i),
					"subnet": ref("/virtualNetworks/v/subnets/n"), "loadBalancerBackendAddressPools": pool}},
			object{"name": "6",
				"properties": object{"privateIPAddress": fmt.Sprintf("fd01::%d", 4+i), "subnet": ref("/virtualNetworks/v/subnets/n"),
					"loadBalancerBackendAddressPools": pool}},
		}}})
		if maybe("attached") {
			s.state.Attached[azure.ID(provider+id).Key()] = wiring.Attachment{Namespace: fmt.Sprint("/m", i), Device: "eth0"}
		}
		for _, a := range []string{fmt.Sprintf("10.1.0.%d", 4+i), fmt.Sprintf("fd01::%d", 4+i)} {
			s.state.Healthy[strings.ToLower(provider)+"/loadbalancers/b/probes/p "+a] = maybe("healthy")
		}
	}
	var routes, rules, balancing list
	for i := range rapid.IntRange(0, 3).Draw(t, "routes") {
		routes = append(routes, object{"name": fmt.Sprint(i), "properties": object{"addressPrefix": fmt.Sprintf("10.244.%d.0/24", i),
			"nextHopType":      rapid.SampledFrom([]string{"VirtualAppliance", "None", "Internet", "VnetLocal"}).Draw(t, "hop"),
			"nextHopIpAddress": fmt.Sprintf("10.1.0.%d", 4+i)}})
	}
	ends := rapid.SampledFrom([]string{"*", "Internet", "VirtualNetwork", "AzureLoadBalancer", "10.1.0.4", "2001:db8::/48", "0.0.0.0/0",
		"Storage"})
	ports := rapid.SampledFrom([]string{"*", "80", "79-90", "0-65535"})
	for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
		rules = append(rules, object{"name": fmt.Sprint(i), "properties": object{"priority": 100 + i,
			"direction":                rapid.SampledFrom([]string{"Inbound", "Outbound"}).Draw(t, "direction"),
			"access":                   rapid.SampledFrom([]string{"Allow", "Deny"}).Draw(t, "access"),
			"protocol":                 rapid.SampledFrom([]string{"*", "Tcp", "Udp", "Icmp", "Esp", "Ah"}).Draw(t, "protocol"),
			"sourceAddressPrefix":      ends.Draw(t, "source"),
			"destinationAddressPrefix": ends.Draw(t, "destination"), "sourcePortRange": ports.Draw(t, "from"),
			"destinationPortRanges": list{ports.Draw(t, "to"), "443"}}})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "balancing rules") {
		p := object{"protocol": rapid.SampledFrom([]string{"Tcp", "Udp"}).Draw(t, "protocol"), "frontendPort": 80 + i, "backendPort": 8080,
			"enableFloatingIP":    maybe("floating"),
			"loadDistribution":    rapid.SampledFrom([]string{"Default", "SourceIP", "SourceIPProtocol"}).Draw(t, "distribution"),
			"disableOutboundSnat": maybe("no outbound"),
			"frontendIPConfiguration": ref("/loadBalancers/b/frontendIPConfigurations/" +
				rapid.SampledFrom([]string{"f", "f6", "i", "none"}).Draw(t, "frontend")),
			"backendAddressPool": ref("/loadBalancers/b/backendAddressPools/p")}
		if maybe("probed") {
			p["probe"] = ref("/loadBalancers/b/probes/p")
		}
		balancing = append(balancing, object{"name": fmt.Sprint(i), "properties": p})
	}
	add("/routeTables/r", object{"properties": object{"routes": routes}})
	add("/networkSecurityGroups/g", object{"properties": object{"securityRules": rules}})
	add("/publicIPAddresses/f", object{"properties": object{"ipAddress": "198.18.0.9"}})
	add("/publicIPAddresses/f6", object{"properties": object{"ipAddress": "2001:db8::9"}})
	add("/loadBalancers/b", object{"properties": object{"loadBalancingRules": balancing, "backendAddressPools": list{object{"name": "p"}},
		"probes": list{object{"name": "p", "properties": object{"protocol": "Tcp", "port": 80}}},
		"frontendIPConfigurations": list{object{"name": "f", "properties": object{"publicIPAddress": ref("/publicIPAddresses/f")}},
			object{"name": "f6", "properties": object{"publicIPAddress": ref("/publicIPAddresses/f6")}},
			object{"name": "i", "properties": object{"privateIPAddress": "10.1.0.200", "subnet": ref("/virtualNetworks/v/subnets/n")}}}}})
	return s
}

func compile(t *rapid.T, s story) wiring.Net {
	docs := wiring.NewDocuments()
	if problems := docs.Read(s.all); len(problems) > 0 {
		t.Fatal(problems)
	}
	return wiring.Compile(docs, s.state)
}

// The order of the documents does not matter.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		want := compile(t, s)
		s.documents = rapid.Permutation(s.documents).Draw(t, "order")
		if diff := cmp.Diff(want.String(), compile(t, s).String()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A deleted machine takes its own links, addresses, marks and tables along, and nothing else changes.
func TestOtherMachinesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		if len(s.state.Attached) == 0 {
			return
		}
		before := compile(t, s)
		gone := rapid.SampledFrom(slices.Sorted(maps.Keys(s.state.Attached))).Draw(t, "gone")
		path := s.state.Attached[gone].Namespace
		delete(s.state.Attached, gone)
		after := compile(t, s)
		device := ""
		for _, l := range before.Links {
			if l.B.Namespace == path {
				device = l.A.Name
			} else if !slices.Contains(after.Links, l) {
				t.Fatalf("link %v went with %s", l, gone)
			}
		}
		var was, is wiring.Namespace
		for _, n := range before.Namespaces {
			if n.Name == before.Routers[0].Namespace {
				was = n
			}
		}
		for _, n := range after.Namespaces {
			if n.Name == after.Routers[0].Namespace {
				is = n
			}
		}
		for _, r := range was.Routes {
			if r.Device != device && !slices.Contains(is.Routes, r) {
				t.Fatalf("route %s went with %s, at %s", r, gone, device)
			}
		}
	})
}

// Changes leads from any ruleset to any other in an order that nft accepts: chains and sets exist while rules use them.
func TestChangesBetweenRulesets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := compile(t, drawStory(t)), compile(t, drawStory(t))
		pairs := [][2]wiring.Ruleset{}
		for _, n := range b.Namespaces {
			have := wiring.Ruleset{}
			for _, m := range a.Namespaces {
				if m.Name == n.Name {
					have = m.Rules
				}
			}
			pairs = append(pairs, [2]wiring.Ruleset{have, n.Rules}, [2]wiring.Ruleset{{}, n.Rules})
		}
		for _, p := range pairs {
			if again := wiring.Changes(p[1], p[1]); again != "" {
				t.Fatalf("changes of what is the same:\n%s", again)
			}
			table := newTable(p[0])
			for line := range strings.Lines(wiring.Changes(p[0], p[1])) {
				if err := table.do(strings.TrimSpace(line)); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			if diff := cmp.Diff(newTable(p[1]), table); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// table is nft's state of a table, as far as the commands need it.
type table struct {
	Chains map[string][]string
	Sets   map[string]map[string]string
}

func newTable(r wiring.Ruleset) *table {
	t := &table{map[string][]string{}, map[string]map[string]string{}}
	for name, c := range r.Chains {
		t.Chains[name] = append([]string{}, c.Rules...)
	}
	for name, s := range r.Sets {
		t.Sets[name] = maps.Clone(s.Elements)
	}
	return t
}

func (t *table) do(line string) error {
	f := strings.Fields(line)
	verb, what := f[0], f[1]
	if what == "table" {
		return nil
	}
	if verb == "flush" {
		t.Chains[f[4]] = []string{}
		return nil
	}
	name, rest := f[4], strings.Join(f[5:], " ")
	switch verb + " " + what {
	case "add chain":
		if t.Chains[name] == nil {
			t.Chains[name] = []string{}
		}
	case "add set", "add map":
		t.Sets[name] = map[string]string{}
	case "add rule":
		t.Chains[name] = append(t.Chains[name], rest)
		return t.refers(rest)
	case "add element", "delete element":
		return t.elements(verb, name, rest)
	case "delete chain":
		delete(t.Chains, name)
		return t.unused("jump " + name)
	case "delete set", "delete map":
		delete(t.Sets, name)
		return t.unused("@" + name)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

func (t *table) elements(verb, name, text string) error {
	set := t.Sets[name]
	if set == nil {
		return fmt.Errorf("no set %s", name)
	}
	for element := range strings.SplitSeq(strings.Trim(text, "{} "), ", ") {
		key, value, _ := strings.Cut(element, " : ")
		_, there := set[key]
		if there != (verb == "delete") {
			return fmt.Errorf("%s %s: it is there: %v", verb, key, there)
		}
		if verb == "delete" {
			delete(set, key)
			continue
		}
		set[key] = value
		if err := t.refers(value); err != nil {
			return err
		}
	}
	return nil
}

// refers checks that everything named in a text exists.
func (t *table) refers(text string) error {
	words := strings.Fields(text)
	for i, w := range words {
		if w == "jump" && t.Chains[words[i+1]] == nil {
			return fmt.Errorf("no chain %s", words[i+1])
		}
		if name, ok := strings.CutPrefix(w, "@"); ok && t.Sets[name] == nil {
			return fmt.Errorf("no set %s", name)
		}
	}
	return nil
}

// unused checks that no rule names what is removed.
func (t *table) unused(what string) error {
	for name, rules := range t.Chains {
		for _, r := range rules {
			if strings.HasSuffix(r, what) {
				return fmt.Errorf("chain %s uses it", name)
			}
		}
	}
	for name, s := range t.Sets {
		for key, value := range s {
			if value == what {
				return fmt.Errorf("%s of %s uses it", key, name)
			}
		}
	}
	return nil
}

// A thousand machines and five hundred rules.
func BenchmarkCompile(b *testing.B) {
	s := large(1000, 500)
	docs := wiring.NewDocuments()
	docs.Read(s.all)
	var have wiring.Net
	for b.Loop() {
		docs.Read(s.all)
		have = wiring.Compile(docs, s.state)
	}
	b.ReportMetric(float64(len(have.Links)), "links")
}

func large(machines, rules int) story {
	s := story{state: wiring.State{Instance: "big", Attached: map[string]wiring.Attachment{}}}
	add := func(id string, doc object) {
		doc["id"] = provider + id
		s.documents = append(s.documents, doc)
	}
	add("/virtualNetworks/v", object{"properties": object{"addressSpace": object{"addressPrefixes": list{"10.0.0.0/8"}},
		"subnets": list{object{"name": "n",
			"properties": object{"addressPrefix": "10.0.0.0/8", "networkSecurityGroup": ref("/networkSecurityGroups/g")}}}}})
	add("/networkSecurityGroups/g", object{"properties": object{}})
	for i := range machines {
		id := fmt.Sprintf("/networkInterfaces/m%d", i)
		add(id, object{"properties": object{"enableIPForwarding": true,
			"ipConfigurations": list{object{"name": "4", "properties": object{"primary": true,
				"privateIPAddress": fmt.Sprintf("10.1.%d.%d", i/250, 4+i%250), "subnet": ref("/virtualNetworks/v/subnets/n"),
				"loadBalancerBackendAddressPools": list{ref("/loadBalancers/b/backendAddressPools/p")}}}}}})
		s.state.Attached[azure.ID(provider+id).Key()] = wiring.Attachment{Namespace: fmt.Sprint("/m", i), Device: "eth0"}
	}
	var balancing, frontends list
	for i := range rules {
		f := fmt.Sprint("f", i)
		add("/publicIPAddresses/"+f, object{"properties": object{"ipAddress": fmt.Sprintf("198.18.%d.%d", 1+i/250, i%250)}})
		frontends = append(frontends, object{"name": f, "properties": object{"publicIPAddress": ref("/publicIPAddresses/" + f)}})
		balancing = append(balancing,
			object{"name": fmt.Sprint(i),
				"properties": object{"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
					"frontendIPConfiguration": ref("/loadBalancers/b/frontendIPConfigurations/" + f),
					"backendAddressPool":      ref("/loadBalancers/b/backendAddressPools/p")}})
	}
	add("/loadBalancers/b",
		object{"properties": object{"loadBalancingRules": balancing, "backendAddressPools": list{object{"name": "p"}},
			"frontendIPConfigurations": frontends}})
	return s
}
