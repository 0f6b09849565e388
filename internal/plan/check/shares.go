package check

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/plan/claim"
	"kaz/internal/plan/share"
)

// volumeShare is a share that a persistent volume names.
type volumeShare struct {
	volume        *v1.PersistentVolume
	account, name string // the account's id is ID
	ID            azure.ID
	fault         string // why the share is not known
}

// volumeShares returns the shares of the persistent volumes of Azure Files.
func (f *Facts) volumeShares() (all []volumeShare) {
	home := share.Cluster{Subscription: f.Group.Subscription(), ResourceGroup: f.Group.Group()}
	for i := range f.Volumes {
		v := &f.Volumes[i]
		if v.Spec.CSI == nil || v.Spec.CSI.Driver != claim.Shares {
			continue
		}
		c := share.Claimed{Name: v.Name, Handle: v.Spec.CSI.VolumeHandle, Attributes: v.Spec.CSI.VolumeAttributes}
		if of := v.Spec.ClaimRef; of != nil {
			c.ClaimNamespace, c.ClaimName = of.Namespace, of.Name
		}
		one := volumeShare{volume: v}
		named, err := c.Volume()
		switch {
		case err != nil:
			one.fault = err.Error()
		case named.Account == "":
			one.fault = "it names no storage account: a Secret does, which is not read"
		default:
			one.account, one.name, one.ID = named.Account, named.Share, home.AccountID(named)
		}
		all = append(all, one)
	}
	return all
}

// AccountIDs returns the storage accounts that persistent volumes name.
func (f *Facts) AccountIDs() (ids []azure.ID) {
	for _, s := range f.volumeShares() {
		if s.ID != "" && !slices.ContainsFunc(ids, s.ID.Equal) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func shares(f *Facts, l *list) {
	accounts, used := map[string]Account{}, map[string]bool{}
	for _, a := range f.Accounts {
		accounts[a.ID.Key()] = a
	}
	for _, s := range f.volumeShares() {
		describe := "kubectl describe pv " + s.volume.Name
		if s.fault != "" {
			l.add(s.volume.Name, Unknown, s.fault, describe)
			continue
		}
		used[storage.ShareOf(s.ID, s.name).Key()] = true
		state, why, mend := s.compare(accounts[s.ID.Key()], describe)
		if why != "" {
			l.add(s.volume.Name, state, why, mend)
		}
	}
	for _, a := range f.Accounts {
		for _, one := range a.Shares {
			if owner := share.OwnerVolume(one.Properties.Metadata); owner != "" && !used[one.ID.Key()] && !one.Properties.Deleted {
				l.add(a.ID.Name()+"/"+one.Name, Warning, "the share of volume "+owner+" has no PersistentVolume in this cluster; another "+
					"cluster may use it: "+string(one.ID), "az storage share-rm show --ids "+string(one.ID))
			}
		}
	}
}

// compare compares a share with that of its account in Azure.
func (s volumeShare) compare(a Account, describe string) (State, string, string) {
	switch {
	case a.Absent:
		return Problem, "its storage account is not in Azure: " + string(s.ID), describe
	case a.Fault != "":
		return Unknown, "its storage account cannot be read: " + a.Fault, "az storage account show --ids " + string(s.ID)
	}
	i := slices.IndexFunc(a.Shares, func(one azure.Resource[storage.Share]) bool { return strings.EqualFold(one.Name, s.name) })
	if i < 0 || a.Shares[i].Properties.Deleted {
		return Problem, "its share is not in Azure: " + string(storage.ShareOf(s.ID, s.name)),
			"az storage share-rm restore, if the account keeps deleted shares, or " + describe
	}
	const gib = 1 << 30
	want := s.volume.Spec.Capacity[v1.ResourceStorage]
	if has := a.Shares[i].Properties.QuotaGiB; has*gib < want.Value() {
		return Warning, fmt.Sprintf("its share has %d GiB, and the volume %s", has, want.String()),
			"az storage share-rm update --quota GIB --ids " + string(storage.ShareOf(s.ID, s.name))
	}
	return OK, "", ""
}
