package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestADenialEndsAtOnce checks D4: a mistyped range denies everything else at the nodes, if packets arrive at the
// nodes' addresses. That ends at once when the range is corrected or its Service is deleted. It does not matter
// whether another Service at the nodes is refused.
func TestADenialEndsAtOnce(t *testing.T) {
	for name, ends := range map[string]func(*serviceCluster){
		"mended": func(w *serviceCluster) { w.change("a", annotated("allowed-ip-ranges", "10.9.0.0/16")) },
		"gone":   func(w *serviceCluster) { w.remove("a") },
		"mended beside one that is refused": func(w *serviceCluster) {
			w.change("b", annotated("load-balancer-tcp-idle-timeout", "soon"))
			w.change("a", annotated("allowed-ip-ranges", "10.9.0.0/16"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 2)
				w.start(config())
				denied := func() (rules []string) {
					for _, g := range testkit.List[network.SecurityGroup](w.Azure, testkit.Group, network.SecurityGroups) {
						for _, r := range g.Properties.SecurityRules {
							if r.Properties.Access == "Deny" {
								rules = append(rules, r.Name)
							}
						}
					}
					return rules
				}
				for i, s := range []string{"b", "a"} {
					s := w.newService(s, int32(80+i))
					annotated("disable-load-balancer-floating-ip", "true", "allowed-ip-ranges",
						[]string{"10.8.0.0/16", "10.9.0.0/16,10.0.0.1/8"}[i])(s)
					w.create(s)
					w.served(s.Name)
				}
				w.settle()
				if len(denied()) == 0 {
					t.Fatal("nothing is denied")
				}
				ends(w)
				w.settle()
				if rules := denied(); len(rules) > 0 {
					t.Errorf("denied is still %v", rules)
				}
			})
		})
	}
}

// TestAWarningIsReportedOnce checks that ignored settings, and a Service without allowed sources, are
// reported once for each state of the Service, also after comparisons and restarts. The Service is
// served all the same.
func TestAWarningIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		says   func(*corev1.Service)
		reason string
		words  []string
	}{
		"mistyped": {annotated("load-balancer-tpc-idle-timeout", "10"), "UnknownAnnotation",
			[]string{prefix + "load-balancer-tpc-idle-timeout", prefix + "load-balancer-tcp-idle-timeout"}},
		"another family": {annotated("allowed-ip-ranges", "fd00::/64"), "InvalidAllowedIPRanges",
			[]string{prefix + "allowed-ip-ranges", `"fd00::/64"`, "nothing from the Internet can reach the Service"}},
		"switch": {annotated("load-balancer-internal", "yes"), "InvalidAnnotation",
			[]string{prefix + "load-balancer-internal", `"yes"`, "allowed is true or false"}},
		"of an absent family": {
			annotated("load-balancer-ipv6", "nonsense"), "InvalidAddress",
			[]string{prefix + "load-balancer-ipv6", `"nonsense"`, "has no IPv6 address"},
		},
		"group of no public IP": {annotated("load-balancer-internal", "true", "load-balancer-resource-group", "other"),
			"UnheededAnnotation",
			[]string{prefix + "load-balancer-resource-group", `"other" is ignored together with annotation`, "has no public IP"}},
		"kaz's own tags": {annotated("pip-tags", "team=x,k8s-azure-service=a/b"), "InvalidTags",
			[]string{prefix + "pip-tags", `"k8s-azure-service=a/b" is left out`, "other than k8s-azure-service"}},
		"load balancer": {annotated("load-balancer-configurations", "lb2"), "InvalidAnnotation",
			[]string{prefix + "load-balancer-configurations", `"lb2" left out`, testkit.ClusterName}},
		"all of the nodes denied": {
			annotated("allowed-ip-ranges", "10.9.0.0/16", "deny-all-except-load-balancer-source-ranges", "true",
				"disable-load-balancer-floating-ip", "true"),
			"NodesDenied",
			[]string{prefix + "disable-load-balancer-floating-ip", prefix + "deny-all-except-load-balancer-source-ranges", "on all ports"},
		},
		"IPv6 not denied": {func(s *corev1.Service) {
			annotated("allowed-ip-ranges", "10.9.0.0/16,fd09::/64,10.0.0.1/8", "load-balancer-internal", "true")(s)
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}, "NotDenied", []string{"a range that is left out", "Everything else is denied at its IPv4 address"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 1)
				w.DualStack()
				config := config()
				config.RepairPeriod = 30 * time.Minute
				w.start(config)
				s := w.newService("web", 80)
				c.says(s)
				w.create(s)
				w.until("web has its addresses",
					func() bool { return len(w.get("web").Status.LoadBalancer.Ingress) == max(1, len(s.Spec.IPFamilies)) })
				w.create(w.newService("api", 81))
				w.served("api")
				<-time.After(4 * time.Hour)
				w.warnedOnce("web", c.reason, c.words...)
				w.warnedOnce("web", "EnsuredLoadBalancer")
				w.events.forget()
				w.change("web", func(s *corev1.Service) { s.Labels = map[string]string{"new": "yes"} })
				w.settle()
				w.warnedOnce("web", c.reason, c.words...)
			})
		})
	}
}

// TestAddressOfAnotherServiceIsReportedOnce checks that a further address of another Service is
// reported once, too, also after comparisons.
func TestAddressOfAnotherServiceIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 1)
		config := config()
		config.RepairPeriod = 30 * time.Minute
		w.start(config)
		w.create(w.newService("first", 80))
		w.served("first")
		s := w.newService("web", 81)
		annotated("additional-public-ips", w.address("first"))(s)
		w.create(s)
		w.until("web has both addresses", func() bool { return len(w.get("web").Status.LoadBalancer.Ingress) == 2 })
		w.create(w.newService("api", 82))
		w.served("api")
		<-time.After(4 * time.Hour)
		w.warnedOnce("web", "InvalidAddress", prefix+"additional-public-ips", "is the address of Service default/first", "port 81/TCP")
		w.warnedOnce("web", "EnsuredLoadBalancer")
	})
}
