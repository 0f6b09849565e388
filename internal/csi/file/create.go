package file

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi"
	"kaz/internal/plan/share"
)

// volume is a volume that is being created.
type volume struct {
	name, share string
	parameters  share.Parameters
	request     share.Request
	size        int64 // GiB
	secrets     map[string]string
	source      *source // nil for an empty volume
}

// CreateVolume creates a share, and a storage account if none fits. A request that is repeated finds the share by its name.
func (c *Controller) CreateVolume(ctx context.Context, r *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
	v, err := c.requested(r)
	if err != nil {
		return nil, err
	}
	release, err := c.locks.Take("create/"+v.name, "share/"+v.share)
	if err != nil {
		return nil, err
	}
	defer release()
	if v.source, err = c.sourceOf(ctx, r.GetVolumeContentSource()); err != nil {
		return nil, err
	}
	if v.source != nil {
		if err := v.checkSource(); err != nil {
			return nil, err
		}
		v.request.Source = v.source.Account
	}
	if _, given := ReadSecret(v.secrets); given {
		return c.createWithSecret(ctx, r, v)
	}
	if err := c.needAzure(v.name); err != nil {
		return nil, err
	}
	account, size, err := c.create(ctx, v)
	if err != nil {
		return nil, err
	}
	if v.source != nil {
		if err := c.fill(ctx, account, v); err != nil {
			return nil, unfinished(err)
		}
	}
	if err := c.storeKey(ctx, account, v.parameters); err != nil {
		return nil, unfinished(err)
	}
	return c.created(r, v, account, size), nil
}

// unfinished returns an error that occurs when the share of a volume exists already. Its code makes the provisioner repeat the
// request even if the claim is deleted, and then delete the volume. With another code the share would remain.
func unfinished(err error) error {
	switch s := status.Convert(err); s.Code() {
	case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return err
	default:
		return status.Errorf(codes.Aborted, "%s (%s)", s.Message(), s.Code())
	}
}

// requested returns the volume that a request asks for.
func (c *Controller) requested(r *csispec.CreateVolumeRequest) (volume, error) {
	const request = "CreateVolume"
	var none volume
	if err := csi.Missing(request, "name", r.GetName()); err != nil {
		return none, err
	}
	if err := CheckCapabilities(request, r.GetVolumeCapabilities()...); err != nil {
		return none, err
	}
	p, err := share.ReadClass(r.GetParameters(), r.GetMutableParameters())
	if err != nil {
		return none, csi.Invalid("%s: %v", request, err)
	}
	name, err := p.NameOf(r.GetName())
	if err != nil {
		return none, csi.Invalid("%s: %v", request, err)
	}
	size, err := share.SizeGiB(p.SKU, r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return none, status.Errorf(codes.OutOfRange, "%s: %v", request, err)
	}
	v := volume{
		name: r.GetName(), share: name, parameters: p, size: size, secrets: r.GetSecrets(),
		request: share.Request{Parameters: p, Cluster: c.config.Cluster},
	}
	if err := v.request.CheckNetwork(); err != nil {
		return none, csi.Invalid("%s: %v", request, err)
	}
	return v, nil
}

// mostFull bounds the accounts that turn out to be full for one request.
const mostFull = 5

// create creates the share of a volume in an account with room, and returns the account and the size of the share.
func (c *Controller) create(ctx context.Context, v volume) (azure.ID, int64, error) {
	w := want{request: v.request, volume: v.name, share: v.share, size: v.size}
	for range mostFull {
		find := c.accounts.choose
		if v.parameters.Account != "" {
			find = c.accounts.named
		}
		p, err := find(ctx, w)
		if err != nil {
			return "", 0, csi.Status(err, "storage account of volume %s", v.name)
		}
		size, err := c.createIn(ctx, p, v)
		if err == nil {
			return p.account.ID, size, nil
		}
		p.release()
		switch {
		case !isFull(err):
			return "", 0, csi.Status(err, "create share %s", v.share)
		case v.parameters.Account != "":
			return "", 0, status.Errorf(codes.ResourceExhausted, "create share %s: storage account %s is full: %v", v.share,
				v.parameters.Account, err)
		}
		if err := c.accounts.skip(ctx, p.account, v.request.Group()); err != nil {
			return "", 0, csi.Status(err, "tag the full storage account %s", p.account.ID.Name())
		}
	}
	return "", 0, status.Errorf(codes.ResourceExhausted, "create share %s: %d storage accounts are full", v.share, mostFull)
}

