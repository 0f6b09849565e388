package service_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const prefix = "service.beta.kubernetes.io/azure-"

// given is what the mixed Services find in Azure.
var given = []string{"public IP mine", "public IP shared", "public IP far in the resource group far", "public IP prefix block",
	"subnet apps"}

// kinds are Services of all kinds. Each can be alone.
var kinds = map[string]func(s *corev1.Service){
	"plain":          func(*corev1.Service) {},
	"two-ports":      func(s *corev1.Service) { addPort(s, 443, corev1.ProtocolTCP) },
	"mixed-protocol": func(s *corev1.Service) { addPort(s, 80, corev1.ProtocolUDP) },
	"internal":       annotated("load-balancer-internal", "true"),
	"static":         annotated("load-balancer-internal", "true", "load-balancer-ipv4", "10.240.77.7"),
	"subnet":         annotated("load-balancer-internal", "true", "load-balancer-internal-subnet", "apps"),
	"dual": func(s *corev1.Service) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	},
	"own":         annotated("pip-name", "mine"),
	"far":         annotated("pip-name", "far", "load-balancer-resource-group", "far"),
	"managed-far": annotated("load-balancer-resource-group", "far"),
	"shared-one":  annotated("pip-name", "shared"),
	"shared-two": func(s *corev1.Service) {
		annotated("pip-name", "shared")(s)
		s.Spec.Ports[0].Port, s.Spec.Ports[0].Name = 8443, "8443"
	},
	"ranges":   func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} },
	"denied":   annotated("allowed-ip-ranges", "203.0.113.0/24", "deny-all-except-load-balancer-source-ranges", "true"),
	"tags":     annotated("allowed-service-tags", "AzureCloud"),
	"local":    func(s *corev1.Service) { local(s) },
	"no-float": annotated("disable-load-balancer-floating-ip", "true"),
	"probed":   annotated("load-balancer-health-probe-protocol", "http", "load-balancer-health-probe-request-path", "/ok"),
	"named":    annotated("dns-label-name", "kaz-mixed"),
	"linked":   annotated("load-balancer-internal", "true", "pls-create", "true"),
	"ha":       annotated("load-balancer-internal", "true", "load-balancer-enable-high-availability-ports", "true"),
}

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			name := prefix + pairs[i]
			s.Annotations[name] = pairs[i+1]
		}
	}
}

func local(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
}

func addPort(s *corev1.Service, port int32, protocol corev1.Protocol) {
	s.Spec.Ports = append(s.Spec.Ports,
		corev1.ServicePort{Name: fmt.Sprint(protocol, port), Protocol: protocol, Port: port, NodePort: 31000 + port})
}

// changes edit some of these Services.
var changes = map[string]func(s *corev1.Service){
	"plain":       func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 },
	"two-ports":   annotated("load-balancer-internal", "true"),
	"internal":    func(s *corev1.Service) { s.Annotations = nil },
	"own":         func(s *corev1.Service) { s.Annotations = nil },
	"managed-far": func(s *corev1.Service) { delete(s.Annotations, prefix+"load-balancer-resource-group") },
	"ranges":      func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = nil },
	"no-float":    func(s *corev1.Service) { s.Annotations = nil },
	"probed":      func(s *corev1.Service) { local(s) },
}

// mixed is a service cluster for all kinds of Services.
func mixed(t *testing.T, o core.Options) *serviceCluster {
	w := newServiceCluster(t, o, 2)
	if err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet, given); err != nil {
		t.Fatal(err)
	}
	return w
}

// everything is what is in Azure, in both resource groups. It ignores whether kaz has opened the subnet for private
// link services, because a subnet stays open.
func (w *serviceCluster) everything() map[string]string {
	w.t.Helper()
	all := w.Snapshot()
	maps.Copy(all, testkit.Snapshot(w.t, w.Client.Fresh(), far))
	for id, text := range all {
		all[id] = strings.ReplaceAll(text, `"privateLinkServiceNetworkPolicies": "Enabled"`,
			`"privateLinkServiceNetworkPolicies": "Disabled"`)
	}
	return all
}

const far = azure.ID("/subscriptions/" + testkit.Subscription + "/resourceGroups/far")

