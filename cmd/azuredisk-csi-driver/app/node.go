package app

import (
	"context"
	"fmt"
	"runtime"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi/disk"
	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/mount"
	"kaz/internal/imds"
	plandisk "kaz/internal/plan/disk"
)

// node returns the node service.
func (d *driver) node(c disk.Config) (csispec.NodeServer, error) {
	o := d.options
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("the node service runs on linux only, not on %s: use --mode=controller", runtime.GOOS)
	}
	metadata, err := imds.New(imds.Config{UserAgent: c.Name + "/" + c.Version})
	if err != nil {
		return nil, err
	}
	machine := node.Machine{
		Metadata: metadata.Instance, Limits: d.limits, Zone: o.supportZone, AttachLimit: o.attachLimit, Reserved: o.reserved, Log: d.log,
	}
	config := node.Config{
		Driver: o.driver, Node: o.node, Mounts: mount.New(o.maxFormat), Place: machine.Place, Log: d.log,
	}
	if o.checkIdentity {
		config.Attached = machine.Attached
	}
	if o.tune {
		config.Speed = machine.Speed
	}
	return node.New(config), nil
}

// limits returns what a machine of a size can have, zero without a cloud configuration.
func (d *driver) limits(ctx context.Context, size string) (disks int, speed plandisk.Speed) {
	if d.sizes == nil {
		return 0, speed
	}
	return d.sizes.Limits(ctx, size)
}
