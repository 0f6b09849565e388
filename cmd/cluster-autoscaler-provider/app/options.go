package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/component/kubeconfig"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/retail"
)

// options are the values of the flags.
type options struct {
	source
	address             string
	cert, key, clientCA string
	remote              bool
	metricsAddress      string
	forceDelete         bool
	setsEvery           time.Duration
	prices              string
	watchNodes          bool
	kube                kubeconfig.Options
	logging             *logsapi.LoggingConfiguration
}

// source says which scale sets are node groups.
type source struct {
	cloudConfig string
	named       []string
	discovery   []string
}

func newOptions() *options {
	return &options{
		source: source{cloudConfig: "/etc/kubernetes/azure.json"}, address: "127.0.0.1:8086", metricsAddress: "127.0.0.1:8087",
		setsEvery: time.Minute, prices: retail.PublicURL, watchNodes: true, logging: logsapi.NewLoggingConfiguration(),
	}
}

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	o.addTo(sets.FlagSet("node groups"))
	server := sets.FlagSet("server")
	server.StringVar(&o.address, "address", o.address, "HOST:PORT to serve cluster-autoscaler at.")
	server.StringVar(&o.cert, "cert", o.cert, "Path of the server's certificate. It is read again when it changes.")
	server.StringVar(&o.key, "key-cert", o.key, "Path of the private key of --cert.")
	server.StringVar(&o.clientCA, "ca-cert", o.clientCA, "Path of the certificates that sign certificates of clients.")
	server.BoolVar(&o.remote, "insecure-allow-remote", o.remote,
		"Serve without certificates at an address that other machines can reach. They can delete nodes then.")
	server.StringVar(&o.metricsAddress, "metrics-address", o.metricsAddress,
		"HOST:PORT for /metrics, /healthz, /readyz and /debug/nodegroups/SCALESET. Empty means none.")
	azure := sets.FlagSet("azure")
	azure.BoolVar(&o.forceDelete, "force-delete", o.forceDelete,
		"Delete machines without waiting for their shutdown, as enableForceDelete does. "+
			"Sizes that Azure does not delete so are deleted without it.")
	azure.DurationVar(&o.setsEvery, "refresh", o.setsEvery, "Age at which the list of scale sets is read again.")
	azure.StringVar(&o.prices, "prices", o.prices, "Where the expander price of cluster-autoscaler gets its prices: URL of "+
		"Azure's retail prices, or path of a file with one of its answers. It is not read before a price is needed. "+
		"Empty means that there are none.")
	kube := sets.FlagSet("kubernetes")
	o.kube.AddFlags(kube)
	kube.BoolVar(&o.watchNodes, "watch-nodes", o.watchNodes,
		"Watch nodes, so that a group without nodes is like it was when it had some. Without it the size of machines tells.")
	return sets
}

// addTo adds the flags that say which scale sets are node groups.
func (s *source) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&s.cloudConfig, "cloud-config", s.cloudConfig,
		"Path of the cloud configuration (azure.json). Environment variables of the in-tree provider, such as "+
			"ARM_SUBSCRIPTION_ID, go before it.")
	flags.StringArrayVar(&s.named, "nodes", nil, "Node group as MIN:MAX:SCALESET. May be repeated.")
	flags.StringArrayVar(&s.discovery, "node-group-auto-discovery", nil,
		"Tags of scale sets that are node groups: label:KEY=VALUE,...[,min=N][,max=N]. May be repeated: a scale set must match all, "+
			"or one that begins with label-any instead of label.")
}

// selection reads the flags that say which scale sets are node groups. It returns all problems at once.
func (s *source) selection() (nodegroup.Selection, error) {
	selection, err := nodegroup.ParseSelection(s.named, s.discovery)
	if len(s.named)+len(s.discovery) == 0 {
		err = errors.New("neither --nodes nor --node-group-auto-discovery is given: want at least one")
	}
	return selection, err
}

// validate returns all problems at once.
func (o *options) validate() error {
	_, err := o.selection()
	problems := []error{err}
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		note("--address %q: must be HOST:PORT", o.address)
	}
	given := 0
	for _, file := range []string{o.cert, o.key, o.clientCA} {
		if file != "" {
			given++
		}
	}
	const all = 3
	if given > 0 && given < all {
		note("--cert, --key-cert and --ca-cert: all three are needed, or none")
	}
	if err == nil && given == 0 && !loopback(host) && !o.remote {
		note("--address %s: other machines can reach it, so --cert, --key-cert and --ca-cert are needed; or use 127.0.0.1", o.address)
	}
	if o.setsEvery < time.Second {
		note("--refresh %v: must be 1s or more", o.setsEvery)
	}
	if o.prices != "" {
		if err := retail.Check(o.prices); err != nil {
			note("--prices: %w; want an http(s) URL, the path of a file, or nothing", err)
		}
	}
	return errors.Join(problems...)
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
