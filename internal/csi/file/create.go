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
	credentials, given, err := requestSecret("CreateVolume", v.secrets)
	if err != nil {
		return nil, err
	}
	if given {
		v.source, err = c.sourceWithSecret(ctx, credentials, v, r.GetVolumeContentSource())
	} else {
		v.source, err = c.sourceOf(ctx, r.GetVolumeContentSource())
	}
	if err != nil {
		return nil, err
	}
	if v.source != nil {
		if err := v.checkSource(); err != nil {
			return nil, err
		}
		v.request.Source = v.source.Account
	}
	if given {
		return c.createWithSecret(ctx, r, v, credentials)
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
		err = c.checkSecret(ctx, p.account.ID, v.parameters)
		var size int64
		if err == nil {
			size, err = c.createIn(ctx, p, v)
		}
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
	size, err := sizeIn(p.account, v)
	if err != nil {
		return 0, err
	}
	id := storage.ShareOf(p.account.ID, v.share)
	if p.have > 0 || v.parameters.ShareName != "" { // p.have is as it was up to a minute ago; other volumes can have the name
		have, err := c.adopt(ctx, id, v, size)
		if !azure.IsNotFound(err) {
			return have, err
		}
	}
	if v.parameters.DataPlane != "" {
		return size, c.data.createIn(ctx, p.account.ID, v, size)
	}
	return size, c.put(ctx, id, v, size)
}

// sizeIn returns the size of a volume's share in an account. The SKU of an account that the user names decides the least size.
func sizeIn(a share.Account, v volume) (int64, error) {
	if v.parameters.SKU != "" || a.SKU == nil {
		return v.size, nil
	}
	size, err := share.SizeGiB(a.SKU.Name, share.Bytes(v.size), 0)
	if err != nil {
		return 0, status.Errorf(codes.OutOfRange, "create share %s: %v", v.share, err)
	}
	return size, nil
}

// put creates the share of a volume.
func (c *Controller) put(ctx context.Context, id azure.ID, v volume, size int64) error {
	properties := v.parameters.Share(size, c.config.Name, v.name)
	body, _, err := azure.Overlay(nil, azure.Resource[storage.Share]{ID: id, Properties: properties})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true})
	if azure.KindOf(err) == azure.Exists && !isFull(err) {
		_, err = c.adopt(ctx, id, v, size)
	}
	return err
}

// adopt returns the size of a share that exists. It is an error if it belongs to another volume, or is smaller than wanted.
func (c *Controller) adopt(ctx context.Context, id azure.ID, v volume, wanted int64) (int64, error) {
	doc, err := c.config.Azure.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	s, err := azure.Decode[storage.Share](doc)
	if err != nil {
		return 0, err
	}
	return s.Properties.QuotaGiB, checkExisting(ctx, c.config.Volumes, id.Parent().Parent().Name(), v, s.Properties, wanted)
}

// checkExisting returns an error if a share that exists belongs to another volume, or is smaller than wanted.
func checkExisting(ctx context.Context, volumes Volumes, account string, v volume, have storage.Share, wanted int64) error {
	var others []Claimed
	if volumes != nil && v.parameters.ShareName != "" {
		var err error
		if others, err = volumes(ctx); err != nil {
			return csi.Status(err, "create share %s: list persistent volumes", v.share)
		}
	}
	if err := v.parameters.CheckOwner(v.name, account, v.share, have.Metadata, others); err != nil {
		return status.Errorf(codes.AlreadyExists, "create share %s: storage account %s has a share of this name: %v", v.share, account, err)
	}
	if have.QuotaGiB < wanted {
		return status.Errorf(codes.AlreadyExists, "create share %s: it exists with %d GiB, and %d are wanted",
			v.share, have.QuotaGiB, wanted)
	}
	return nil
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
	namespace, name := secretNamespace(p), secretName(account, p)
	err = c.config.Secrets.Put(ctx, namespace, name, Credentials{Account: account.Name(), Key: key})
	return csi.Status(err, "secret %s/%s", namespace, name)
}

// checkSecret returns an error if the key of an account cannot be written to its Secret. It is called before the share is created:
// afterwards the provisioner would repeat the request for ever.
func (c *Controller) checkSecret(ctx context.Context, account azure.ID, p share.Parameters) error {
	if !p.StoresKey() || c.config.Secrets == nil {
		return nil
	}
	namespace, name := secretNamespace(p), secretName(account, p)
	return csi.Status(c.config.Secrets.Check(ctx, namespace, name, account.Name()), "secret %s/%s", namespace, name)
}

func secretName(account azure.ID, p share.Parameters) string {
	return cmp.Or(p.SecretName, share.SecretName(account.Name()))
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
	credentials, given, err := requestSecret("DeleteVolume", r.GetSecrets())
	if err != nil {
		return nil, err
	}
	if given && (v.Account == "" || v.Translated) {
		v.Account = credentials.Account
	}
	other, err := c.checkUse(ctx, r.GetVolumeId(), v)
	if err != nil {
		return nil, err
	}
	if other != "" {
		c.config.Log.InfoContext(ctx, "the share stays: another persistent volume has it", "share", v.Share, "volume", other)
		return done, nil
	}
	if given {
		err = c.data.deleteShare(ctx, credentials, r.GetVolumeId(), v)
	} else if err = c.needAzure(r.GetVolumeId()); err == nil {
		err = c.deleteShare(ctx, c.config.Cluster.ShareID(v))
	}
	return done, deletion(err, v)
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
func deletion(err error, v share.Volume) error {
	if azure.IsNotFound(err) {
		return nil
	}
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Code == "ShareHasSnapshots" {
		return status.Errorf(codes.FailedPrecondition, "delete share %s: it has snapshots: delete them first, or start the driver with "+
			"--delete-snapshots-with-volume", v.Share)
	}
	return csi.Status(err, "delete share %s", v.Share)
}

// checkUse returns the name of another persistent volume that has the share of a volume, "" for none. It is an error if a persistent
// volume may have the share and does not tell.
func (c *Controller) checkUse(ctx context.Context, id string, v share.Volume) (string, error) {
	if c.config.Volumes == nil {
		return "", nil
	}
	all, err := c.config.Volumes(ctx)
	if err != nil {
		return "", csi.Status(err, "delete share %s: list persistent volumes", v.Share)
	}
	if err := share.OwnerOf(all, id).CheckDelete(v); err != nil {
		return "", status.Errorf(codes.FailedPrecondition, "delete share %s: %v", v.Share, err)
	}
	other, use := share.OtherUser(all, id, v.Account, v.Share)
	if use == share.MayUse {
		return "", status.Errorf(codes.FailedPrecondition, "delete share %s: persistent volume %s may use it: its volume id %q and its "+
			"attributes do not name a share of a storage account; the share stays while that volume exists",
			v.Share, other.Name, other.Handle)
	}
	return other.Name, nil
}
