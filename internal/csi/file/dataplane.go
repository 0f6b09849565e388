package file

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/plan/share"
)

// dataPlane is the file services of accounts, which the driver uses for copies and where a class asks for it.
type dataPlane struct {
	config *Config
	keys   *Keys
}

// of opens the file service of an account.
func (d dataPlane) of(ctx context.Context, account azure.ID, p share.Parameters) (FileService, error) {
	host := d.config.Cluster.Host(account.Name(), p.EndpointSuffix)
	if byIdentity(p) {
		return d.config.Files(host, Credentials{Account: account.Name()})
	}
	key, err := d.keys.Of(ctx, account, p.LatestKey != nil && *p.LatestKey)
	if err != nil {
		return nil, err
	}
	return d.config.Files(host, Credentials{Account: account.Name(), Key: key})
}

// byIdentity reports whether a class asks for the data plane with the identity of the driver.
func byIdentity(p share.Parameters) bool { return strings.EqualFold(p.DataPlane, "oauth") }

// createIn creates a share in an account without Azure Resource Manager.
func (d dataPlane) createIn(ctx context.Context, account azure.ID, v volume, size int64) error {
	files, err := d.of(ctx, account, v.parameters)
	if err != nil {
		return err
	}
	return d.create(ctx, files, v, size)
}

func (d dataPlane) create(ctx context.Context, files FileService, v volume, size int64) error {
	err := files.CreateShare(ctx, v.share, v.parameters.Share(size, d.config.Name))
	if azure.KindOf(err) != azure.Exists {
		return err
	}
	have, err := files.Quota(ctx, v.share)
	if err == nil && have < size {
		return status.Errorf(codes.AlreadyExists, "create share %s: it exists with %d GiB, and %d are wanted", v.share, have, size)
	}
	return err
}

// open opens the file service of an account by its key.
func (d dataPlane) open(credentials Credentials, suffix string) (FileService, error) {
	return d.config.Files(d.config.Cluster.Host(credentials.Account, suffix), credentials)
}

// deleteShare deletes a share with the key in the request's secret.
func (d dataPlane) deleteShare(ctx context.Context, credentials Credentials, v share.Volume) error {
	credentials.Account = cmp.Or(v.Account, credentials.Account)
	files, err := d.open(credentials, "")
	if err != nil {
		return err
	}
	return files.DeleteShare(ctx, v.Share)
}

// deleteSnapshot deletes a snapshot with the key in the request's secret.
func (d dataPlane) deleteSnapshot(ctx context.Context, credentials Credentials, s share.Snapshot) error {
	credentials.Account = cmp.Or(s.Volume.Account, credentials.Account)
	files, err := d.open(credentials, "")
	if err != nil {
		return err
	}
	return files.DeleteSnapshot(ctx, s.Volume.Share, s.Time)
}
