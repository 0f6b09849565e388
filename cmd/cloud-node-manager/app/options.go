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

// options are what the flags say.
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
	// A node has many programs: without being asked to, this one opens no port.
	o.serving.BindPort = 0
	// An empty directory makes a certificate in memory.
	o.serving.ServerCert.CertDirectory, o.serving.ServerCert.PairName = "", name
	o.authentication.RemoteKubeConfigFileOptional = true
	o.authorization.RemoteKubeConfigFileOptional = true
	return o
}

// flags has the flags in the groups in which help shows them.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	node := sets.FlagSet("node")
	node.StringVar(&o.nodeName, "node-name", o.nodeName, "Name of the node, in any case. Empty is $NODE_NAME, and without that the host's name.")
	node.BoolVar(&o.useMetadata, "use-instance-metadata", o.useMetadata, "Ask the machine's own metadata service. With false, Azure's API is asked, with --cloud-config.")
	node.StringVar(&o.metadataEndpoint, "metadata-endpoint", o.metadataEndpoint, "URL of the metadata service: /metadata/instance follows.")
	node.StringVar(&o.nodeList, "node-list", o.nodeList, "File of nodes to look after from one process, a line NAME URL for each, where URL is that of its machine's metadata service; # begins a comment. It is read again when it changes.")
	node.StringVar(&o.cloudConfig, "cloud-config", o.cloudConfig, "Path of the cloud configuration (azure.json). Only read with --use-instance-metadata=false.")
	node.BoolVar(&o.waitRoutes, "wait-routes", o.waitRoutes, "Say of a new node that its network is unavailable, until the route controller says otherwise.")
	node.DurationVar(&o.updateFrequency, "node-status-update-frequency", o.updateFrequency, "How often an initialized node's addresses are looked at.")
	node.BoolVar(&o.betaLabels, "enable-deprecated-beta-topology-labels", o.betaLabels, "Keep the deprecated beta labels of instance type, zone and region too.")
	node.StringVar(&o.tracingFile, "tracing-config-file", o.tracingFile, "Path of a file of the kind TracingConfiguration (apiserver.config.k8s.io/v1): which OpenTelemetry collector gets spans of the requests to Azure's API, and how many. Empty is no tracing.")
	kube := sets.FlagSet("kubernetes")
	kube.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "Path of the kubeconfig. Empty, without --master, is the service account of the pod.")
	kube.StringVar(&o.master, "master", o.master, "Address of the Kubernetes API server, in place of the kubeconfig's.")
	kube.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests per second to the Kubernetes API server.")
	kube.Int32Var(&o.burst, "kube-api-burst", o.burst, "Requests at once to the Kubernetes API server.")
	kube.StringVar(&o.contentType, "kube-api-content-type", o.contentType, "Content type of requests to the Kubernetes API server: "+strings.Join(contentTypes(), " or ")+"; empty is the first.")
	kube.DurationVar(&o.minResync, "min-resync-period", o.minResync, "How often what is known of the node is gone through again, 0 for never.")
	o.serving.AddFlags(sets.FlagSet("secure serving"))
	o.authentication.AddFlags(sets.FlagSet("authentication"))
	o.authorization.AddFlags(sets.FlagSet("authorization"))
	o.addServiceFlag(node)
	return sets
}

func contentTypes() []string {
	return []string{"application/json", "application/vnd.kubernetes.protobuf"}
}

// validate reports all problems at once.
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

// node is the name of the one node, as Kubernetes writes it.
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
