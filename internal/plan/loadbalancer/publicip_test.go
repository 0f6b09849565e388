package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// TestASlipInIPTagsLosesNoAddress checks that a slip in the IP tags of a Service that has its public IP is refused. IP
// tags that the Service cannot have because it names that public IP are refused, too. The address would be lost. A new
// Service with a slip is served without the tags that are left out.
func TestASlipInIPTagsLosesNoAddress(t *testing.T) {
	const internet, twoWords = "RoutingPreference=Internet", "RoutingPreference:Internet"
	pinByName := func(s *v1.Service) { s.Annotations[key.PublicIPName.Name] = "kubernetes-" + base(s) }
	pinByAddress := func(s *v1.Service) { s.Spec.LoadBalancerIP = "20.1.0.2" }
	mayChange := func(c *loadbalancer.Config) { c.IPTagsMayChange = true }
	for name, c := range map[string]struct {
		had, asks string
		edit      func(*v1.Service)
		config    func(*loadbalancer.Config)
		refused   []string // the message of the problem, none where the Service is served
		renewed   bool     // the address is another one
	}{
		"value that Azure does not know": {had: internet, asks: "RoutingPreference=Internett",
			refused: []string{`"RoutingPreference=Internett"`, `"Internett" is an unknown routing preference`, "known is Internet"}},
		"no pair": {had: internet, asks: twoWords,
			refused: []string{`"RoutingPreference:Internet" is no Type=Value pair`}},
		"type that is mistyped": {had: internet, asks: "RoutingPreferense=Internet",
			refused: []string{`"RoutingPreferense" is an unknown type of IP tags`, "known is RoutingPreference"}},
		"type that Azure alone knows": {had: internet, asks: "NetworkDomain=x", renewed: true},
		"no pair beside a good one": {had: internet, asks: "FirstPartyUsage=/A,RoutingPreference:Internet",
			refused: []string{`"RoutingPreference:Internet" is no Type=Value pair`}},
		"no pair that changes anything": {had: internet, asks: internet + ",FirstPartyUsage:/A"},
		"no pair, and none before":      {asks: twoWords},
		"no pair, in place": {had: "FirstPartyUsage=/A", asks: "FirstPartyUsage:/B", config: mayChange,
			refused: []string{`"FirstPartyUsage:/B" is no Type=Value pair`}},
		"value, in place": {had: "FirstPartyUsage=/A", asks: "RoutingPreference=Internett", config: mayChange,
			refused: []string{"known is Internet"}},
		"good ones, in place":   {had: "FirstPartyUsage=/A", asks: "FirstPartyUsage=/B", edit: pinByName, config: mayChange},
		"type in another case":  {had: internet, asks: "routingpreference=Internet"},
		"value in another case": {had: internet, asks: "RoutingPreference=internet"},
		"case, in place":        {had: internet, asks: "routingpreference=internet", config: mayChange},
		"good ones":             {asks: internet, renewed: true},
		"no more":               {had: internet, asks: "", renewed: true},
		"good ones, pinned by name": {asks: internet, edit: pinByName,
			refused: []string{`"RoutingPreference=Internet"`, key.PublicIPName.Name + `: "kubernetes-`}},
		"good ones, pinned by address": {had: internet, asks: "FirstPartyUsage=/A", edit: pinByAddress,
			refused: []string{`spec.loadBalancerIP: "20.1.0.2"`, "RoutingPreference=Internet"}},
		"the same ones, pinned": {had: internet, asks: internet, edit: pinByName},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{key.IPTags.Name: c.had}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: s}}}
			if c.config != nil {
				c.config(&in.Config)
			}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			id := azure.ID(network + "publicIPAddresses/kubernetes-" + base(s))
			before := w.docs[id.Key()]["properties"].(object)["ipAddress"]
			s.Annotations[key.IPTags.Name] = c.asks
			if c.edit != nil {
				c.edit(s)
			}
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			refusals := slices.DeleteFunc(slices.Clone(rounds[0].problems), func(p plan.Problem) bool { return p.Warning })
			if len(refusals) != min(len(c.refused), 1) {
				t.Fatalf("found %v", rounds[0].problems)
			}
			if after := w.docs[id.Key()]["properties"].(object)["ipAddress"]; (after != before) != c.renewed {
				t.Errorf("the address was %v and is %v", before, after)
			}
			if len(c.refused) == 0 {
				return
			}
			if n := writes(rounds); n > 0 {
				t.Errorf("%d writes: %v", n, rounds[0].plan)
			}
			for _, p := range rounds[0].problems {
				if strings.Contains(p.Message, "not refused") {
					t.Errorf("got %q", p.Message)
				}
			}
			for _, want := range append(c.refused, "annotation "+key.IPTags.Name, "public IP "+id.Name(), "allowed ", "take ") {
				if reported := refusals[0].Message; refusals[0].Object != "default/web" || !strings.Contains(reported, want) {
					t.Errorf("got %q, and not %q", reported, want)
				}
			}
		})
	}
}

