package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"kaz/internal/azure"
	"kaz/internal/azure/metadata"
	plandisk "kaz/internal/plan/disk"
)

// Machine is what the node service knows of its machine from Azure's metadata service.
type Machine struct {
	// Metadata reads the metadata of the machine.
	Metadata func(ctx context.Context) (metadata.Instance, error)
	// Limits returns what a machine of a size can have, zero fields for what is not known.
	Limits func(ctx context.Context, size string) (disks int, speed plandisk.Speed)
	// Zone makes the node report its zone.
	Zone bool
	// AttachLimit is the number of disks that can be attached, less than 0 for that of the machine's size. Reserved is how
	// many of them other programs need.
	AttachLimit, Reserved int64
	Log                   *slog.Logger
}

// Place returns the zone of the machine and the number of disks that can be attached to it. The zone is REGION-NUMBER or "".
// The number is 0 if it is not known.
func (m Machine) Place(ctx context.Context) (zone string, most int64, err error) {
	if !m.Zone && m.AttachLimit >= 0 {
		return "", Slots(m.AttachLimit, m.Reserved), nil
	}
	compute, err := m.compute(ctx)
	if err != nil {
		return "", 0, err
	}
	if m.Zone && compute.Zone != "" {
		zone = compute.Location + "-" + compute.Zone
	}
	most = m.AttachLimit
	if most < 0 {
		disks, _ := m.Limits(ctx, compute.VMSize)
		if most = int64(disks); most == 0 {
			m.Log.Warn("the number of disks of the machine's size is not known; the scheduler has no limit", "size", compute.VMSize)
		}
	}
	return zone, Slots(most, m.Reserved), nil
}

func (m Machine) compute(ctx context.Context) (*metadata.Compute, error) {
	machine, err := m.Metadata(ctx)
	if err == nil && machine.Compute == nil {
		err = errors.New("the metadata service does not describe the machine")
	}
	return machine.Compute, err
}

// Attached returns the disks that the metadata service shows at the machine, by LUN.
func (m Machine) Attached(ctx context.Context) (map[int]azure.ID, error) {
	compute, err := m.compute(ctx)
	if err != nil {
		return nil, err
	}
	disks := map[int]azure.ID{}
	for _, d := range compute.StorageProfile.DataDisks {
		lun, err := strconv.Atoi(d.LUN)
		if err != nil {
			return nil, fmt.Errorf("the metadata service shows a disk with LUN %q", d.LUN)
		}
		if id := d.ManagedDisk.ID; id != "" {
			disks[lun] = azure.ID(id)
		}
	}
	return disks, nil
}

// Speed returns how fast all disks of the machine together can be, zero if that is not known.
func (m Machine) Speed(ctx context.Context) plandisk.Speed {
	compute, err := m.compute(ctx)
	if err != nil {
		m.Log.Warn("the size of the machine is not known; it does not limit the settings of disks", "error", err)
		return plandisk.Speed{}
	}
	_, speed := m.Limits(ctx, compute.VMSize)
	return speed
}

// Slots returns how many disks the driver may attach to a machine that can have most disks. Other programs need reserved of
// these disks. The result is 0 only if most is not known, because the scheduler takes 0 as no limit. If all disks are
// reserved, the result is 1.
func Slots(most, reserved int64) int64 {
	if most <= 0 {
		return 0
	}
	return max(most-reserved, 1)
}
