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
