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

// ownFlags are the flags that the framework does not have.
type ownFlags struct {
	nodeFilter  string
	tracingFile string
	lock        bool
}

func (o *ownFlags) add(sets *cliflag.NamedFlagSets) {
	generic := sets.FlagSet("generic")
	generic.StringVar(&o.nodeFilter, "node-filter-requirements", "",
		"Label selector of the nodes that are looked after. Empty is all. Services and all else are seen whatever their labels.")
	sets.FlagSet("cloud provider").BoolVar(&o.lock, "managed-resource-lock", false,
		"Hold the lease "+lease.Namespace+"/"+lease.Name+" while load balancers and their members are written, as the controllers of the managed service do. "+
			"Only of use where such a controller looks after the same resources. Needs the rights to get, create and update leases in that namespace.")
	sets.FlagSet("tracing").StringVar(&o.tracingFile, "tracing-config-file", "",
		"Path of a file of the kind TracingConfiguration (apiserver.config.k8s.io/v1) that says which OpenTelemetry collector gets spans, and how many. Empty is no tracing.")
}

// read makes sense of them.
func (o *ownFlags) read() (labels.Selector, error) { return parseNodeFilter(o.nodeFilter) }

func parseNodeFilter(flag string) (labels.Selector, error) {
	selector, err := labels.Parse(flag)
	if err != nil {
		return nil, fmt.Errorf("--node-filter-requirements %q is no label selector: %w", flag, err)
	}
	return selector, nil
}

// filterNodes makes a factory know only the nodes that a selector fits. It has to come
// before anybody asks the factory for nodes.
func filterNodes(factory informers.SharedInformerFactory, selector labels.Selector) {
	if selector.Empty() {
		return
	}
	factory.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = selector.String() })
	})
}

// inertFlag is a flag that users pass and that has no effect here.
type inertFlag struct{ name, why string }

// inertFlags is the table of them.
func inertFlags() []inertFlag {
	const noWebhooks = "this program has no webhooks"
	return []inertFlag{
		{"external-cloud-volume-plugin", "volumes are the business of CSI drivers"},
		{"webhooks", noWebhooks},
		{"webhook-bind-address", noWebhooks},
		{"webhook-secure-port", noWebhooks},
		{"webhook-cert-dir", noWebhooks},
		{"webhook-tls-cert-file", noWebhooks},
		{"webhook-tls-private-key-file", noWebhooks},
	}
}

// warnOfFlags says once of each flag that was given in vain why it has no effect.
func warnOfFlags(flags *pflag.FlagSet) {
	for _, inert := range inertFlags() {
		if f := flags.Lookup(inert.name); f != nil && f.Changed {
			slog.Warn("flag has no effect", "flag", "--"+inert.name, "why", inert.why)
		}
	}
}

// addLogFormat adds the name that --logging-format had before.
func addLogFormat(global *pflag.FlagSet) {
	if format := global.Lookup("logging-format"); format != nil {
		global.Var(format.Value, "log-format", "The same as --logging-format.")
		global.Lookup("log-format").Hidden = true
	}
}

// checkProvider refuses the name of another cloud.
func checkProvider(name, want string) error {
	if name != want {
		return fmt.Errorf("--cloud-provider %q: must be %s", name, want)
	}
	return nil
}