// TestAPublicIPIsManagedWhenItsTagNamesAService checks that a public IP is managed when its tag names
// a Service, NAMESPACE/NAME. With any other value, under either name of the tag, it is foreign: it
// gets no tags and outlives the Service.
func TestAPublicIPIsManagedWhenItsTagNamesAService(t *testing.T) {
	const id = azure.ID(network + "publicIPAddresses/mine")
	for text, managed := range map[string]bool{
		`"service":""`:                                   false,
		`"k8s-azure-service":""`:                         false,
		`"k8s-azure-service":" , "`:                      false,
		`"Service":"payments"`:                           false,
		`"service":"payments, billing"`:                  false,
		`"K8s-Azure-Service":"payments"`:                 false,
		`"service":"/"`:                                  false,
		`"service":"team/"`:                              false,
		`"service":"https://wiki/web"`:                   false,
		`"service":"Team A/web"`:                         false,
		`"owner":"default/web"`:                          false,
		`"k8s-azure-service":"","service":"default/web"`: false,
		`"service":"default/web"`:                        true,
		`"SERVICE":"default/web"`:                        true,
		`"k8s-azure-service":"default/web"`:              true,
		`"k8s-azure-service":" default/web "`:            true,
	} {
		t.Run(text, func(t *testing.T) {
			w := newSubscription(2)
			w.put(id, parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{`+text+
				`},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`))
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{key.PublicIPName.Name: "mine", key.PublicIPTags.Name: "a=b"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: s}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if _, tagged := w.docs[id.Key()]["tags"].(object)["a"]; tagged != managed {
				t.Errorf("its tags are %v", w.docs[id.Key()]["tags"])
			}
			in.Services[0].Gone = true
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if _, there := w.docs[id.Key()]; there == managed {
				t.Errorf("that it is there is %v", there)
			}
		})
	}
}

// TestAddressesAreComparedAsAddresses checks that a foreign spelling of an IPv6 address stays, and is
// the address that other Services ask for.
func TestAddressesAreComparedAsAddresses(t *testing.T) {
	w := newSubscription(2)
	dual := func(name string, port int32) loadbalancer.Service {
		s := service(name, tcp(port, 30000+port))
		s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
		s.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: "10.0.0.9", key.IPv6.Name: "fd00::9"}
		return loadbalancer.Service{Service: s}
	}
	first, second := dual("first", 80), dual("second", 81)
	first.UID, second.UID = "3d2c1b0a-1111-2222-3333-444455aa5", "3d2c1b0a-1111-2222-3333-444455aa6"
	in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{first}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	frontends := func() []object {
		return children(w.docs[azure.ID(innerID).Key()]["properties"].(object), "frontendIPConfigurations")
	}
	sub(frontends()[1], "properties")["privateIPAddress"] = "FD00::0:9"
	rounds, err := w.commit(in)
	if err != nil || writes(rounds) > 0 || len(rounds[0].problems) > 0 {
		t.Fatalf("%v: %d writes, %v", err, writes(rounds), rounds[0].problems)
	}
	in.Services = append(in.Services, second)
	if rounds, err = w.commit(in); err != nil || len(rounds[0].problems) > 0 || len(frontends()) != 2 {
		t.Errorf("%v: %v; %d frontends", err, rounds[0].problems, len(frontends()))
	}
	if got := sub(frontends()[1], "properties")["privateIPAddress"]; got != "FD00::0:9" {
		t.Errorf("the address is written %v", got)
	}
}
