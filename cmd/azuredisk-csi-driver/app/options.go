package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/cloudconfig"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
)

// options are the values of the flags.
type options struct {
	mode, endpoint, driver, node string
	cloudConfig                  string
	secretName, secretNamespace  string
	kubeconfig                   string
	qps                          float32
	burst                        int

	attachLimit, reserved int64
	supportZone           bool
	onlineResize          bool
	convertCaching        bool
	listVolumes           bool
	maxFormat             int
	tune, checkIdentity   bool
	registeredSocket      string
	registrationDir       string

	userAgent, userAgentSuffix string

	removeTaint, keepRemoving bool
	taintDelay                int
	stopHook                  bool

	metricsAddress, tracingFile string
	profiling                   bool

	logging *logsapi.LoggingConfiguration
}

// defaultConfig is the cloud configuration of Azure's nodes.
const defaultConfig = "/etc/kubernetes/azure.json"

// The modes.
const (
	modeAll        = "all"
	modeController = "controller"
	modeNode       = "node"
)

func newOptions() *options {
	return &options{
		mode: modeAll, endpoint: "unix://tmp/csi.sock", driver: disk.DefaultName,
		secretName: cloudconfig.SecretName, secretNamespace: cloudconfig.SecretNamespace,
		attachLimit: -1, supportZone: true, onlineResize: true, maxFormat: 2, checkIdentity: true, tune: true,
		removeTaint: true, keepRemoving: true, taintDelay: 30,
		registrationDir: "/registration",
		logging:         logsapi.NewLoggingConfiguration(),
	}
}

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	driver := sets.FlagSet("driver")
	driver.StringVar(&o.mode, "mode", o.mode,
		"Services to serve: controller, node, or all. all serves the node service only with --nodeid.")
	driver.StringVar(&o.endpoint, "endpoint", o.endpoint, "Socket to serve at: unix://PATH or tcp://HOST:PORT.")
	driver.StringVar(&o.driver, "drivername", o.driver, "Name of the driver.")
	driver.StringVar(&o.node, "nodeid", o.node, "Name of the node. The node service needs it.")
	driver.StringVar(&o.cloudConfig, "cloud-config", o.cloudConfig,
		"Path of the cloud configuration (azure.json). Empty means $AZURE_CREDENTIAL_FILE or, if that is not set, "+defaultConfig+".")
	driver.StringVar(&o.secretName, "cloud-config-secret-name", o.secretName,
		"Name of the Secret with the cloud configuration. If it exists, it is used instead of the file.")
	driver.StringVar(&o.secretNamespace, "cloud-config-secret-namespace", o.secretNamespace,
		"Namespace of the Secret with the cloud configuration.")
	driver.BoolVar(&o.convertCaching, "convert-rw-caching-mode-for-intree-pv", o.convertCaching,
		"Attach volumes of the in-tree driver that have the caching mode ReadWrite with ReadOnly.")
	driver.BoolVar(&o.onlineResize, "enable-disk-online-resize", o.onlineResize, "Resize disks that are attached.")
	driver.BoolVar(&o.listVolumes, "enable-list-volumes", o.listVolumes,
		"Offer lists of volumes and snapshots. Each list is a request to Azure.")
	driver.StringVar(&o.userAgent, "custom-user-agent", o.userAgent, "User agent of requests to Azure, instead of the name and version.")
	driver.StringVar(&o.userAgentSuffix, "user-agent-suffix", o.userAgentSuffix, "Text after the user agent.")
	node := sets.FlagSet("node")
	node.Int64Var(&o.attachLimit, "volume-attach-limit", o.attachLimit,
		"Number of disks that can be attached to the machine. -1 means the limit of the machine's size, as Azure says.")
	node.Int64Var(&o.reserved, "reserved-data-disk-slot-num", o.reserved, "Number of disks that are left for other programs.")
	node.BoolVar(&o.supportZone, "support-zone", o.supportZone, "Report the zone of the node.")
	node.IntVar(&o.maxFormat, "max-concurrent-format", o.maxFormat, "Number of disks that are formatted at a time.")
	node.BoolVar(&o.tune, "enable-perf-optimization", o.tune, "Write the settings of the parameter perfProfile to the devices of disks.")
	node.BoolVar(&o.checkIdentity, "check-disk-identity", o.checkIdentity,
		"Mount a disk only if the machine's metadata shows it, or no disk, at its LUN.")
	o.addNodeFlags(node)
	addDiagnostics(sets.FlagSet("diagnostics"), o)
	node.StringVar(&o.registeredSocket, "kubelet-registration-path", o.registeredSocket,
		"Path of the driver's socket as the kubelet sees it. If it is set, the driver registers itself and needs no node-driver-registrar.")
	node.StringVar(&o.registrationDir, "plugin-registration-path", o.registrationDir,
		"The kubelet's directory of registration sockets, as the driver sees it.")
	kube := sets.FlagSet("kubernetes")
	kube.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"Path of the kubeconfig. Empty means the service account of the pod, if it runs in one.")
	kube.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests per second to the Kubernetes API server; 0 means client-go's default.")
	kube.IntVar(&o.burst, "kube-api-burst", o.burst, "Burst of requests to the Kubernetes API server; 0 means client-go's default.")
	addInert(sets.FlagSet("compatibility"))
	return sets
}

