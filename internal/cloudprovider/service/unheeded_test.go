package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/emulator"
)

// What nobody heeds, and who lets nobody in, is told once for each state of the Service,
// whatever is compared and whoever comes. It is served all the same.
func TestAWarningIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		says   func(*corev1.Service)
		reason string
		words  []string
	}{
		"mistyped":       {annotated("load-balancer-tpc-idle-timeout", "10"), "UnknownAnnotation", []string{prefix + "load-balancer-tpc-idle-timeout", prefix + "load-balancer-tcp-idle-timeout"}},
		"another family": {annotated("allowed-ip-ranges", "fd00::/64"), "InvalidAllowedIPRanges", []string{prefix + "allowed-ip-ranges", `"fd00::/64"`, "nobody from the Internet is let in"}},
		"of an absent family": {
			annotated("load-balancer-ipv6", "nonsense"), "InvalidAddress", []string{prefix + "load-balancer-ipv6", `"nonsense"`, "has no IPv6 address"},
		},
		"all of the nodes denied": {
			annotated("allowed-ip-ranges", "10.9.0.0/16", "deny-all-except-load-balancer-source-ranges", "true", "disable-load-balancer-floating-ip", "true"),
			"NodesDenied", []string{prefix + "disable-load-balancer-floating-ip", prefix + "deny-all-except-load-balancer-source-ranges", "on all ports"},
		},
		"IPv6 not denied": {func(s *corev1.Service) {
			annotated("allowed-ip-ranges", "10.9.0.0/16,fd09::/64,10.0.0.1/8", "load-balancer-internal", "true")(s)
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}, "NotDenied", []string{"a range that is left out", "Denied is everything else at its IPv4 address"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, emulator.Options{Latency: 1}, 1)
				config := config()
				config.RepairPeriod = 30 * time.Minute
				w.start(config)
				s := w.newService("web", 80)
				c.says(s)
				w.create(s)
				w.served("web")
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
