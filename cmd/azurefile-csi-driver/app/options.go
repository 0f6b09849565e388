package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"kaz/cmd/internal/driver"
	"kaz/internal/csi/file"
	"kaz/internal/plan/share"
)

// options are the values of the flags.
type options struct {
	driver.Options

	emptyConfig     bool
	deleteSnapshots bool

	mountPermissions  string
	groupChange       string
	mountGroup, stats bool
	inlineKeys        bool
	secretAuthz       string
	defaults          share.Defaults
}

// What --inline-volume-secret-authz can be.
const (
	authzOff     = "off"
	authzWarn    = "warn"
	authzEnforce = "enforce"
)

func newOptions() *options {
	return &options{
		Options: driver.New(file.DefaultName), emptyConfig: true, mountPermissions: share.UsualPermissions, mountGroup: true, stats: true,
		secretAuthz: authzOff, defaults: share.Defaults{NoShareSocket: true, NoReservedPort: true, AttributeCache: true},
	}
}

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	main := sets.FlagSet("driver")
	o.AddDriver(main)
	main.BoolVar(&o.emptyConfig, "allow-empty-cloud-config", o.emptyConfig,
		"Serve without a cloud configuration. Then all volumes need their key in a Secret.")
	main.BoolVar(&o.deleteSnapshots, "delete-snapshots-with-volume", o.deleteSnapshots,
		"Delete the snapshots of a volume with the volume. Otherwise a volume with snapshots is not deleted.")
	o.addNode(sets.FlagSet("node"))
	o.AddDiagnostics(sets.FlagSet("diagnostics"))
	o.Kube.AddFlags(sets.FlagSet("kubernetes"))
	driver.AddInert(sets.FlagSet("compatibility"), inert()...)
	return sets
}

func (o *options) addNode(node *pflag.FlagSet) {
	node.StringVar(&o.mountPermissions, "mount-permissions", o.mountPermissions,
		"Mode of the root of NFS volumes that name none, in octal digits. 0 leaves the mode of the server.")
	node.StringVar(&o.groupChange, "fsgroup-change-policy", o.groupChange,
		"When the files of an NFS volume get the pod's group: None, OnRootMismatch or Always. Empty means OnRootMismatch.")
	node.BoolVar(&o.mountGroup, "enable-volume-mount-group", o.mountGroup, "Give volumes the group of the pod.")
	node.BoolVar(&o.stats, "enable-get-volume-stats", o.stats, "Report how full volumes are.")
	node.BoolVar(&o.inlineKeys, "allow-inline-volume-key-access-with-identity", o.inlineKeys,
		"Get the keys of inline volumes from Azure with the identity of the node.")
	node.StringVar(&o.secretAuthz, "inline-volume-secret-authz", o.secretAuthz,
		"Whether the service account of a pod must be allowed to read the Secret of an inline volume: off, warn or enforce.")
	node.BoolVar(&o.defaults.CloseTimeout, "append-closetimeo-option", o.defaults.CloseTimeout, "Mount by SMB with closetimeo=0.")
	node.BoolVar(&o.defaults.NoShareSocket, "append-nosharesock-option", o.defaults.NoShareSocket, "Mount by SMB with nosharesock.")
	node.BoolVar(&o.defaults.NoReservedPort, "append-noresvport-option", o.defaults.NoReservedPort, "Mount by NFS with noresvport.")
	node.BoolVar(&o.defaults.AttributeCache, "append-actimeo-option", o.defaults.AttributeCache, "Mount by NFS with actimeo=30.")
	o.AddRegistration(node)
}

// inert are the flags of the driver that this one replaces which have no effect here.
func inert() []driver.Inert {
	const (
		noVHD     = "file systems in VHD files are not supported"
		noProxy   = "encryption in transit for NFS is not supported"
		noCopy    = "shares are copied by Azure, without azcopy"
		noWindows = "Windows is not supported yet"
	)
	return []driver.Inert{
		{Name: "append-mount-error-help-link", Initial: "true", Reason: "errors say what to do"},
		{Name: "azurefile-proxy-endpoint", Initial: "", Reason: noProxy},
		{Name: "enable-azurefile-proxy", Initial: "false", Reason: noProxy},
		{Name: "enable-kata-cc-mount", Initial: "false", Reason: "confidential containers are not supported"},
		{Name: "enable-vhd", Initial: "true", Reason: noVHD},
		{Name: "enable-windows-host-process", Initial: "false", Reason: noWindows},
		{Name: "max-procs", Initial: "2", Reason: "the limits of the container decide"},
		{Name: "print-volume-stats-call-logs", Initial: "false", Reason: "-v decides"},
		{Name: "remove-smb-mount-on-windows", Initial: "true", Reason: noWindows},
		{Name: "sas-token-expiration-minutes", Initial: "1440", Reason: noCopy},
		{Name: "skip-matching-tag-cache-expire-in-minutes", Initial: "30", Reason: "the tag skip-matching stays until it is removed"},
		{Name: "use-aznfs-for-nfs-mounts", Initial: "false", Reason: noProxy},
		{Name: "use-win-cim-api", Initial: "true", Reason: noWindows},
		{Name: "vol-stats-cache-expire-in-minutes", Initial: "10", Reason: "statistics are read from the kernel"},
		{Name: "wait-for-azcopy-timeout-minutes", Initial: "19", Reason: noCopy},
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
	oneOf := func(flag, value string, allowed ...string) {
		refuse(!slices.Contains(allowed, value), "--%s %q: must be one of %s", flag, value, strings.Join(allowed, ", "))
	}
	oneOf("inline-volume-secret-authz", o.secretAuthz, authzOff, authzWarn, authzEnforce)
	if o.groupChange != "" {
		oneOf("fsgroup-change-policy", o.groupChange, share.GroupNever, share.GroupOnMismatch, share.GroupAlways)
	}
	_, err := o.permissions()
	refuse(err != nil, "--mount-permissions %q: want a mode in octal digits, such as 0777", o.mountPermissions)
	return errors.Join(append(problems, o.NodeProblem())...)
}

func (o *options) permissions() (uint32, error) {
	mode, err := strconv.ParseUint(o.mountPermissions, 8, 12)
	return uint32(mode), err
}