// createIn creates the share of a volume in an account, or finds it there.
func (c *Controller) createIn(ctx context.Context, p place, v volume) (int64, error) {
	if v.request.Endpoint == share.EndpointPrivate {
		if err := c.accounts.connect(ctx, p.account.ID, v.request); err != nil {
			return 0, err
		}
	}
	size, err := c.sizeIn(p.account, v)
	if err != nil {
		return 0, err
	}
	if p.have > 0 { // as it was up to a minute ago
		have, err := c.sizeOf(ctx, storage.ShareOf(p.account.ID, v.share), size)
		if !azure.IsNotFound(err) {
			return have, err
		}
	}
	if v.parameters.DataPlane != "" {
		return size, c.data.createIn(ctx, p.account.ID, v, size)
	}
	return size, c.put(ctx, storage.ShareOf(p.account.ID, v.share), v.parameters.Share(size, c.config.Name))
}

// sizeIn returns the size of a volume's share in an account. The SKU of an account that the user names decides the least size.
func (c *Controller) sizeIn(a share.Account, v volume) (int64, error) {
	if v.parameters.SKU != "" || a.SKU == nil {
		return v.size, nil
	}
	size, err := share.SizeGiB(a.SKU.Name, share.Bytes(v.size), 0)
	if err != nil {
		return 0, status.Errorf(codes.OutOfRange, "create share %s: %v", v.share, err)
	}
	return size, nil
}

// put creates a share.
func (c *Controller) put(ctx context.Context, id azure.ID, properties storage.Share) error {
	body, _, err := azure.Overlay(nil, azure.Resource[storage.Share]{ID: id, Properties: properties})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true})
	if azure.KindOf(err) == azure.Exists && !isFull(err) {
		_, err = c.sizeOf(ctx, id, properties.QuotaGiB)
	}
	return err
}

// sizeOf returns the size of a share that exists. It is an error if the share is smaller than wanted.
func (c *Controller) sizeOf(ctx context.Context, id azure.ID, wanted int64) (int64, error) {
	doc, err := c.config.Azure.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	s, err := azure.Decode[storage.Share](doc)
	have := s.Properties.QuotaGiB
	if err == nil && have < wanted {
		err = status.Errorf(codes.AlreadyExists, "create share %s: it exists with %d GiB, and %d are wanted", id.Name(), have, wanted)
	}
	return have, err
}

// storeKey writes the key of an account to the Secret that nodes read, unless nodes mount without one.
func (c *Controller) storeKey(ctx context.Context, account azure.ID, p share.Parameters) error {
	if !p.StoresKey() || c.config.Secrets == nil {
		return nil
	}
	key, err := c.keys.Of(ctx, account, p.LatestKey != nil && *p.LatestKey)
	if err != nil {
		return csi.Status(err, "keys of storage account %s", account.Name())
	}
	namespace, name := secretNamespace(p), cmp.Or(p.SecretName, share.SecretName(account.Name()))
	err = c.config.Secrets.Put(ctx, namespace, name, SecretOf(Credentials{Account: account.Name(), Key: key}))
	return csi.Status(err, "secret %s/%s", namespace, name)
}

func secretNamespace(p share.Parameters) string {
	return cmp.Or(p.SecretNamespace, p.PVCNamespace, "default")
}

// created returns the answer for a volume.
func (c *Controller) created(r *csispec.CreateVolumeRequest, v volume, account azure.ID, size int64) *csispec.CreateVolumeResponse {
	p := v.parameters
	id := share.Volume{Group: c.config.Cluster.ResourceGroup, Account: account.Name(), Share: v.share, Namespace: secretNamespace(p)}
	if group := v.request.Group(); group != "" {
		id.Group = group.Group()
	}
	if p.ShareName != "" {
		id.UUID = v.name
	}
	if p.Subscription != "" && !strings.EqualFold(p.Subscription, c.config.Cluster.Subscription) {
		id.Subscription = p.Subscription
	}
	values := map[string]string{}
	for _, source := range []map[string]string{r.GetParameters(), r.GetMutableParameters()} {
		maps.Copy(values, source)
	}
	set := func(key, value string) {
		maps.DeleteFunc(values, func(k, _ string) bool { return strings.EqualFold(k, key) })
		values[key] = value
	}
	set("secretnamespace", secretNamespace(p))
	if p.NFS() {
		set("protocol", "nfs")
	}
	if p.Endpoint == share.EndpointPrivate {
		set("server", c.config.Cluster.PrivateHost(account.Name(), p.EndpointSuffix))
	}
	if p.Folder != "" {
		set("folderName", p.Expand(p.Folder))
	}
	return &csispec.CreateVolumeResponse{Volume: &csispec.Volume{
		VolumeId: id.String(), CapacityBytes: share.Bytes(size), VolumeContext: values, ContentSource: r.GetVolumeContentSource(),
	}}
}

