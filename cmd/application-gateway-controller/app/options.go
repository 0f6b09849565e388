package app

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cliflag "k8s.io/component-base/cli/flag"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/component-base/config/options"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/component/kubeconfig"
	"kaz/internal/gateway"
	"kaz/internal/plan/gateway/ingress"
)

// settings are the values of the flags.
type settings struct {
	cloudConfig                      string
	gateway, gatewayGroup, gatewayID string
	gatewaySubscription              string
	further                          []string // ids of further application gateways
	answers, answersAddress          string
	gatewayAPI                       bool
	clusterID                        string
	exclusive, adoptAGIC             bool
	class                            ingress.Class
	namespaces                       []string
	ingress                          ingress.Options
	drift                            time.Duration
	metricsAddress                   string
	election                         componentbaseconfig.LeaderElectionConfiguration
	kube                             kubeconfig.Options
	logging                          *logsapi.LoggingConfiguration
	environment                      []error // problems of environment variables
}

const leastDrift = 5 * time.Second

func newOptions() *settings {
	const lease, renew, retry = 15 * time.Second, 10 * time.Second, 2 * time.Second
	return &settings{
		cloudConfig: "/etc/kubernetes/azure.json", metricsAddress: "127.0.0.1:8123", drift: gateway.Drift,
		answersAddress: "0.0.0.0:8124", gatewayAPI: true,
		class:   ingress.Class{Value: ingress.ClassValue, Name: ingress.ClassName, Controller: ingress.ClassValue},
		logging: logsapi.NewLoggingConfiguration(),
		election: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect: true, ResourceLock: "leases", ResourceName: name, ResourceNamespace: "kube-system",
			LeaseDuration: metav1.Duration{Duration: lease}, RenewDeadline: metav1.Duration{Duration: renew},
			RetryPeriod: metav1.Duration{Duration: retry},
		},
	}
}

// flags returns the flags in the groups that help shows.
func (o *settings) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	o.addGateway(sets.FlagSet("gateway"))
	o.addIngress(sets.FlagSet("ingress"))
	server := sets.FlagSet("server")
	server.StringVar(&o.metricsAddress, "metrics-address", o.metricsAddress,
		"HOST:PORT for /metrics, /healthz and /readyz. Empty means none.")
	server.StringVar(&o.answersAddress, "answers-address", o.answersAddress,
		"HOST:PORT of the server that --answers-service leads to. It answers with the status code that the path begins with.")
	options.BindLeaderElectionFlags(&o.election, sets.FlagSet("leader election"))
	o.kube.AddFlags(sets.FlagSet("kubernetes"))
	return sets
}

func (o *settings) addGateway(flags *pflag.FlagSet) {
	flags.StringVar(&o.cloudConfig, "cloud-config", o.cloudConfig,
		"Path of the cloud configuration (azure.json). If it does not exist, the subscription of --gateway-id or --gateway-subscription "+
			"and the workload identity or managed identity of the pod are used.")
	flags.StringVar(&o.gatewayID, "gateway-id", "", "Id of the application gateway. It excludes --gateway.")
	flags.StringVar(&o.gateway, "gateway", "", "Name of the application gateway.")
	flags.StringVar(&o.gatewayGroup, "gateway-resource-group", "",
		"Resource group of --gateway. Empty means that of the cloud configuration.")
	flags.StringVar(&o.gatewaySubscription, "gateway-subscription", "",
		"Subscription of --gateway. Empty means that of the cloud configuration.")
	flags.BoolVar(&o.gatewayAPI, "gateway-api", o.gatewayAPI,
		"Serve Gateways, ListenerSets, HTTPRoutes, TCPRoutes and TLSRoutes, if the API server has the Gateway API when the program starts.")
	flags.StringSliceVar(&o.further, "further-gateway-ids", nil,
		"Ids of further application gateways, for Gateways of the Gateway API. Ingresses are at that of --gateway-id alone, which may be "+
			"among them.")
	flags.StringVar(&o.answers, "answers-service", "",
		"NAMESPACE/NAME of the Service that leads to --answers-address of this program, with a port of the name answers. An application "+
			"gateway cannot answer 404 or 500 by itself. Empty means that it has no such backend.")
	flags.StringVar(&o.clusterID, "cluster-id", "",
		"1 to 8 letters and digits that tell the cluster's children at the gateway from those of other clusters. They must never change. "+
			"Empty means a hash of the UID of the namespace kube-system.")
	flags.BoolVar(&o.exclusive, "exclusive", false,
		"Remove the listeners, rules, pools and the like that others have at the gateway. Without it, they stay.")
	flags.BoolVar(&o.adoptAGIC, "adopt-agic", false,
		"Take over what AGIC has made at the gateway, in one write. AGIC must not run any more.")
	flags.DurationVar(&o.drift, "drift-interval", o.drift,
		"Time between comparisons of the gateway with the Kubernetes objects if nothing changes.")
}

