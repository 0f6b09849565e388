package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/csi"
	"kaz/internal/fileservice"
	"kaz/internal/plan/share"
)

// The API of Azure's file service.
type (
	// Credentials are the name and key of an account.
	Credentials = fileservice.Credentials
	// Files opens the file service of an account.
	Files = fileservice.Open
	// FileService is the file service of an account.
	FileService = fileservice.Service
	// CopySource is a share or a snapshot of a share.
	CopySource = fileservice.CopySource
)

// source is the share or snapshot that a volume is a copy of.
type source struct {
	share.Volume
	time  string
	id    azure.ID
	quota int64 // GiB
}

// sourceOf returns the source of a volume, nil for an empty volume.
func (c *Controller) sourceOf(ctx context.Context, s *csispec.VolumeContentSource) (*source, error) {
	switch {
	case s.GetSnapshot() != nil:
		id := s.GetSnapshot().GetSnapshotId()
		one, err := c.oneSnapshot(ctx, id)
		if err != nil {
			return nil, err
		}
		if one == nil {
			return nil, status.Errorf(codes.NotFound, "CreateVolume: snapshot %q does not exist", id)
		}
		parsed, err := share.ParseSnapshot(id)
		if err != nil {
			return nil, status.Errorf(codes.NotFound, "CreateVolume: %v", err)
		}
		return &source{parsed.Volume, parsed.Time, c.config.Cluster.ShareID(parsed.Volume), one.GetSizeBytes() / share.Bytes(1)}, nil
	case s.GetVolume() != nil:
		v, err := c.find(ctx, s.GetVolume().GetVolumeId())
		if err != nil {
			return nil, err
		}
		return &source{v.Volume, "", v.ID, v.Share.QuotaGiB}, nil
	case s != nil:
		return nil, csi.Invalid("CreateVolume: the content source is neither a snapshot nor a volume")
	}
	return nil, nil
}

// checkSource returns an error if the source of a volume cannot be copied to it.
func (v volume) checkSource() error {
	if v.parameters.NFS() {
		return status.Errorf(codes.Unimplemented, "create share %s: the file service cannot copy NFS shares", v.share)
	}
	if v.size < v.source.quota {
		return status.Errorf(codes.OutOfRange, "create share %s: %d GiB are less than the %d GiB of %s", v.share, v.size, v.source.quota,
			v.source.Share)
	}
	return nil
}

// fill copies the source of a volume to its share. A request that is repeated goes on with the copy; success means that
// every file was copied. If the identity of the driver may not read or write files, the key of the account is used. A source in
// another account always needs its key, with which the driver signs the URLs of files.
func (c *Controller) fill(ctx context.Context, account azure.ID, v volume) error {
	withKey := v.parameters
	withKey.DataPlane = "true"
	if !byIdentity(v.parameters) || !v.source.account().Equal(account) {
		return csi.Status(c.copyFiles(ctx, account, v, withKey), "copy share %s to %s", v.source.Share, v.share)
	}
	err := c.copyFiles(ctx, account, v, v.parameters)
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Code == "AuthorizationPermissionMismatch" {
		c.config.Log.WarnContext(ctx, "the identity of the driver may not copy files: the key of the account is used", "account", account,
			"share", v.share, "error", err)
		if failed := c.copyFiles(ctx, account, v, withKey); failed != nil {
			err = fmt.Errorf("%w; with the key of the account: %w", err, failed)
		} else {
			err = nil
		}
	}
	return csi.Status(err, "copy share %s to %s", v.source.Share, v.share)
}

// account returns the storage account of a source.
func (s *source) account() azure.ID { return s.id.Parent().Parent() }

// copyFiles copies the files of a volume's source as the parameters say.
func (c *Controller) copyFiles(ctx context.Context, account azure.ID, v volume, p share.Parameters) error {
	to, err := c.data.of(ctx, account, p)
	if err != nil {
		return err
	}
	from := CopySource{Share: v.source.Share, Snapshot: v.source.time}
	if other := v.source.account(); !other.Equal(account) {
		if from.Service, err = c.data.of(ctx, other, p); err != nil {
			return err
		}
	}
	return to.Copy(ctx, from, v.share)
}

