package app

import (
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi/disk"
	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
	"kaz/internal/imds"
)

// node returns the node service.
func (d *driver) node(c disk.Config) (csispec.NodeServer, error) {
	o := d.options
	metadata, err := imds.New(imds.Config{UserAgent: c.Name + "/" + c.Version})
	if err != nil {
		return nil, err
	}
	return node.New(node.Config{
		Driver: o.driver, Node: o.node, Mounts: mount.New(o.maxFormat),
		Place: func(ctx context.Context) (string, int64, error) { return d.place(ctx, c, metadata) },
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
