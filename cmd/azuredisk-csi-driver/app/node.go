package app

import (
	"context"
	"errors"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	mount "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"kaz/internal/csi/disk"
	"kaz/internal/imds"
)

// node returns the node service.
func (d *driver) node(c disk.Config) (csispec.NodeServer, error) {
	o := d.options
	metadata, err := imds.New(imds.Config{UserAgent: c.Name + "/" + c.Version})
	if err != nil {
		return nil, err
	}
	const formatTimeout = 5 * time.Minute
	return disk.NewNode(disk.NodeConfig{
		Driver: o.driver, Node: o.node,
		Mounter: mount.NewSafeFormatAndMount(mount.New(""), utilexec.New(), mount.WithMaxConcurrentFormat(o.maxFormat, formatTimeout)),
		Place:   func(ctx context.Context) (string, int64, error) { return d.place(ctx, c, metadata) },
	}), nil
}

// place returns the zone of the machine, and how many disks the driver may attach to it.
func (d *driver) place(ctx context.Context, c disk.Config, metadata *imds.Client) (zone string, most int64, err error) {
	o := d.options
	if !o.supportZone && o.attachLimit >= 0 {
		return "", disk.Slots(o.attachLimit, o.reserved), nil
	}
	machine, err := metadata.Instance(ctx)
	if err != nil {
		return "", 0, err
	}
	if machine.Compute == nil {
		return "", 0, errors.New("the metadata service does not describe the machine")
	}
	if o.supportZone && machine.Compute.Zone != "" {
		zone = machine.Compute.Location + "-" + machine.Compute.Zone
	}
	most = o.attachLimit
	if most < 0 {
		most = int64(c.Limit(ctx, machine.Compute.VMSize))
	}
	return zone, disk.Slots(most, o.reserved), nil
}
