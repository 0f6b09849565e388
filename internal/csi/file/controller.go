package file

import (
	"context"
	"log/slog"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi"
	"kaz/internal/plan/share"
)

// Controller is the controller service.
type Controller struct {
	csispec.UnimplementedControllerServer
	config    Config
	locks     csi.Locks
	accounts  *accounts
	keys      *Keys
	data      dataPlane
	snapshots *snapshots
}

var _ csispec.ControllerServer = (*Controller)(nil)

// NewController returns the controller service of a driver.
func NewController(c Config) *Controller {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	keys := NewKeys(c.Azure)
	data := dataPlane{&c, keys}
	return &Controller{
		config: c, accounts: newAccounts(c.Azure, c.Log), keys: keys, data: data, snapshots: newSnapshots(&c, data),
	}
}

// ControllerGetCapabilities returns what the controller can do.
func (c *Controller) ControllerGetCapabilities(context.Context, *csispec.ControllerGetCapabilitiesRequest) (
	*csispec.ControllerGetCapabilitiesResponse, error,
) {
	answer := &csispec.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csispec.ControllerServiceCapability_RPC_Type{
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csispec.ControllerServiceCapability_RPC_CLONE_VOLUME, csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		csispec.ControllerServiceCapability_RPC_LIST_VOLUMES, csispec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csispec.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	} {
		answer.Capabilities = append(answer.Capabilities, &csispec.ControllerServiceCapability{
			Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return answer, nil
}

// CheckCapabilities returns an error with the code InvalidArgument if a share cannot have one of the capabilities.
func CheckCapabilities(request string, capabilities ...*csispec.VolumeCapability) error {
	if len(capabilities) == 0 {
		return csi.Invalid("%s: the volume capability is missing", request)
	}
	for _, capability := range capabilities {
		mode := capability.GetAccessMode().GetMode()
		_, known := csi.DiskModes()[mode]
		switch {
		case capability == nil:
			return csi.Invalid("%s: the volume capability is missing", request)
		case capability.GetBlock() != nil:
			return csi.Invalid("%s: a share cannot be a block volume: use volumeMode Filesystem", request)
		case capability.GetMount() == nil:
			return csi.Invalid("%s: want the access type mount", request)
		case !known:
			return csi.Invalid("%s: access mode %s is not supported", request, mode)
		}
	}
	return nil
}

// existing is a share of a volume.
type existing struct {
	share.Volume
	ID    azure.ID
	Share storage.Share
}

// find reads the share of a volume. An id that names no share gives an error with the code NotFound.
func (c *Controller) find(ctx context.Context, volume string) (existing, error) {
	v, err := share.ParseVolume(volume)
	if err != nil || v.Account == "" {
		return existing{}, status.Errorf(codes.NotFound, "volume %q: there is no such share: want RESOURCEGROUP#ACCOUNT#SHARE", volume)
	}
	if err := c.needAzure(volume); err != nil {
		return existing{}, err
	}
	id := c.config.Cluster.ShareID(v)
	doc, err := c.config.Azure.Get(ctx, id)
	if err != nil {
		return existing{}, csi.Status(err, "volume %s", volume)
	}
	s, err := azure.Decode[storage.Share](doc)
	return existing{v, id, s.Properties}, csi.Status(err, "volume %s", volume)
}

// needAzure returns an error if the driver has no cloud configuration.
func (c *Controller) needAzure(volume string) error {
	if c.config.Azure == nil {
		return status.Errorf(codes.FailedPrecondition, "volume %s: the driver has no cloud configuration, and the request no "+
			"secret", volume)
	}
	return nil
}

// ValidateVolumeCapabilities reports whether a volume has all the capabilities.
func (c *Controller) ValidateVolumeCapabilities(ctx context.Context, r *csispec.ValidateVolumeCapabilitiesRequest) (
	*csispec.ValidateVolumeCapabilitiesResponse, error,
) {
	if err := csi.Missing("ValidateVolumeCapabilities", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, csi.Invalid("ValidateVolumeCapabilities: volume_capabilities is missing")
	}
	v, err := c.find(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := CheckCapabilities("ValidateVolumeCapabilities", r.GetVolumeCapabilities()...); err != nil {
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	if v.Disk != "" {
		return &csispec.ValidateVolumeCapabilitiesResponse{Message: "file systems in a VHD file are not supported"}, nil
	}
	return &csispec.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csispec.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()},
	}, nil
}

// ControllerExpandVolume makes a share larger. Nodes see it without doing anything.
func (c *Controller) ControllerExpandVolume(ctx context.Context, r *csispec.ControllerExpandVolumeRequest) (
	*csispec.ControllerExpandVolumeResponse, error,
) {
	if err := csi.Missing("ControllerExpandVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	required := r.GetCapacityRange().GetRequiredBytes()
	if required <= 0 {
		return nil, csi.Invalid("ControllerExpandVolume: capacity_range.required_bytes is missing")
	}
	v, err := share.ParseVolume(r.GetVolumeId())
	switch {
	case err != nil:
		return nil, csi.Invalid("ControllerExpandVolume: %v", err)
	case v.Disk != "":
		return nil, status.Errorf(codes.Unimplemented, "ControllerExpandVolume: a file system in a VHD file cannot grow")
	}
	release, err := c.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := c.find(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	account, err := c.accounts.account(ctx, have.ID.Parent().Parent())
	if err != nil {
		return nil, csi.Status(err, "storage account of volume %s", r.GetVolumeId())
	}
	sku := ""
	if account.SKU != nil {
		sku = account.SKU.Name
	}
	size, err := share.SizeGiB(sku, required, r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, status.Errorf(codes.OutOfRange, "volume %s: %v", r.GetVolumeId(), err)
	}
	if have.Share.QuotaGiB <= 0 { // a size computed from it could be smaller than the share
		return nil, status.Errorf(codes.Unavailable, "volume %s: Azure reports no size of share %s", r.GetVolumeId(), have.ID.Name())
	}
	if have.Share.QuotaGiB >= size {
		size = have.Share.QuotaGiB
	} else if err := c.grow(ctx, have, size, r.GetSecrets()); err != nil {
		return nil, err
	}
	return &csispec.ControllerExpandVolumeResponse{CapacityBytes: share.Bytes(size)}, nil
}

func (c *Controller) grow(ctx context.Context, v existing, size int64, _ map[string]string) error {
	after, err := c.patch(ctx, v.ID, share.Grown(v.Share, size))
	switch {
	case isFull(err):
		return status.Errorf(codes.ResourceExhausted, "grow share %s: its storage account is full: %v", v.ID.Name(), err)
	case err == nil && after.QuotaGiB < size:
		return status.Errorf(codes.Aborted, "grow share %s to %d GiB: Azure reports success, and the share has %d GiB", v.ID.Name(), size,
			after.QuotaGiB)
	}
	return csi.Status(err, "grow share %s to %d GiB", v.ID.Name(), size)
}

// patch changes a share and returns how it is then.
func (c *Controller) patch(ctx context.Context, id azure.ID, change storage.Share) (storage.Share, error) {
	body, _, err := azure.Overlay(nil, azure.Resource[storage.Share]{ID: id, Properties: change})
	if err != nil {
		return storage.Share{}, err
	}
	doc, err := azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Patch, ID: id, Body: body})
	if err != nil {
		return storage.Share{}, err
	}
	s, err := azure.Decode[storage.Share](doc)
	return s.Properties, err
}

// ControllerModifyVolume changes the performance of a share.
func (c *Controller) ControllerModifyVolume(ctx context.Context, r *csispec.ControllerModifyVolumeRequest) (
	*csispec.ControllerModifyVolumeResponse, error,
) {
	if err := csi.Missing("ControllerModifyVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	want, err := share.ReadMutable(r.GetMutableParameters())
	if err != nil {
		return nil, csi.Invalid("ControllerModifyVolume: %v", err)
	}
	release, err := c.locks.Take(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	have, err := c.find(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	change, needed := share.Modified(have.Share, want)
	if !needed {
		return &csispec.ControllerModifyVolumeResponse{}, nil
	}
	after, err := c.patch(ctx, have.ID, change)
	if _, still := share.Modified(after, want); err == nil && still {
		err = status.Errorf(codes.Aborted, "change share %s: Azure reports success, and the share is not changed", have.ID.Name())
	}
	return &csispec.ControllerModifyVolumeResponse{}, csi.Status(err, "change share %s", have.ID.Name())
}
