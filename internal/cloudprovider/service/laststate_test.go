package service_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// A served Service that then asks for what Azure refuses keeps what it has. Its address is at a load balancer and let
// in, whatever other Services come and go.
func TestTheLastGoodStateStays(t *testing.T) {
	for name, ask := range map[string]func(*corev1.Service){
		"a public IP of another region":   annotated("pip-name", "elsewhere"),
		"a public IP that has no address": annotated("pip-name", "dynamic"),
		"a prefix that is not there":      annotated("pip-prefix-id", string(testkit.Group.Resource(network.PublicIPPrefixes, "none"))),
		"a prefix that is used up":        annotated("pip-prefix-id", string(testkit.Group.Resource(network.PublicIPPrefixes, "full"))),
		"an address that is taken":        annotated("load-balancer-internal", "true", "load-balancer-ipv4", "10.240.99.9"),
	} {
		for _, first := range []string{"plain", "ranges", "internal"} {
			t.Run(name+" instead of "+first, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := mixed(t, core.Options{})
					w.refusing()
					w.start(config())
					s := w.newService("web", 80)
					kinds[first](s)
					w.create(s)
					w.served("web")
					w.settle()
					address := w.address("web")
					w.change("web", func(s *corev1.Service) { s.Annotations = nil; ask(s) })
					check := func(when string) {
						t.Helper()
						w.settle()
						if got := w.address("web"); got != address {
							t.Errorf("%s: the status says %s, want %s", when, got, address)
						}
						w.answers(when, address, first != "internal")
					}
					check("after the change")
					w.create(w.newService("api", 81))
					w.served("api")
					check("after another came")
					w.remove("api")
					w.allGone([]string{"api"})
					check("after another went")
					<-time.After(time.Hour)
					check("after an hour")
					w.change("web", func(s *corev1.Service) { s.Annotations = nil; kinds[first](s) })
					w.settle()
					check("when it is taken back")
					w.remove("web")
					w.allGone([]string{"web"})
				})
			})
		}
	}
}

// refusing makes what Azure refuses to serve.
func (w *serviceCluster) refusing() {
	w.t.Helper()
	for id, body := range map[azure.ID]string{
		testkit.Group.Resource(network.PublicIPAddresses,
			"elsewhere"): `{"location":"westus2","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`,
		testkit.Group.Resource(network.PublicIPAddresses, "dynamic"): `{"location":"` + testkit.Location +
			`","sku":{"name":"Basic"},"properties":{"publicIPAllocationMethod":"Dynamic"}}`,
	} {
		w.put(id, body)
	}
	prefix := testkit.Group.Resource(network.PublicIPPrefixes, "full")
	w.put(prefix, `{"location":"`+testkit.Location+`","sku":{"name":"Standard"},"properties":{"prefixLength":31}}`)
	for _, name := range []string{"one", "two"} {
		w.put(testkit.Group.Resource(network.PublicIPAddresses, name), `{"location":"`+testkit.Location+
			`","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPPrefix":{"id":"`+string(prefix)+`"}}}`)
	}
	w.put(testkit.Group.Resource(network.LoadBalancers, "theirs"), `{"location":"`+testkit.Location+
		`","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":{"id":"`+
		string(testkit.VNet.Child("subnets", "nodes"))+`"},"privateIPAllocationMethod":"Static","privateIPAddress":"10.240.99.9"}}]}}`)
}

func (w *serviceCluster) put(id azure.ID, body string) {
	w.t.Helper()
	if _, err := w.OtherClient().Put(w.t.Context(), azure.Write{ID: id, Body: azure.Document(body)}); err != nil {
		w.t.Fatal(err)
	}
}

// answers checks that a load balancer has a rule at an address, and that the security group
// lets clients in there.
func (w *serviceCluster) answers(when, address string, asked bool) {
	w.t.Helper()
	ip := ""
	for _, d := range w.list(network.PublicIPAddresses) {
		if one, err := azure.Decode[network.PublicIPAddress](d); err == nil && one.Properties.IPAddress == address {
			ip = one.ID.Key()
		}
	}
	ruled := false
	for _, d := range w.list(network.LoadBalancers) {
		lb, err := azure.Decode[network.LoadBalancer](d)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, fe := range lb.Properties.FrontendIPConfigurations {
			p := fe.Properties
			if p.PrivateIPAddress == address || p.PublicIPAddress != nil && ip != "" && p.PublicIPAddress.ID.Key() == ip {
				ruled = ruled || slices.ContainsFunc(lb.Properties.LoadBalancingRules, func(r azure.Child[network.LoadBalancingRule]) bool {
					return r.Properties.FrontendIPConfiguration.ID.Name() == fe.Name &&
						hasMembers(lb.Properties, r.Properties.BackendAddressPool.ID.Name())
				})
			}
		}
	}
	if !ruled {
		w.t.Errorf("%s: no load balancer has a rule at %s that leads to nodes", when, address)
	}
	group := testkit.Must[network.SecurityGroup](w.Azure, testkit.SecurityGroup)
	if asked && !slices.ContainsFunc(group.Properties.SecurityRules, func(r azure.Child[network.SecurityRule]) bool {
		p := r.Properties
		return p.Access == "Allow" &&
			(p.DestinationAddressPrefix != nil && *p.DestinationAddressPrefix == address ||
				slices.Contains(p.DestinationAddressPrefixes, address))
	}) {
		w.t.Errorf("%s: no client is let in at %s\n%s", when, address, strings.Join(w.Writes(), "\n"))
	}
}

func hasMembers(lb network.LoadBalancer, pool string) bool {
	return slices.ContainsFunc(lb.BackendAddressPools, func(p azure.Child[network.BackendAddressPool]) bool {
		return p.Name == pool && len(p.Properties.BackendIPConfigurations)+len(p.Properties.LoadBalancerBackendAddresses) > 0
	})
}

func (w *serviceCluster) list(fullType string) []azure.Document {
	w.t.Helper()
	docs, err := w.OtherClient().Fresh().List(w.t.Context(), azure.Query{Scope: testkit.Group, Type: fullType})
	if err != nil {
		w.t.Fatal(err)
	}
	return docs
}
