package file

import (
	"cmp"
	"context"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/csi"
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
	return d.create(ctx, files, account.Name(), v, size)
}

func (d dataPlane) create(ctx context.Context, files FileService, account string, v volume, size int64) error {
	err := files.CreateShare(ctx, v.share, v.parameters.Share(size, d.config.Name, v.name))
	if azure.KindOf(err) != azure.Exists {
		return err
	}
	have, err := files.Read(ctx, v.share, "")
	if err != nil {
		return err
	}
	return checkExisting(ctx, d.config.Volumes, account, v, have, size)
}

// open opens the file service of an account by its key.
func (d dataPlane) open(credentials Credentials, suffix string) (FileService, error) {
	return d.config.Files(d.config.Cluster.Host(credentials.Account, suffix), credentials)
}

// openFor opens the file service of a volume's account by its key. volume is the id of the volume. Its persistent volume can
// name the suffix of the server's name.
func (d dataPlane) openFor(ctx context.Context, credentials Credentials, volume, account string) (FileService, error) {
	if account != "" && !strings.EqualFold(account, credentials.Account) {
		return nil, csi.Invalid("volume %s: the Secret of the request has the key of storage account %s, and the volume is in storage "+
			"account %s", volume, credentials.Account, account)
	}
	suffix := ""
	if d.config.Volumes != nil {
		all, err := d.config.Volumes(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if p.Handle == volume {
				suffix = cmp.Or(suffix, p.Suffix())
			}
		}
	}
	return d.open(credentials, suffix)
}

// deleteShare deletes the share of a volume with the key in the request's secret.
func (d dataPlane) deleteShare(ctx context.Context, credentials Credentials, volume string, v share.Volume) error {
	files, err := d.openFor(ctx, credentials, volume, v.Account)
	if err != nil {
		return err
	}
	return files.DeleteShare(ctx, v.Share)
}

// deleteSnapshot deletes a snapshot of a volume with the key in the request's secret.
func (d dataPlane) deleteSnapshot(ctx context.Context, credentials Credentials, volume string, s share.Snapshot) error {
	files, err := d.openFor(ctx, credentials, volume, s.Volume.Account)
	if err != nil {
		return err
	}
	return files.DeleteSnapshot(ctx, s.Volume.Share, s.Time)
}