// sourceWithSecret returns the source of a volume, nil for an empty volume. The file service is asked with the key in the request's
// secret.
func (c *Controller) sourceWithSecret(ctx context.Context, credentials Credentials, v volume, s *csispec.VolumeContentSource) (
	*source, error,
) {
	var from share.Snapshot
	var err error
	switch {
	case s.GetSnapshot() != nil:
		from, err = share.ParseSnapshot(s.GetSnapshot().GetSnapshotId())
	case s.GetVolume() != nil:
		from.Volume, err = share.ParseVolume(s.GetVolume().GetVolumeId())
	case s != nil:
		return nil, csi.Invalid("CreateVolume: the content source is neither a snapshot nor a volume")
	default:
		return nil, nil
	}
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "CreateVolume: %v", err)
	}
	account := &from.Volume.Account
	if *account = cmp.Or(*account, credentials.Account); !strings.EqualFold(*account, credentials.Account) {
		return nil, csi.Invalid(
			"CreateVolume: the secret has the key of storage account %s, and the source is in storage account %s: a copy "+
				"from another account needs a class without provisioner secrets", credentials.Account, *account)
	}
	files, err := c.data.open(credentials, v.parameters.EndpointSuffix)
	if err != nil {
		return nil, csi.Status(err, "source of volume %s", v.name)
	}
	have, err := files.Read(ctx, from.Volume.Share, from.Time)
	if err != nil {
		return nil, csi.Status(err, "source of volume %s", v.name)
	}
	return &source{from.Volume, from.Time, c.config.Cluster.ShareID(from.Volume), have.QuotaGiB}, nil
}

// createWithSecret creates a share with the key in the request's secret. Nothing else is needed of Azure.
func (c *Controller) createWithSecret(ctx context.Context, r *csispec.CreateVolumeRequest, v volume, credentials Credentials) (
	*csispec.CreateVolumeResponse, error,
) {
	if named := v.parameters.Account; named != "" && named != credentials.Account {
		return nil, csi.Invalid("CreateVolume: parameter storageAccount: %q is not allowed: the secret is of another account", named)
	}
	if v.parameters.NFS() {
		return nil, csi.Invalid("CreateVolume: protocol nfs needs a class without provisioner secrets")
	}
	files, err := c.data.open(credentials, v.parameters.EndpointSuffix)
	if err == nil {
		err = c.data.create(ctx, files, credentials.Account, v, v.size)
	}
	if err != nil {
		return nil, csi.Status(err, "create share %s", v.share)
	}
	if v.source != nil {
		err := files.Copy(ctx, CopySource{Share: v.source.Share, Snapshot: v.source.time}, v.share)
		if err := csi.Status(err, "copy share %s to %s", v.source.Share, v.share); err != nil {
			return nil, unfinished(err)
		}
	}
	account := c.config.Cluster.AccountID(share.Volume{Group: v.request.Group().Group(), Account: credentials.Account})
	return c.created(r, v, account, v.size), nil
}

// snapshotByDataPlane takes a snapshot with the key in the request's secret.
func (c *Controller) snapshotByDataPlane(ctx context.Context, r *csispec.CreateSnapshotRequest, p share.SnapshotParameters,
	credentials Credentials,
) (*csispec.CreateSnapshotResponse, error) {
	v, err := share.ParseVolume(r.GetSourceVolumeId())
	if err != nil {
		return nil, csi.Invalid("CreateSnapshot: %v", err)
	}
	files, err := c.data.openFor(ctx, credentials, r.GetSourceVolumeId(), v.Account)
	if err != nil {
		return nil, csi.Status(err, "snapshot %s", r.GetName())
	}
	all, err := files.Snapshots(ctx, "")
	if err != nil {
		return nil, csi.Status(err, "snapshot %s", r.GetName())
	}
	at := ""
	if i := slices.IndexFunc(all, func(s fileservice.Snapshot) bool { return s.Name == r.GetName() }); i >= 0 {
		if all[i].Share != v.Share {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %s: a snapshot of this name exists, of share %s",
				r.GetName(), all[i].Share)
		}
		at = all[i].Time
	} else {
		metadata := map[string]string{share.Initiator: r.GetName()}
		maps.Copy(metadata, p.Metadata)
		if at, err = files.Snapshot(ctx, v.Share, metadata); err != nil {
			return nil, csi.Status(err, "snapshot %s", r.GetName())
		}
	}
	have, err := files.Read(ctx, v.Share, "")
	if err != nil {
		return nil, csi.Status(err, "snapshot %s", r.GetName())
	}
	return &csispec.CreateSnapshotResponse{Snapshot: c.shown(r.GetSourceVolumeId(), taken{time: at}, have.QuotaGiB)}, nil
}
