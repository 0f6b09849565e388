package app

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"kaz/cmd/internal/driver"
	"kaz/internal/csi/disk"
)

// options are the values of the flags.
type options struct {
	driver.Options

	attachLimit, reserved int64
	supportZone           bool
	onlineResize          bool
	convertCaching        bool
	listVolumes           bool
	maxFormat             int
	tune, checkIdentity   bool

	removeTaint, keepRemoving bool
	taintDelay                int
	stopHook                  bool
}

func newOptions() *options {
	return &options{
		Options:     driver.New(disk.DefaultName),
		attachLimit: -1, supportZone: true, onlineResize: true, maxFormat: 2, checkIdentity: true, tune: true,
		removeTaint: true, keepRemoving: true, taintDelay: 30,
	}
}

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	main := sets.FlagSet("driver")
	o.AddDriver(main)
	main.BoolVar(&o.convertCaching, "convert-rw-caching-mode-for-intree-pv", o.convertCaching,
		"Attach volumes of the in-tree driver that have the caching mode ReadWrite with ReadOnly.")
	main.BoolVar(&o.onlineResize, "enable-disk-online-resize", o.onlineResize, "Resize disks that are attached.")
	main.BoolVar(&o.listVolumes, "enable-list-volumes", o.listVolumes,
		"Offer lists of volumes and snapshots. Each list is a request to Azure.")
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
	o.AddRegistration(node)
	o.AddDiagnostics(sets.FlagSet("diagnostics"))
	o.Kube.AddFlags(sets.FlagSet("kubernetes"))
	driver.AddInert(sets.FlagSet("compatibility"), inert()...)
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

// inert are the flags of the driver that this one replaces which have no effect here.
func inert() []driver.Inert {
	return []driver.Inert{
		{Name: "allow-empty-cloud-config", Initial: "true",
			Reason: "the controller needs a cloud configuration, the node service does not"},
		{Name: "attach-detach-initial-delay-ms", Initial: "1000", Reason: "requests are combined without a delay"},
		{Name: "check-disk-count-for-batching", Initial: "true", Reason: "it is always checked"},
		{Name: "check-disk-lun-collision", Initial: "true", Reason: "LUNs that VolumeAttachments show are always left free"},
		{Name: "concurrent-format-timeout", Initial: "300", Reason: "a format in progress keeps its slot"},
		{Name: "detach-operation-min-timeout-seconds", Initial: "240",
			Reason: "a detachment ends when Azure says so or the caller gives up"},
		{Name: "disable-avset-nodes", Initial: "false", Reason: "all kinds of machines are found by provider id"},
		{Name: "enable-disk-capacity-check", Initial: "false", Reason: "it is always checked"},
		{Name: "enable-list-snapshots", Initial: "false", Reason: "--enable-list-volumes decides"},
		{Name: "enable-migration-monitor", Initial: "true", Reason: "Azure shows the progress at the disk"},
		{Name: "enable-minimum-retry-after", Initial: "true", Reason: "azure.json decides"},
		{Name: "enable-otel-tracing", Initial: "false", Reason: "--tracing-config-file names the collector"},
		{Name: "enable-traffic-manager", Initial: "false", Reason: "not supported"},
		{Name: "enable-windows-host-process", Initial: "false", Reason: "on Windows the driver always runs in a host-process container"},
		{Name: "force-detach-backoff", Initial: "true",
			Reason: "disks are detached by force only from nodes with the taint node.kubernetes.io/out-of-service"},
		{Name: "get-disk-timeout-seconds", Initial: "15", Reason: "the caller's deadline decides"},
		{Name: "get-node-info-from-labels", Initial: "false", Reason: "the metadata service has them"},
		{Name: "get-nodeid-from-imds", Initial: "false", Reason: "--nodeid decides"},
		{Name: "list-vmss-with-instance-view", Initial: "false", Reason: "machines are read one by one"},
		{Name: "traffic-manager-port", Initial: "7788", Reason: "not supported"},
		{Name: "use-csiproxy-ga-interface", Initial: "true", Reason: "csi-proxy is not used"},
		{Name: "use-win-cim-api", Initial: "true", Reason: "on Windows the driver always uses PowerShell"},
		{Name: "vm-type", Initial: "", Reason: "all kinds of machines are found by provider id"},
		{Name: "vmss-cache-ttl-seconds", Initial: "-1", Reason: "machines are read when they are changed"},
		{Name: "vmss-detach-timeout-seconds", Initial: "200", Reason: "a detachment ends when Azure says so or the caller gives up"},
		{Name: "vol-stats-cache-expire-in-minutes", Initial: "10", Reason: "statistics are read from the kernel"},
		{Name: "wait-for-detach", Initial: "true", Reason: "a detachment and an attachment share a request"},
		{Name: "wait-for-detach-disk-complete", Initial: "true", Reason: "it is always waited for"},
		{Name: "wait-for-snapshot-ready", Initial: "false", Reason: "the snapshotter asks until a snapshot is ready"},
	}
}

// validate returns all problems at once.
func (o *options) validate() error {
	problems := o.Problems()
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	if err := o.NodeProblem(); err != nil && !o.stopHook {
		problems = append(problems, err)
	}
	refuse(o.taintDelay < 0, "--taint-removal-initial-delay-seconds %d: must be 0 or more", o.taintDelay)
	refuse(o.attachLimit < -1, "--volume-attach-limit %d: must be -1 or more", o.attachLimit)
	refuse(o.reserved < 0, "--reserved-data-disk-slot-num %d: must be 0 or more", o.reserved)
	refuse(o.maxFormat < 1, "--max-concurrent-format %d: must be 1 or more", o.maxFormat)
	return errors.Join(problems...)
}