// DeleteVolume deletes a share. It succeeds if the share does not exist, and keeps a share that another persistent volume
// has.
func (c *Controller) DeleteVolume(ctx context.Context, r *csispec.DeleteVolumeRequest) (*csispec.DeleteVolumeResponse, error) {
	if err := csi.Missing("DeleteVolume", "volume_id", r.GetVolumeId()); err != nil {
		return nil, err
	}
	done := &csispec.DeleteVolumeResponse{}
	v, err := share.ParseVolume(r.GetVolumeId())
	if err != nil {
		return done, nil // no volume of this driver
	}
	release, err := c.locks.Take(r.GetVolumeId(), "share/"+v.Share)
	if err != nil {
		return nil, err
	}
	defer release()
	other, err := c.otherUser(ctx, r.GetVolumeId(), v)
	if err != nil {
		return nil, csi.Status(err, "delete share %s", v.Share)
	}
	if other != "" {
		c.config.Log.InfoContext(ctx, "the share stays: another persistent volume has it", "share", v.Share, "volume", other)
		return done, nil
	}
	if credentials, given := ReadSecret(r.GetSecrets()); given {
		err = c.data.deleteShare(ctx, credentials, r.GetVolumeId(), v)
	} else if err = c.needAzure(r.GetVolumeId()); err == nil {
		err = c.deleteShare(ctx, c.config.Cluster.ShareID(v))
	}
	return done, c.deletion(err, v)
}

func (c *Controller) deleteShare(ctx context.Context, id azure.ID) error {
	include := "none"
	if c.config.DeleteSnapshots {
		include = "snapshots"
	}
	_, err := azure.Do(ctx, c.config.Azure, azure.Request{
		Verb: azure.Delete, ID: id, Parameters: map[string]string{"$include": include},
	})
	if err == nil {
		c.accounts.gone(id)
	}
	return err
}

// deletion returns how a deletion ended.
func (c *Controller) deletion(err error, v share.Volume) error {
	if azure.IsNotFound(err) {
		return nil
	}
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Code == "ShareHasSnapshots" {
		return status.Errorf(codes.FailedPrecondition, "delete share %s: it has snapshots: delete them first, or start the driver with "+
			"--delete-snapshots-with-volume", v.Share)
	}
	return csi.Status(err, "delete share %s", v.Share)
}

// otherUser returns the name of another persistent volume that has the share of a volume, "" for none. If two volumes are
// deleted at the same time, the volume with the first name deletes the share.
func (c *Controller) otherUser(ctx context.Context, id string, v share.Volume) (string, error) {
	if c.config.Volumes == nil {
		return "", nil
	}
	all, err := c.config.Volumes(ctx)
	if err != nil {
		return "", err
	}
	mine := ownerOf(all, id)
	for _, p := range all {
		other, err := share.ParseVolume(p.Handle)
		same := err == nil && p.Name != mine && strings.EqualFold(other.Account, v.Account) && strings.EqualFold(other.Share, v.Share)
		if same && (!p.Released || p.Name < mine) {
			return p.Name, nil
		}
	}
	return "", nil
}

// ownerOf returns the name of the persistent volume that is deleted with an id, "" for none. If several volumes have the id,
// it is the first released volume by name.
func ownerOf(all []Claimed, id string) (owner string) {
	released := false
	for _, p := range all {
		first := owner == "" || p.Released && !released || p.Released == released && p.Name < owner
		if p.Handle == id && first {
			owner, released = p.Name, p.Released
		}
	}
	return owner
}
