package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"

	"kaz/internal/cloudprovider/lease"
)

// ownFlags are flags that the framework does not have.
type ownFlags struct {
	nodeFilter  string
	tracingFile string
	metrics     string // address
	lock        bool
}

func (o *ownFlags) add(sets *cliflag.NamedFlagSets) {
	generic := sets.FlagSet("generic")
	generic.StringVar(&o.nodeFilter, "node-filter-requirements", "",
		"Label selector of the managed nodes. Empty selects all. It does not filter Services and other objects.")
	sets.FlagSet("cloud provider").BoolVar(&o.lock, "managed-resource-lock", false,
		"Hold the lease "+lease.Namespace+"/"+lease.Name+
			" while writing load balancers and their members, as the controllers of the managed service do. "+
			"Only useful if such a controller manages the same resources. Needs the rights to get, create and update leases "+
			"in that namespace.")
	sets.FlagSet("metrics").StringVar(&o.metrics, metricsFlag, "",
		"Address HOST:PORT at which /metrics is served over HTTP to every client, beside --secure-port with its access control. "+
			"Empty serves nothing there.")
	sets.FlagSet("tracing").StringVar(&o.tracingFile, "tracing-config-file", "",
		"Path of a TracingConfiguration file (apiserver.config.k8s.io/v1) with the endpoint of the OpenTelemetry collector "+
			"and the sampling rate. Empty disables tracing.")
}

// metricsFlag is the name of a flag.
const metricsFlag = "metrics-address"

// read parses the flags.
func (o *ownFlags) read() (labels.Selector, error) { return parseNodeFilter(o.nodeFilter) }

func parseNodeFilter(flag string) (labels.Selector, error) {
	selector, err := labels.Parse(flag)
	if err != nil {
		return nil, fmt.Errorf("--node-filter-requirements %q: not a label selector: %w", flag, err)
	}
	return selector, nil
}

// filterNodes restricts the node informer of a factory to the nodes that match selector. Call it
// before anything else requests the node informer.
func filterNodes(factory informers.SharedInformerFactory, selector labels.Selector) {
	if selector.Empty() {
		return
	}
	factory.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = selector.String() })
	})
}

// inertFlag is a flag that the program accepts and ignores.
type inertFlag struct{ name, why string }

// inertFlags returns the ignored flags.
func inertFlags() []inertFlag {
	const noWebhooks = "this program has no webhooks"
	return []inertFlag{
		{"external-cloud-volume-plugin", "CSI drivers manage volumes"},
		{"webhooks", noWebhooks},
		{"webhook-bind-address", noWebhooks},
		{"webhook-secure-port", noWebhooks},
		{"webhook-cert-dir", noWebhooks},
		{"webhook-tls-cert-file", noWebhooks},
		{"webhook-tls-private-key-file", noWebhooks},
	}
}

// warnOfFlags logs a warning for each ignored flag that is set.
func warnOfFlags(flags *pflag.FlagSet) {
	for _, inert := range inertFlags() {
		if f := flags.Lookup(inert.name); f != nil && f.Changed {
			slog.Warn("flag has no effect", "flag", "--"+inert.name, "why", inert.why)
		}
	}
}

// addLogFormat adds --log-format, the former name of --logging-format.
func addLogFormat(global *pflag.FlagSet) {
	if format := global.Lookup("logging-format"); format != nil {
		global.Var(format.Value, "log-format", "The same as --logging-format.")
		global.Lookup("log-format").Hidden = true
	}
}

// checkProvider rejects other cloud provider names than want.
func checkProvider(name, want string) error {
	if name != want {
		return fmt.Errorf("--cloud-provider %q: must be %s", name, want)
	}
	return nil
}