func (o *options) addNodeFlags(node *pflag.FlagSet) {
	node.BoolVar(&o.removeTaint, "remove-not-ready-taint", o.removeTaint,
		"Remove the taint DRIVERNAME/agent-not-ready from the node when the kubelet has registered the driver.")
	node.IntVar(&o.taintDelay, "taint-removal-initial-delay-seconds", o.taintDelay, "Seconds before the node is first looked at.")
	node.BoolVar(&o.keepRemoving, "never-stop-taint-removal", o.keepRemoving, "Look at the node again every 5 minutes.")
	node.BoolVar(&o.stopHook, "pre-stop-hook", o.stopHook,
		"Serve nothing. If the node is drained or deleted, wait until none of the driver's volumes is attached to it, then exit. "+
			"Without --nodeid, $KUBE_NODE_NAME is the node.")
}

func addDiagnostics(flags *pflag.FlagSet, o *options) {
	flags.StringVar(&o.metricsAddress, "metrics-address", o.metricsAddress,
		"HOST:PORT or :PORT, which is localhost alone, for /metrics, /healthz and /readyz. Empty means none.")
	flags.BoolVar(&o.profiling, "profiling", o.profiling, "Serve profiles below /debug/pprof at --metrics-address.")
	flags.StringVar(&o.tracingFile, "tracing-config-file", o.tracingFile,
		"Path of a TracingConfiguration (apiserver.config.k8s.io/v1). Empty means no tracing.")
}

// addInert adds the flags of the driver that this one replaces which have no effect here, so that its manifests work.
func addInert(flags *pflag.FlagSet) {
	const why = "it has no effect: "
	for _, f := range []struct{ name, initial, reason string }{
		{"allow-empty-cloud-config", "true", "the controller needs a cloud configuration, the node service does not"},
		{"attach-detach-initial-delay-ms", "1000", "requests are combined without a delay"},
		{"check-disk-count-for-batching", "true", "it is always checked"},
		{"check-disk-lun-collision", "true", "LUNs that VolumeAttachments show are always left free"},
		{"concurrent-format-timeout", "300", "a format in progress keeps its slot"},
		{"detach-operation-min-timeout-seconds", "240", "a detachment ends when Azure says so or the caller gives up"},
		{"disable-avset-nodes", "false", "all kinds of machines are found by provider id"},
		{"enable-disk-capacity-check", "false", "it is always checked"},
		{"enable-list-snapshots", "false", "--enable-list-volumes decides"},
		{"enable-migration-monitor", "true", "Azure shows the progress at the disk"},
		{"enable-minimum-retry-after", "true", "azure.json decides"},
		{"enable-otel-tracing", "false", "--tracing-config-file names the collector"},
		{"enable-traffic-manager", "false", "not supported"},
		{"enable-windows-host-process", "false", "Windows is not supported yet"},
		{"force-detach-backoff", "true", "disks are detached by force only from nodes with the taint node.kubernetes.io/out-of-service"},
		{"get-disk-timeout-seconds", "15", "the caller's deadline decides"},
		{"get-node-info-from-labels", "false", "the metadata service has them"},
		{"get-nodeid-from-imds", "false", "--nodeid decides"},
		{"list-vmss-with-instance-view", "false", "machines are read one by one"},
		{"traffic-manager-port", "7788", "not supported"},
		{"use-csiproxy-ga-interface", "true", "Windows is not supported yet"},
		{"use-win-cim-api", "true", "Windows is not supported yet"},
		{"vm-type", "", "all kinds of machines are found by provider id"},
		{"vmss-cache-ttl-seconds", "-1", "machines are read when they are changed"},
		{"vmss-detach-timeout-seconds", "200", "a detachment ends when Azure says so or the caller gives up"},
		{"vol-stats-cache-expire-in-minutes", "10", "statistics are read from the kernel"},
		{"wait-for-detach", "true", "a detachment and an attachment share a request"},
		{"wait-for-detach-disk-complete", "true", "it is always waited for"},
		{"wait-for-snapshot-ready", "false", "the snapshotter asks until a snapshot is ready"},
	} {
		flags.String(f.name, f.initial, "")
		flags.Lookup(f.name).Deprecated = why + f.reason
		flags.Lookup(f.name).NoOptDefVal = "true"
	}
}

// validate returns all problems at once.
func (o *options) validate() error {
	var problems []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	modes := []string{modeController, modeNode, modeAll}
	refuse(!slices.Contains(modes, o.mode), "--mode %q: must be one of %s", o.mode, strings.Join(modes, ", "))
	if err := csi.CheckEndpoint(o.endpoint); err != nil {
		refuse(true, "--%w", err)
	}
	refuse(o.driver == "", "--drivername is missing")
	refuse(o.mode == modeNode && o.node == "" && !o.stopHook, "--nodeid is missing: --mode=node needs the name of the node")
	_, _, err := net.SplitHostPort(o.metricsAddress)
	refuse(o.metricsAddress != "" && err != nil, "--metrics-address %q: must be HOST:PORT or :PORT", o.metricsAddress)
	refuse(o.metricsAddress == "" && o.profiling, "--profiling: needs --metrics-address")
	refuse(o.taintDelay < 0, "--taint-removal-initial-delay-seconds %d: must be 0 or more", o.taintDelay)
	refuse(o.attachLimit < -1, "--volume-attach-limit %d: must be -1 or more", o.attachLimit)
	refuse(o.reserved < 0, "--reserved-data-disk-slot-num %d: must be 0 or more", o.reserved)
	refuse(o.registeredSocket != "" && (o.node == "" || o.mode == modeController),
		"--kubelet-registration-path %q: only a node service is registered; give --nodeid and another --mode", o.registeredSocket)
	refuse(o.maxFormat < 1, "--max-concurrent-format %d: must be 1 or more", o.maxFormat)
	return errors.Join(problems...)
}
