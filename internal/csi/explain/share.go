package explain

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/share"
)

// ShareFacts are what Azure says about a share and its account.
type ShareFacts struct {
	Volume       share.Volume
	ID           azure.ID
	Account      azure.Document // nil if it was not read
	AccountError error          // of reading the account
	Share        azure.Document // nil if it was not read
	ShareError   error          // of reading the share
}

// Share is the share of a volume in Azure.
type Share struct {
	ID       string `json:"id"`
	Protocol string `json:"protocol,omitempty"`
	SKU      string `json:"sku,omitempty"`
	QuotaGiB int64  `json:"quotaGiB,omitempty"`
	// Reached says from where nodes reach the account.
	Reached string `json:"reached,omitempty"`
}

// readShare reads the share of a volume and its account. What cannot be read is a fact.
func (f *Facts) readShare(ctx context.Context, from azure.Reader, home share.Cluster) error {
	source := f.Volume.Spec.CSI
	claimed := share.Claimed{Name: f.Volume.Name, Handle: source.VolumeHandle, Attributes: source.VolumeAttributes}
	if of := f.Volume.Spec.ClaimRef; of != nil {
		claimed.ClaimNamespace, claimed.ClaimName = of.Namespace, of.Name
	}
	v, err := claimed.Volume()
	if err != nil {
		return fmt.Errorf("persistentvolume %s: %w", f.Volume.Name, err)
	}
	if v.Account == "" {
		return fmt.Errorf("persistentvolume %s: volume id %q names no storage account: it is in the Secret of the volume",
			f.Volume.Name, source.VolumeHandle)
	}
	s := &ShareFacts{Volume: v, ID: home.ShareID(v)}
	f.Share = s
	if s.Account, s.AccountError = from.Get(ctx, home.AccountID(v)); s.AccountError != nil {
		return ctx.Err()
	}
	s.Share, s.ShareError = from.Get(ctx, s.ID)
	return ctx.Err()
}

// ofFiles reports whether the volume is of the driver of Azure Files.
func (f *Facts) ofFiles() bool {
	return f.Volume.Spec.CSI != nil && f.Volume.Spec.CSI.Driver == claim.Shares
}

// share says what Azure says about the share.
func (d *decision) share() error {
	s := d.Share
	d.out.Share = &Share{ID: string(s.ID)}
	if s.AccountError != nil {
		d.missing("storage account "+s.Volume.Account, s.AccountError)
		return nil
	}
	account, err := azure.Decode[storage.Account](s.Account)
	if err != nil {
		return fmt.Errorf("read storage account: %w", err)
	}
	if account.SKU != nil {
		d.out.Share.SKU = account.SKU.Name
	}
	d.reached(account.Properties)
	if state := account.Properties.ProvisioningState; state != "" && state != "Succeeded" {
		d.wait("Azure to end an operation on storage account %s (provisioning state %s)", s.Volume.Account, state)
	}
	if s.ShareError != nil {
		d.missing("the share", s.ShareError)
		return nil
	}
	have, err := azure.Decode[storage.Share](s.Share)
	if err != nil {
		return fmt.Errorf("read share: %w", err)
	}
	// A share that names no protocol is one for SMB.
	d.out.Share.QuotaGiB, d.out.Share.Protocol = have.Properties.QuotaGiB, cmp.Or(strings.ToUpper(have.Properties.Protocols), "SMB")
	if d.out.Share.Protocol == "SMB" && no(account.Properties.AllowSharedKeyAccess) && !d.byIdentity() {
		d.problem("storage account %s refuses keys, and the volume is mounted with one", s.Volume.Account)
	}
	d.shareResize()
	return nil
}

// byIdentity reports whether nodes mount the volume with an identity.
func (d *decision) byIdentity() bool {
	for key, value := range d.Volume.Spec.CSI.VolumeAttributes {
		for _, one := range []string{"mountWithManagedIdentity", "mountWithWorkloadIdentityToken", "mountWithOAuthToken"} {
			if strings.EqualFold(key, one) && strings.EqualFold(value, "true") {
				return true
			}
		}
	}
	return false
}

// missing says that something does not exist, or cannot be read.
func (d *decision) missing(what string, err error) {
	if azure.IsNotFound(err) {
		d.problem("%s does not exist in Azure: the data of the volume is lost, or in another account", what)
		return
	}
	d.problem("%s could not be read in Azure", what)
	d.say("Azure", err.Error())
}

func no(value *bool) bool { return value != nil && !*value }

// reached says from where nodes reach an account.
func (d *decision) reached(a storage.Account) {
	endpoints := len(a.Connections)
	switch {
	case strings.EqualFold(a.PublicNetworkAccess, "Disabled") && endpoints == 0:
		d.out.Share.Reached = "from nowhere"
		d.problem("storage account %s refuses public access and has no private endpoint: no node can mount the volume",
			d.Share.Volume.Account)
	case endpoints > 0:
		d.out.Share.Reached = fmt.Sprintf("by %d private endpoint(s)", endpoints)
	case a.NetworkRules != nil && strings.EqualFold(a.NetworkRules.DefaultAction, "Deny"):
		d.out.Share.Reached = fmt.Sprintf("from %d subnet(s)", len(a.NetworkRules.Subnets))
	default:
		d.out.Share.Reached = "from all networks"
	}
}

// shareResize says what a claim that wants more waits for. A share has no file system that must grow.
func (d *decision) shareResize() {
	want, have := d.Claim.Spec.Resources.Requests[corev1.ResourceStorage], d.Claim.Status.Capacity[corev1.ResourceStorage]
	if d.Claim.Status.Phase != corev1.ClaimBound || want.Cmp(have) <= 0 {
		return
	}
	if share.Bytes(d.out.Share.QuotaGiB) < want.Value() {
		d.wait("the csi-resizer to make the share larger: it has %d GiB", d.out.Share.QuotaGiB)
	} else {
		d.wait("the csi-resizer to report that the share is large enough")
	}
}

// scheduling says which pods have no node yet.
func (d *decision) scheduling() {
	for _, p := range d.Pods {
		if p.Spec.NodeName == "" {
			d.wait("the scheduler to choose a node for pod %s", p.Name)
		}
	}
}

func (s Share) write(line func(name, format string, args ...any)) {
	line("share", "%s", s.ID)
	for _, text := range s.lines() {
		line("", "%s", text)
	}
}

// lines are the properties of a share that Azure shows.
func (s Share) lines() []string {
	switch {
	case s.SKU == "":
		return nil
	case s.Protocol == "":
		return []string{fmt.Sprintf("account with %s, reached %s", s.SKU, s.Reached)}
	}
	return []string{fmt.Sprintf("%s, %d GiB, %s, reached %s", s.Protocol, s.QuotaGiB, s.SKU, s.Reached)}
}
