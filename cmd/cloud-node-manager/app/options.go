package app

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	apiserver "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/imds"
)

// options are the values of the flags.
type options struct {
	nodeName         string
	nodeList         string
	useMetadata      bool
	metadataEndpoint string
	cloudConfig      string
	waitRoutes       bool
	betaLabels       bool
	updateFrequency  time.Duration
	minResync        time.Duration
	tracingFile      string
	metricsAddress   string
	platform

	kubeconfig, master, contentType string
	qps                             float32
	burst                           int32

	serving        *apiserver.SecureServingOptionsWithLoopback
	authentication *apiserver.DelegatingAuthenticationOptions
	authorization  *apiserver.DelegatingAuthorizationOptions
	logging        *logsapi.LoggingConfiguration
}

func newOptions() *options {
	o := &options{
		useMetadata: true, metadataEndpoint: imds.DefaultEndpoint,
		updateFrequency: 5 * time.Minute, qps: 20, burst: 30,
		serving:        apiserver.NewSecureServingOptions().WithLoopback(),
		authentication: apiserver.NewDelegatingAuthenticationOptions(),
		authorization:  apiserver.NewDelegatingAuthorizationOptions(),
		logging:        logsapi.NewLoggingConfiguration(),
	}
	// A node runs many programs, so this one opens a port only on request.
	o.serving.BindPort = 0
	// With an empty directory the certificate is kept in memory.
	o.serving.ServerCert.CertDirectory, o.serving.ServerCert.PairName = "", name
	o.authentication.RemoteKubeConfigFileOptional = true
	o.authorization.RemoteKubeConfigFileOptional = true
	return o
}

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	node := sets.FlagSet("node")
	node.StringVar(&o.nodeName, "node-name", o.nodeName,
		"Name of the node, in any case. Empty means $NODE_NAME or, if that is not set, the host name.")
	node.BoolVar(&o.useMetadata, "use-instance-metadata", o.useMetadata,
		"Read the instance metadata service of the machine. If false, read the Azure API, with --cloud-config.")
	node.StringVar(&o.metadataEndpoint, "metadata-endpoint", o.metadataEndpoint, "URL of the metadata service, without /metadata/instance.")
	node.StringVar(&o.nodeList, "node-list", o.nodeList,
		"File of nodes to manage from one process, with a line NAME URL for each. URL is the metadata service of the "+
			"machine; # starts a comment. Changes of the file apply at once.")
	node.StringVar(&o.cloudConfig, "cloud-config", o.cloudConfig,
		"Path of the cloud configuration (azure.json). Only used with --use-instance-metadata=false.")
	node.BoolVar(&o.waitRoutes, "wait-routes", o.waitRoutes,
		"Mark a new node's network as unavailable until the route controller has created its route.")
	node.DurationVar(&o.updateFrequency, "node-status-update-frequency", o.updateFrequency,
		"How often the addresses of an initialized node are updated.")
	node.BoolVar(&o.betaLabels, "enable-deprecated-beta-topology-labels", o.betaLabels,
		"Also set the deprecated beta labels of instance type, zone and region.")
	node.StringVar(&o.tracingFile, "tracing-config-file", o.tracingFile,
		"Path of a TracingConfiguration file (apiserver.config.k8s.io/v1) with the endpoint of the OpenTelemetry collector for "+
			"Azure API requests and the sampling rate. Empty disables tracing.")
	kube := sets.FlagSet("kubernetes")
	kube.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"Path of the kubeconfig. Empty, without --master, means the service account of the pod.")
	kube.StringVar(&o.master, "master", o.master, "Address of the Kubernetes API server. It overrides the kubeconfig's.")
	kube.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests per second to the Kubernetes API server.")
	kube.Int32Var(&o.burst, "kube-api-burst", o.burst, "Burst of requests to the Kubernetes API server.")
	kube.StringVar(&o.contentType, "kube-api-content-type", o.contentType, "Content type of requests to the Kubernetes API server: "+
		strings.Join(contentTypes(), " or ")+"; empty means the first.")
	kube.DurationVar(&o.minResync, "min-resync-period", o.minResync,
		"How often the informer resyncs; 0 disables it.")
	sets.FlagSet("metrics").StringVar(&o.metricsAddress, "metrics-address", o.metricsAddress,
		"Address HOST:PORT at which /metrics is served over HTTP to every client, beside --secure-port with its access control. "+
			"Empty serves nothing there.")
	o.serving.AddFlags(sets.FlagSet("secure serving"))
	o.authentication.AddFlags(sets.FlagSet("authentication"))
	o.authorization.AddFlags(sets.FlagSet("authorization"))
	o.addServiceFlag(node)
	return sets
}

func contentTypes() []string {
	return []string{"application/json", "application/vnd.kubernetes.protobuf"}
}

// validate returns all problems at once.
func (o *options) validate() error {
	var problems []error
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.updateFrequency <= 0 {
		note("--node-status-update-frequency %s: must be more than 0", o.updateFrequency)
	}
	if o.minResync < 0 {
		note("--min-resync-period %s: must be 0 or more", o.minResync)
	}
	if o.qps <= 0 {
		note("--kube-api-qps %v: must be more than 0", o.qps)
	}
	if o.burst <= 0 {
		note("--kube-api-burst %d: must be more than 0", o.burst)
	}
	if o.contentType != "" && !slices.Contains(contentTypes(), o.contentType) {
		note("--kube-api-content-type %q: must be one of %s", o.contentType, strings.Join(contentTypes(), ", "))
	}
	if o.useMetadata {
		if _, err := imds.New(imds.Config{Endpoint: o.metadataEndpoint}); err != nil {
			note("--metadata-endpoint: %w", err)
		}
	} else if o.cloudConfig == "" {
		note("--cloud-config is missing: with --use-instance-metadata=false it must be the path of azure.json")
	}
	if o.nodeName != "" {
		if err := checkNodeName(strings.ToLower(o.nodeName)); err != nil {
			note("--node-name %w", err)
		}
	}
	if o.nodeList != "" {
		for _, f := range []struct {
			flag string
			set  bool
		}{
			{"--node-name", o.nodeName != ""}, {"--metadata-endpoint", o.metadataEndpoint != imds.DefaultEndpoint},
			{"--use-instance-metadata=false", !o.useMetadata},
		} {
			if f.set {
				note("%s: not allowed with --node-list, which names nodes and their metadata services", f.flag)
			}
		}
	}
	problems = append(problems, o.serving.Validate()...)
	problems = append(problems, o.authentication.Validate()...)
	problems = append(problems, o.authorization.Validate()...)
	return errors.Join(problems...)
}

func checkNodeName(name string) error {
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		return fmt.Errorf("%q is no name of a node: %s", name, strings.Join(why, ", "))
	}
	return nil
}

// node returns the name of the node as in Kubernetes.
func (o *options) node(lookup func(string) (string, bool)) (string, error) {
	from, text := "--node-name", o.nodeName
	if text == "" {
		from = "NODE_NAME"
		text, _ = lookup(from)
	}
	if text == "" {
		from = "host name"
		var err error
		if text, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("--node-name is empty, and so is NODE_NAME, and the host's name cannot be read: %w", err)
		}
	}
	text = strings.ToLower(strings.TrimSpace(text))
	if err := checkNodeName(text); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return text, nil
}
