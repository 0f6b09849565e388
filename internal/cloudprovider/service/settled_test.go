package service_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit"
)

// A configOption is a setting of azure.json that the service controller reads.
type configOption struct {
	name string
	set  func(*loadbalancer.Config)
}

func configOptions() []configOption {
	return []configOption{
		{"loadBalancerName", func(c *loadbalancer.Config) { c.LoadBalancerName = "edge" }},
		{"loadBalancerResourceGroup", func(c *loadbalancer.Config) { c.LoadBalancerResourceGroup = otherGroup }},
		{"securityGroupName", func(c *loadbalancer.Config) { c.SecurityGroupName = "" }},
		{"privateLinkServiceResourceGroup", func(c *loadbalancer.Config) { c.PrivateLinkResourceGroup = otherGroup }},
		{"tags", func(c *loadbalancer.Config) { c.Tags = azure.Tags{"team": "web"} }},
		{"systemTags", func(c *loadbalancer.Config) { c.Tags, c.SystemTags = azure.Tags{"team": "web"}, []string{"policy"} }},
		{"no zones", func(c *loadbalancer.Config) { c.Zones = nil }},
		{"disableOutboundSNAT", func(c *loadbalancer.Config) { c.DisableOutboundSNAT = true }},
		{"excludeMasterFromStandardLB", func(c *loadbalancer.Config) { c.ExcludeControlPlane = true }},
		{"enableIPTagMutationForExistingPublicIP", func(c *loadbalancer.Config) { c.IPTagsMayChange = true }},
		{"multipleStandardLoadBalancerConfigurations", func(c *loadbalancer.Config) {
			c.Balancers, c.PoolByIP = several().LoadBalancer.Balancers, true
			c.LoadBalancerName = testkit.ClusterName
		}},
		{"maximumLoadBalancerRuleCount", func(c *loadbalancer.Config) { c.MaximumRules = 4 }},
		{"nodeIP", func(c *loadbalancer.Config) { c.PoolByIP = true }},
		{"enableMigrateToIPBasedBackendPoolAPI", func(c *loadbalancer.Config) { c.MigrateByAPI = true }},
		{"preConfigured external", func(c *loadbalancer.Config) { c.PresetExternal = true }},
		{"preConfigured internal", func(c *loadbalancer.Config) { c.PresetInternal = true }},
		{"preConfigured all", func(c *loadbalancer.Config) { c.PresetExternal, c.PresetInternal = true, true }},
		{"shared probe", func(c *loadbalancer.Config) { c.SharedProbe = &loadbalancer.SharedProbe{Port: 10356, Path: "/healthz"} }},
	}
}

// otherGroup is a resource group beside that of the cluster.
const otherGroup = "other"

// serviceOptions are what a Service asks for; some exclude each other, and the Service is then refused.
func serviceOptions() []func(*corev1.Service) {
	annotation := func(name, value string) func(*corev1.Service) {
		return func(s *corev1.Service) { notes{name: value}.at(s) }
	}
	return []func(*corev1.Service){
		annotation("azure-load-balancer-internal", "true"),
		annotation("azure-load-balancer-internal", "true"),
		annotation("azure-load-balancer-resource-group", otherGroup),
		annotation("azure-pip-tags", "owner=a"),
		annotation("azure-pip-ip-tags", "RoutingPreference=Internet"),
		annotation("azure-load-balancer-disable-tcp-reset", "true"),
		annotation("azure-disable-load-balancer-floating-ip", "true"),
		annotation("azure-allowed-service-tags", "Storage"),
		annotation("azure-deny-all-except-load-balancer-source-ranges", "true"),
		annotation("azure-load-balancer-health-probe-protocol", "http"),
		annotation("azure-pip-name", "byname"),
		func(s *corev1.Service) { notes{"azure-dns-label-name": s.Name}.at(s) },
		func(s *corev1.Service) {
			notes{"azure-load-balancer-internal": "true", "azure-pls-create": "true"}.at(s)
		},
		func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "20.0.0.0/8"} },
		func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000+s.Spec.Ports[0].Port
		},
		func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
		func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP },
		func(s *corev1.Service) { dual(&s.Spec) },
		func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} },
	}
}

// TestACommitLeavesNothingForTheNextProcess checks Services and configurations at random. When nothing has happened
// for a while, a new process with empty memory finds nothing to write. That holds when it starts and when it compares
// everything.
func TestACommitLeavesNothingForTheNextProcess(t *testing.T) {
	const cases = 60
	options := configOptions()
	for seed := range cases {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				c := config()
				var drawn []string
				draw := []configOption{options[seed%len(options)]} // each comes first in some case
				for range r.IntN(3) {
					draw = append(draw, options[r.IntN(len(options))])
				}
				for _, o := range draw {
					o.set(&c.LoadBalancer)
					drawn = append(drawn, o.name)
				}
				t.Log(drawn)
				leavesNothing(t, c, r)
			})
		})
	}
}

// leavesNothing serves Services at random, removes some, and restarts the controller.
func leavesNothing(t *testing.T, c service.Config, r *rand.Rand) {
	w := newServiceCluster(t, core.Options{Latency: float64(r.IntN(2)), Seed: r.Uint64()}, 3)
	w.DualStack()
	w.Put(azure.GroupID(testkit.Subscription, otherGroup), object{"location": testkit.Location})
	w.Put(testkit.Group.Resource(network.PublicIPAddresses, "byname"), object{"location": testkit.Location,
		"sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
	c.RepairPeriod = 24 * time.Hour
	stop := w.start(c)
	all := serviceOptions()
	var names []string
	for turn := range 3 {
		for range 1 + r.IntN([]int{4, 4, 4, 20}[r.IntN(4)]) {
			s := w.newService(fmt.Sprint("web-", len(names)), int32(80+len(names)))
			for range r.IntN(3) {
				all[r.IntN(len(all))](s)
			}
			w.create(s)
			t.Log(s.Name, s.Annotations, s.Spec.ExternalTrafficPolicy, s.Spec.IPFamilies, s.Spec.LoadBalancerSourceRanges)
			names = append(names, s.Name)
		}
		w.settle()
		if gone := r.IntN(len(names)); turn > 0 && !w.gone(names[gone]) {
			t.Log("removed", names[gone])
			w.remove(names[gone])
			w.settle()
		}
	}
	stop()
	w.Reopen()
	w.Forget()
	w.events.forget()
	w.start(c)
	<-time.After(5 * time.Minute) // a new leader compares everything after 90 s
	w.settle()
	if wrote := w.Writes(); len(wrote) > 0 {
		t.Errorf("written was %v", wrote)
		for _, e := range w.events.list("") {
			t.Log(e)
		}
	}
}
