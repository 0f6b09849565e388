// Package driver is what the programs of CSI drivers share: flags, the cloud configuration, health, and how services are served.
// Layer L4.
package driver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/cloudconfig"
	"kaz/internal/component/kubeconfig"
	"kaz/internal/csi"
	"kaz/internal/csi/kube"
)

// Options are the values of the flags that all drivers have.
type Options struct {
	Mode                        string
	Endpoint, Driver, Node      string
	CloudConfig                 string
	SecretName, SecretNamespace string
	UserAgent, UserAgentSuffix  string

	Kube kubeconfig.Options

	RegisteredSocket, RegistrationDir string

	MetricsAddress, TracingFile string
	Profiling                   bool

	Logging *logsapi.LoggingConfiguration
}

// DefaultConfig is the cloud configuration of Azure's nodes.
const DefaultConfig = "/etc/kubernetes/azure.json"

// The modes.
const (
	ModeAll        = "all"
	ModeController = "controller"
	ModeNode       = "node"
)

// HasNode reports whether the node service is served.
func (o *Options) HasNode() bool { return o.Mode != ModeController && o.Node != "" }

// HasController reports whether the controller is served.
func (o *Options) HasController() bool { return o.Mode != ModeNode }

// New returns the options of a driver with a name.
func New(driver string) Options {
	return Options{
		Mode: ModeAll, Endpoint: "unix://tmp/csi.sock", Driver: driver,
		SecretName: cloudconfig.SecretName, SecretNamespace: cloudconfig.SecretNamespace,
		RegistrationDir: "/registration", Logging: logsapi.NewLoggingConfiguration(),
	}
}

// AddDriver adds the flags of the driver as a whole.
func (o *Options) AddDriver(flags *pflag.FlagSet) {
	flags.StringVar(&o.Mode, "mode", o.Mode,
		"Services to serve: controller, node, or all. all serves the node service only with --nodeid.")
	flags.StringVar(&o.Endpoint, "endpoint", o.Endpoint, "Socket to serve at: unix://PATH or tcp://HOST:PORT.")
	flags.StringVar(&o.Driver, "drivername", o.Driver, "Name of the driver.")
	flags.StringVar(&o.Node, "nodeid", o.Node, "Name of the node. The node service needs it.")
	flags.StringVar(&o.CloudConfig, "cloud-config", o.CloudConfig,
		"Path of the cloud configuration (azure.json). Empty means $AZURE_CREDENTIAL_FILE or, if that is not set, "+DefaultConfig+".")
	flags.StringVar(&o.SecretName, "cloud-config-secret-name", o.SecretName,
		"Name of the Secret with the cloud configuration. If it exists, it is used instead of the file.")
	flags.StringVar(&o.SecretNamespace, "cloud-config-secret-namespace", o.SecretNamespace,
		"Namespace of the Secret with the cloud configuration.")
	flags.StringVar(&o.UserAgent, "custom-user-agent", o.UserAgent, "User agent of requests to Azure, instead of the name and version.")
	flags.StringVar(&o.UserAgentSuffix, "user-agent-suffix", o.UserAgentSuffix, "Text after the user agent.")
}

// AddRegistration adds the flags with which a node service registers itself.
func (o *Options) AddRegistration(flags *pflag.FlagSet) {
	flags.StringVar(&o.RegisteredSocket, "kubelet-registration-path", o.RegisteredSocket,
		"Path of the driver's socket as the kubelet sees it. If it is set, the driver registers itself and needs no node-driver-registrar.")
	flags.StringVar(&o.RegistrationDir, "plugin-registration-path", o.RegistrationDir,
		"The kubelet's directory of registration sockets, as the driver sees it.")
}

// AddDiagnostics adds the flags of metrics, health, profiles and traces.
func (o *Options) AddDiagnostics(flags *pflag.FlagSet) {
	flags.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress,
		"HOST:PORT or :PORT, which is localhost alone, for /metrics, /healthz and /readyz. Empty means none.")
	flags.BoolVar(&o.Profiling, "profiling", o.Profiling, "Serve profiles below /debug/pprof at --metrics-address.")
	flags.StringVar(&o.TracingFile, "tracing-config-file", o.TracingFile,
		"Path of a TracingConfiguration (apiserver.config.k8s.io/v1). Empty means no tracing.")
}

// Inert is a flag of the driver that a program replaces which has no effect, so that manifests of that driver work.
type Inert struct{ Name, Initial, Reason string }

// AddInert adds flags without effect.
func AddInert(flags *pflag.FlagSet, all ...Inert) {
	for _, f := range all {
		flags.String(f.Name, f.Initial, "")
		flags.Lookup(f.Name).Deprecated = "it has no effect: " + f.Reason
		flags.Lookup(f.Name).NoOptDefVal = "true"
	}
}

// Problems returns what is wrong with the options. That a node service has the name of its node is left to the program.
func (o *Options) Problems() []error {
	var problems []error
	if err := csi.CheckEndpoint(o.Endpoint); err != nil {
		problems = append(problems, fmt.Errorf("--%w", err))
	}
	modes := []string{ModeController, ModeNode, ModeAll}
	_, _, err := net.SplitHostPort(o.MetricsAddress)
	for _, p := range []struct {
		wrong   bool
		problem error
	}{
		{!slices.Contains(modes, o.Mode), fmt.Errorf("--mode %q: must be one of %s", o.Mode, strings.Join(modes, ", "))},
		{o.Driver == "", errors.New("--drivername is missing")},
		{o.MetricsAddress != "" && err != nil, fmt.Errorf("--metrics-address %q: must be HOST:PORT or :PORT", o.MetricsAddress)},
		{o.MetricsAddress == "" && o.Profiling, errors.New("--profiling: needs --metrics-address")},
		{o.RegisteredSocket != "" && !o.HasNode(),
			fmt.Errorf("--kubelet-registration-path %q: only a node service is registered; give --nodeid and another --mode",
				o.RegisteredSocket)},
	} {
		if p.wrong {
			problems = append(problems, p.problem)
		}
	}
	return problems
}

// NodeProblem returns an error if the node service is asked for without the name of its node.
func (o *Options) NodeProblem() error {
	if o.Mode == ModeNode && o.Node == "" {
		return errors.New("--nodeid is missing: --mode=node needs the name of the node")
	}
	return nil
}

// noCluster is the kubeconfig of manifests that have no cluster.
const noCluster = "no-need-kubeconfig"

// Kubernetes returns a client of the Kubernetes API. Outside a cluster and without a kubeconfig there is none.
func (o *Options) Kubernetes(program string) (*kube.Client, error) {
	if o.Kube.Kubeconfig == noCluster {
		return nil, nil
	}
	config, err := o.Kube.Read(program)
	if config == nil {
		return nil, err
	}
	return kube.New(config)
}
