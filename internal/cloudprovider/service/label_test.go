package service_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// A Service gets another public IP and still asks for its DNS label. Azure allows a DNS label at one public IP only.
// The label moves to the new public IP, and the old public IP is deleted.
func TestADNSLabelComesAlong(t *testing.T) {
	prefixID := testkit.Group.Resource(network.PublicIPPrefixes, "prefix")
	single, dual := []corev1.IPFamily{corev1.IPv4Protocol}, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	families := func(of []corev1.IPFamily) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.IPFamilies = of }
	}
	for name, c := range map[string]struct {
		first, then func(*corev1.Service)
		named       []string // parts of the names of public IPs that have the label then
	}{
		"into a prefix":   {plain, annotated("pip-prefix-id", string(prefixID)), []string{"-prefix"}},
		"out of a prefix": {annotated("pip-prefix-id", string(prefixID)), without("pip-prefix-id"), []string{""}},
		"to a user's own": {plain, annotated("pip-name", "own"), []string{"own"}},
		"to two families": {families(single), families(dual), []string{"", "-IPv6"}},
		"to one in two": {families(dual), both(families(single), annotated("pip-prefix-id", string(prefixID))),
			[]string{"-prefix"}},
		"to a group":            {plain, annotated("load-balancer-resource-group", "far"), []string{""}},
		"from a group":          {annotated("load-balancer-resource-group", "far"), without("load-balancer-resource-group"), []string{""}},
		"inside, and out again": {annotated("load-balancer-internal", "true"), without("load-balancer-internal"), []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 1)
				w.put(azure.GroupID(testkit.Subscription, "far"), `{"location":"`+testkit.Location+`"}`)
				w.put(prefixID, `{"location":"`+testkit.Location+`","sku":{"name":"Standard"},"properties":{"prefixLength":28}}`)
				w.put(testkit.Group.Resource(network.PublicIPAddresses, "own"), `{"location":"`+testkit.Location+
					`","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)
				w.start(config())
				web := w.newService("web", 80)
				annotated("dns-label-name", "kaz-web")(web)
				c.first(web)
				w.create(web)
				w.settle()
				w.events.forget()
				w.change("web", c.then)
				w.settle()

				for i, text := range c.named {
					if text != "own" {
						c.named[i] = testkit.ClusterName + "-" + w.base("web") + text
					}
				}
				var named []string
				for _, group := range []azure.ID{testkit.Group, azure.GroupID(testkit.Subscription, "far")} {
					for _, ip := range testkit.List[network.PublicIPAddress](w.Azure, group, network.PublicIPAddresses) {
						if set := ip.Properties.DNSSettings; set != nil && set.DomainNameLabel == "kaz-web" {
							named = append(named, ip.ID.Name())
						} else if ip.ID.Name() != "own" {
							t.Errorf("public IP %s is left", ip.ID)
						}
					}
				}
				slices.Sort(c.named)
				if slices.Sort(named); !slices.Equal(named, c.named) {
					t.Errorf("%v have the label, want %v", named, c.named)
				}
				if reported := w.events.list("web"); slices.ContainsFunc(reported,
					func(e string) bool { return strings.HasPrefix(e, "SyncLoadBalancerFailed") }) {
					t.Errorf("got %q", reported)
				}
			})
		})
	}
}