func (o *settings) addIngress(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.namespaces, "watch-namespaces", nil, "Namespaces of the Ingresses, Gateways and routes. Empty means all.")
	flags.StringVar(&o.class.Value, "ingress-class-annotation", o.class.Value,
		"Value of the annotation kubernetes.io/ingress.class of the Ingresses that are served.")
	flags.StringVar(&o.class.Name, "ingress-class", o.class.Name,
		"Name of the IngressClass of the Ingresses that are served. Empty means that only the annotation counts.")
	flags.StringVar(&o.class.Controller, "ingress-class-controller", o.class.Controller, "Controller that the IngressClass must have.")
	flags.BoolVar(&o.class.TakesUnclassed, "ingress-without-class", false, "Serve Ingresses without a class, too.")
	flags.BoolVar(&o.ingress.Private, "use-private-ip", false, "Serve all Ingresses at the private address of the gateway.")
	flags.BoolVar(&o.ingress.PolicyAtListener, "waf-policy-at-listener", false,
		"Give the firewall policy of an Ingress to its listeners, not only to its paths.")
	flags.BoolVar(&o.ingress.PrefixAsText, "agic-compat-prefix-match", false, "Let a path /foo of type Prefix match /foobar, as AGIC does.")
	flags.BoolVar(&o.ingress.HTTPWithoutTLS, "serve-http-on-missing-tls", false,
		"Serve an Ingress with ssl-redirect and without a certificate over HTTP. Without it, it is not served.")
}

var clusterID = regexp.MustCompile(`^[0-9a-zA-Z]{0,8}$`)

// validate returns all problems at once.
func (o *settings) validate() error {
	problems := slices.Clone(o.environment)
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch id, err := azure.ParseID(o.gatewayID); {
	case o.gatewayID == "" && o.gateway == "":
		note("neither --gateway-id nor --gateway is given: want one")
	case o.gatewayID != "" && o.gateway != "":
		note("--gateway-id %s and --gateway %s exclude each other: want one", o.gatewayID, o.gateway)
	case o.gatewayID != "" && (err != nil || !id.Is(network.ApplicationGateways)):
		note("--gateway-id %q: must be /subscriptions/.../providers/%s/NAME", o.gatewayID, network.ApplicationGateways)
	}
	o.validateAPI(note)
	for _, given := range []struct{ flag, name string }{
		{"--gateway", o.gateway}, {"--gateway-resource-group", o.gatewayGroup}, {"--gateway-subscription", o.gatewaySubscription},
	} {
		if strings.Contains(given.name, "/") {
			note("%s %q: must be a name; --gateway-id takes an id", given.flag, given.name)
		}
	}
	if !clusterID.MatchString(o.clusterID) {
		note("--cluster-id %q: must be 1 to 8 letters and digits, or empty", o.clusterID)
	}
	if o.drift < leastDrift {
		note("--drift-interval %v: must be %v or more", o.drift, leastDrift)
	}
	if o.class.Value == "" && o.class.Name == "" {
		note("--ingress-class-annotation and --ingress-class are empty: want at least one")
	}
	return errors.Join(problems...)
}

// validateAPI notes problems of the flags for the Gateway API.
func (o *settings) validateAPI(note func(format string, args ...any)) {
	for _, text := range o.further {
		if id, err := azure.ParseID(text); err != nil || !id.Is(network.ApplicationGateways) {
			note("--further-gateway-ids %q: must be /subscriptions/.../providers/%s/NAME", text, network.ApplicationGateways)
		}
	}
	if o.answers == "" {
		return
	}
	if namespace, name, ok := strings.Cut(o.answers, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		note("--answers-service %q: must be NAMESPACE/NAME", o.answers)
	}
	if _, _, err := net.SplitHostPort(o.answersAddress); err != nil {
		note("--answers-address %q: must be HOST:PORT", o.answersAddress)
	}
}
