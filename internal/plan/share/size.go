package share

import (
	"fmt"
	"strings"

	"kaz/internal/azure/storage"
)

// premium is the SKU of a share that only names the protocol NFS.
const premium = "Premium_LRS"

// sku is what a SKU of an account means for its shares.
type sku struct {
	name string
	// least and most are the sizes of the smallest and the largest share in GiB.
	least, most int64
	// provisioned returns the performance that a share of a size has if its class names none, nil for SKUs where size alone
	// decides.
	provisioned func(gib int64) (iops, bandwidth int64)
	// kind is the kind of the account.
	kind string
	// shares is the most shares that an account can have, 0 for any number.
	shares int
}

const (
	kindFiles   = "FileStorage"
	kindGeneral = "StorageV2"

	leastStandard, leastPremium, leastV2 = 1, 100, 32
	mostSharesV2, mostSharesPremium      = 50, 1024

	largestShare    = 102400 // GiB
	largestShareV2  = 262144 // GiB
	defaultShareGiB = 100
)

// table has the SKUs.
func table() []sku {
	var all []sku
	for _, name := range []string{"Standard_LRS", "Standard_GRS", "Standard_ZRS", "Standard_GZRS", "Standard_RAGRS", "Standard_RAGZRS"} {
		all = append(all, sku{
			name: name, least: leastStandard, most: largestShare, kind: kindGeneral})
	}
	for _, name := range []string{"Premium_LRS", "Premium_ZRS"} {
		all = append(all, sku{
			name: name, least: leastPremium, most: largestShare, kind: kindFiles, shares: mostSharesPremium})
	}
	for _, name := range []string{"StandardV2_LRS", "StandardV2_ZRS", "StandardV2_GRS", "StandardV2_GZRS"} {
		all = append(all, sku{
			name: name, least: leastV2, most: largestShareV2, kind: kindFiles,
			shares: mostSharesV2, provisioned: standardV2,
		})
	}
	for _, name := range []string{"PremiumV2_LRS", "PremiumV2_ZRS"} {
		all = append(all, sku{
			name: name, least: leastV2, most: largestShareV2, kind: kindFiles,
			shares: mostSharesV2, provisioned: premiumV2,
		})
	}
	return all
}

// standardV2 is the performance that Azure suggests for a share of an account with a StandardV2 SKU.
func standardV2(gib int64) (iops, bandwidth int64) {
	return min(1000+upDiv(gib, 5), 50000), min(60+upDiv(gib, 50), 5120)
}

// premiumV2 is standardV2 for PremiumV2 SKUs.
func premiumV2(gib int64) (iops, bandwidth int64) {
	return min(3000+gib, 102400), min(100+upDiv(gib, 10), 10340)
}

func upDiv(n, by int64) int64 { return (n + by - 1) / by }

func skus() []string {
	var names []string
	for _, s := range table() {
		names = append(names, s.name)
	}
	return names
}

// skuOf returns the row of a SKU. Names that are not known have the limits of Standard_LRS.
func skuOf(name string) sku {
	all := table()
	for _, s := range all {
		if strings.EqualFold(s.name, name) {
			return s
		}
	}
	return all[0]
}

const gib = 1 << 30

// Bytes converts GiB to bytes.
func Bytes(size int64) int64 { return size * gib }

// SizeGiB returns the size of a share for a request in bytes. limit is 0 for no limit. sku is that of the account.
func SizeGiB(sku string, required, limit int64) (int64, error) {
	if required < 0 || limit < 0 {
		return 0, fmt.Errorf("capacity of %d to %d bytes: must not be negative", required, limit)
	}
	row := skuOf(sku)
	size := upDiv(required, gib)
	if size == 0 {
		size = defaultShareGiB
		if limit > 0 {
			size = min(size, max(limit/gib, 1))
		}
	}
	size = max(size, row.least)
	if limit > 0 && limit < size*gib {
		return 0, fmt.Errorf("capacity limit %d bytes: the share would have %d GiB, of which %d are the least of %s", limit, size,
			row.least, row.name)
	}
	if size > row.most {
		return 0, fmt.Errorf("capacity %d GiB: a share of %s has at most %d GiB", size, row.name, row.most)
	}
	return size, nil
}

// Share returns the properties of a new share of a volume.
func (p *Parameters) Share(sizeGiB int64, driver, volume string) storage.Share {
	s := storage.Share{
		QuotaGiB: sizeGiB, AccessTier: p.ShareTier, RootSquash: p.RootSquash, IOPS: p.IOPS, BandwidthMiBs: p.Bandwidth,
		Metadata: p.owned(driver, volume),
	}
	if p.NFS() {
		s.Protocols = "NFS"
	}
	if usual := skuOf(p.SKU).provisioned; usual != nil {
		iops, bandwidth := usual(sizeGiB)
		if s.IOPS == nil {
			s.IOPS = &iops
		}
		if s.BandwidthMiBs == nil {
			s.BandwidthMiBs = &bandwidth
		}
	}
	return s
}

// Metadata of shares and of their snapshots.
const (
	createdBy = "createdBy"
	// Initiator is the name of the snapshot, in its metadata.
	Initiator = "initiator"
)

// Grown returns the change that makes a share larger. A share with the performance that Azure suggests for its size gets that
// of its new size.
func Grown(have storage.Share, size int64) storage.Share {
	change := storage.Share{QuotaGiB: size}
	if have.IOPS == nil || have.BandwidthMiBs == nil {
		return change
	}
	for _, usual := range []func(int64) (int64, int64){standardV2, premiumV2} {
		if iops, bandwidth := usual(have.QuotaGiB); iops == *have.IOPS && bandwidth == *have.BandwidthMiBs {
			iops, bandwidth = usual(size)
			change.IOPS, change.BandwidthMiBs = &iops, &bandwidth
		}
	}
	return change
}

// Modified returns the change that a VolumeAttributesClass asks for, and whether there is any.
func Modified(have storage.Share, want Parameters) (storage.Share, bool) {
	var change storage.Share
	differs := func(want, have *int64) *int64 {
		if want == nil || have != nil && *have == *want {
			return nil
		}
		return want
	}
	change.IOPS, change.BandwidthMiBs = differs(want.IOPS, have.IOPS), differs(want.Bandwidth, have.BandwidthMiBs)
	return change, change.IOPS != nil || change.BandwidthMiBs != nil
}