func (w *serviceCluster) addKind(name string) {
	w.t.Helper()
	s := w.newService(name, 80)
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	kinds[name](s)
	w.create(s)
}

func (w *serviceCluster) allHaveAddresses(names []string) {
	w.t.Helper()
	w.until("all have their addresses", func() bool {
		return !slices.ContainsFunc(names, func(n string) bool {
			s := w.get(n)
			return len(s.Status.LoadBalancer.Ingress) < len(s.Spec.IPFamilies)
		})
	})
}

// facts is what Azure has for Services, in a form that does not depend on the order in which they came.
func (w *serviceCluster) facts(names []string) map[string][]string {
	w.t.Helper()
	all := map[string][]string{}
	for _, n := range names {
		all[n] = w.env().Facts(w.t.(*testing.T), w.get(n))
	}
	return all
}

// rest waits until nothing is left to do, and returns what is in Azure for Services.
func (w *serviceCluster) rest(c service.Config, names []string) map[string][]string {
	w.t.Helper()
	const patience = 30
	pending := ""
	for range patience {
		w.settle()
		look, err := explain.NewInspector(w.t.Context(), inspectorOf(c), w.Client.Fresh(), w.client)
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := look.ExplainAll(w.t.Context())
		if err != nil {
			pending = err.Error()
			continue
		}
		if !e.Pending() {
			return w.facts(names)
		}
		pending = e.String()
	}
	w.t.Fatalf("it does not come to rest:\n%s", pending)
	return nil
}

// live is the life of the mixed Services, and what they had at its height.
func (w *serviceCluster) live() map[string][]string {
	w.t.Helper()
	names := slices.Sorted(maps.Keys(kinds))
	for _, name := range names {
		w.addKind(name)
	}
	w.allHaveAddresses(names)
	for name, change := range changes {
		w.change(name, change)
	}
	w.settle()
	height := w.rest(config(), names)
	for _, name := range names {
		w.remove(name)
	}
	w.allGone(names)
	return height
}

// disturbedMethods are those by which mixed Services are written.
var disturbedMethods = []string{http.MethodPut, http.MethodDelete}

// Twenty Services of all kinds come, change and go, and any one write goes wrong in any way. In the end everything is
// as it would have been, and nothing is left.
func TestAnyWriteOfMixedServicesCanGoWrong(t *testing.T) {
	var undisturbed map[string][]string
	t.Run("undisturbed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := mixed(t, core.Options{Latency: 1, Seed: 5})
			before := w.everything()
			w.Forget()
			w.start(config())
			undisturbed = w.live()
			w.restored(before, w.everything)
			for _, line := range w.Writes() {
				if method, _, _ := strings.Cut(line, " "); !slices.Contains(disturbedMethods, method) {
					t.Errorf("no write like this one goes wrong here: %s", line)
				}
			}
		})
	})
	names := slices.Sorted(maps.Keys(disturbances))
	for _, name := range names {
		if testing.Short() && name != "crash" {
			continue // the long run has them all
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range disturbedMethods {
				nth, stride := 1, 1
				if testing.Short() {
					nth, stride = 26, 1000
				}
				for ; disturbedMixed(t, disturbances[name], method, nth, undisturbed); nth += stride {
				}
			}
		})
	}
}

func disturbedMixed(t *testing.T, fault core.Fault, method string, nth int, undisturbed map[string][]string) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			crashes := make(crashes, 1)
			w := mixed(t, core.Options{Latency: 1, Seed: 5, Crash: crashes.note})
			before := w.everything()
			fault.Method, fault.Nth, fault.Times = method, nth, 1
			if err := w.SetFaults([]core.Fault{fault}); err != nil {
				t.Fatal(err)
			}
			w.Forget()
			defer w.startAgain(crashes, func() {})()
			if d := cmp.Diff(undisturbed, w.live()); d != "" {
				t.Errorf("what Azure has for the Services (-undisturbed +disturbed):\n%s", d)
			}
			happened = sent(w.Writes(), method) >= nth
			w.restored(before, w.everything)
			if t.Failed() {
				t.Logf("reproduce: go test ./internal/cloudprovider/service -run '%s'", strings.ReplaceAll(t.Name(), " ", "_"))
			}
		})
	})
	return happened
}
