package fileservice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/fileerror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/plan/parameter"
	planshare "kaz/internal/plan/share"
)

// Options are the options of all file services.
type Options struct {
	// Transport sends requests; nil is the SDK's.
	Transport policy.Transporter
	// Identity signs in where there is no key. It may be nil.
	Identity azcore.TokenCredential
	// Scheme is https if it is empty.
	Scheme string
}

// Open returns what opens file services with the options.
func (o Options) Open(host string, c Credentials) (Service, error) {
	scheme := o.Scheme
	if scheme == "" {
		scheme = "https"
	}
	url := scheme + "://" + host
	options := &service.ClientOptions{
		ClientOptions:     azcore.ClientOptions{Transport: o.Transport},
		FileRequestIntent: to.Ptr(share.TokenIntentBackup),
	}
	switch {
	case !c.Key.IsZero():
		key, err := service.NewSharedKeyCredential(c.Account, c.Key.Reveal())
		if err != nil {
			return nil, &azure.Error{Kind: azure.Denied, Message: "the key of storage account " + c.Account + " is not base64"}
		}
		client, err := service.NewClientWithSharedKeyCredential(url, key, options)
		return &files{client: client, account: c.Account}, err
	case o.Identity != nil:
		client, err := service.NewClient(url, o.Identity, options)
		return &files{client: client, account: c.Account}, err
	}
	return nil, &azure.Error{Kind: azure.Denied, Message: "storage account " + c.Account + ": neither a key nor an identity is known"}
}

// files is the file service of an account.
type files struct {
	client  *service.Client
	account string
}

var _ Service = (*files)(nil)

// CreateShare implements [Service].
func (f *files) CreateShare(ctx context.Context, name string, wanted storage.Share) error {
	options := &service.CreateShareOptions{
		Quota: new(int32(wanted.QuotaGiB)), Metadata: pointers(wanted.Metadata),
		ShareProvisionedIops: wanted.IOPS, ShareProvisionedBandwidthMibps: wanted.BandwidthMiBs,
	}
	if wanted.AccessTier != "" {
		options.AccessTier = new(share.AccessTier(wanted.AccessTier))
	}
	_, err := f.client.CreateShare(ctx, name, options)
	return f.known(err, "create share "+name)
}

// Read implements [Service].
func (f *files) Read(ctx context.Context, name, snapshot string) (storage.Share, error) {
	client := f.client.NewShareClient(name)
	if snapshot != "" {
		var err error
		if client, err = client.WithSnapshot(snapshot); err != nil {
			return storage.Share{}, fmt.Errorf("snapshot %s of share %s: %w", snapshot, name, err)
		}
	}
	p, err := client.GetProperties(ctx, nil)
	if err != nil {
		return storage.Share{}, f.known(err, "read share "+name)
	}
	return storage.Share{QuotaGiB: int64(value(p.Quota)), Metadata: values(p.Metadata)}, nil
}

// SetQuota implements [Service].
func (f *files) SetQuota(ctx context.Context, name string, quotaGiB int64) error {
	_, err := f.client.NewShareClient(name).SetProperties(ctx, &share.SetPropertiesOptions{Quota: new(int32(quotaGiB))})
	return f.known(err, "grow share "+name)
}

// DeleteShare implements [Service].
func (f *files) DeleteShare(ctx context.Context, name string) error {
	_, err := f.client.DeleteShare(ctx, name, nil)
	return f.known(err, "delete share "+name)
}

// CreateFolder implements [Service]. Folders that exist are no error.
func (f *files) CreateFolder(ctx context.Context, in, path string) error {
	client := f.client.NewShareClient(in)
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		folder := strings.Join(parts[:i+1], "/")
		_, err := client.NewDirectoryClient(folder).Create(ctx, nil)
		if err != nil && !fileerror.HasCode(err, fileerror.ResourceAlreadyExists) {
			return f.known(err, "create folder "+folder+" in share "+in)
		}
	}
	return nil
}

// Snapshot implements [Service]. The request is sent once: each one takes a snapshot, even if its answer is lost.
func (f *files) Snapshot(ctx context.Context, of string, metadata map[string]string) (string, error) {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	made, err := f.client.NewShareClient(of).CreateSnapshot(ctx, &share.CreateSnapshotOptions{Metadata: pointers(metadata)})
	return value(made.Snapshot), f.known(err, "snapshot of share "+of)
}

// Snapshots implements [Service].
func (f *files) Snapshots(ctx context.Context, prefix string) ([]Snapshot, error) {
	options := &service.ListSharesOptions{Include: service.ListSharesInclude{Metadata: true, Snapshots: true}}
	if prefix != "" {
		options.Prefix = &prefix
	}
	var all []Snapshot
	for pager := f.client.NewListSharesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, f.known(err, "list snapshots")
		}
		for _, s := range page.Shares {
			if s.Snapshot != nil {
				all = append(all, Snapshot{Share: value(s.Name), Time: *s.Snapshot, Name: initiator(s.Metadata)})
			}
		}
	}
	return all, nil
}

// initiator returns the name of a snapshot in its metadata. Names in metadata come back in other letter case.
func initiator(metadata map[string]*string) string {
	return parameter.Lookup(values(metadata), planshare.Initiator)
}

func values(metadata map[string]*string) map[string]string {
	all := map[string]string{}
	for name, v := range metadata {
		all[name] = value(v)
	}
	return all
}

// DeleteSnapshot implements [Service].
func (f *files) DeleteSnapshot(ctx context.Context, of, at string) error {
	_, err := f.client.NewShareClient(of).Delete(ctx, &share.DeleteOptions{ShareSnapshot: &at})
	return f.known(err, "delete snapshot "+at+" of share "+of)
}

// known returns an error of the SDK as an [azure.Error]. It has no header of the request: one has the key of a source.
func (f *files) known(err error, doing string) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if err == nil || !ok {
		return err
	}
	e := &azure.Error{
		Kind: azure.Classify(answer.StatusCode, answer.ErrorCode), Op: doing, Status: answer.StatusCode, Code: answer.ErrorCode,
		Message: fmt.Sprintf("storage account %s answers %s", f.account, http.StatusText(answer.StatusCode)),
	}
	if answer.RawResponse != nil {
		if wait, err := time.ParseDuration(answer.RawResponse.Header.Get("Retry-After") + "s"); err == nil {
			e.RetryAfter = wait
		}
	}
	return e
}

func pointers(values map[string]string) map[string]*string {
	all := map[string]*string{}
	for name, v := range values {
		all[name] = &v
	}
	return all
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
