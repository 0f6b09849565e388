package storage

import (
	"strings"

	"kaz/internal/localazure/behaviour"
)

// billing has the limits of an account's billing model, which the SKU selects, as Azure documents them in its scale targets.
type billing struct {
	// minGiB and maxGiB are the limits of a share's quota, defaultGiB is the quota of a share without one.
	minGiB, maxGiB, defaultGiB int
	// shares and totalGiB are the limits of an account, 0 for none.
	shares, totalGiB int
	// iops and bandwidth (MiB/s) are the limits of provisioned v2, nil for others.
	iops, bandwidth *performance
	// nfs says that shares can have the protocol NFS.
	nfs bool
	// tier is the only access tier, "" if users select it.
	tier string
}

// performance has the limits of a performance value: a share's own and, as the largest value, the limit of all shares of an account.
type performance struct {
	least, most int
	// base and perGiB, in hundredths, make the value of a share that names none.
	base, perGiB int
}

func (p performance) recommended(gib int) int {
	const hundred = 100
	return min(p.base+(gib*p.perGiB+hundred-1)/hundred, p.most)
}

const (
	smallShare = 5120
	largeShare = 102400
	hugeShare  = 262144
	// manyShares is the limit of shares of provisioned v2, and mostShares the limit of provisioned v1.
	manyShares = 50
	mostShares = 1024
)

// modelOf returns the billing model of an account's shares, false for an account without a file service.
func modelOf(account behaviour.Object) (billing, bool) {
	kind, sku := behaviour.Text(account, "kind"), behaviour.Text(account, "sku.name")
	switch {
	case strings.HasPrefix(sku, "PremiumV2"):
		return billing{minGiB: 32, maxGiB: hugeShare, defaultGiB: 1024, shares: manyShares, totalGiB: hugeShare,
			iops:      &performance{least: 3000, most: 102400, base: 3000, perGiB: 100},
			bandwidth: &performance{least: 100, most: 10340, base: 100, perGiB: 10}, nfs: true, tier: "Premium"}, true
	case strings.HasPrefix(sku, "StandardV2"):
		return billing{minGiB: 32, maxGiB: hugeShare, defaultGiB: 1024, shares: manyShares, totalGiB: 16 * hugeShare,
			iops:      &performance{least: 500, most: 50000, base: 1000, perGiB: 20},
			bandwidth: &performance{least: 60, most: 5120, base: 60, perGiB: 2}, tier: "TransactionOptimized"}, true
	case kind == "FileStorage":
		return billing{minGiB: 100, maxGiB: largeShare, defaultGiB: largeShare, shares: mostShares, totalGiB: largeShare, nfs: true,
			tier: "Premium"}, true
	case kind == "BlobStorage", kind == "BlockBlobStorage", strings.HasPrefix(sku, "Premium"):
		return billing{}, false
	case behaviour.Text(account, "properties.largeFileSharesState") == "Enabled":
		return billing{minGiB: 1, maxGiB: largeShare, defaultGiB: largeShare}, true
	}
	return billing{minGiB: 1, maxGiB: smallShare, defaultGiB: smallShare}, true
}

const quotaPath = "properties.shareQuota"

func fillQuota(c *behaviour.Call, model billing, _ behaviour.Object) error {
	if was := behaviour.At(c.Old, quotaPath); was != nil {
		behaviour.Default(c.Doc, quotaPath, was)
	}
	behaviour.Default(c.Doc, quotaPath, model.defaultGiB)
	quota, whole := behaviour.Int(c.Doc, quotaPath)
	if !whole || quota < model.minGiB || quota > model.maxGiB {
		return model.refuseQuota(behaviour.At(c.Doc, quotaPath))
	}
	behaviour.Set(c.Doc, quotaPath, quota)
	return model.checkTotals(c)
}

func (m billing) refuseQuota(quota any) error {
	if m.iops != nil {
		return behaviour.Invalid("FileShareProvisionedStorageInvalid",
			"The file share provisioned storage is invalid: shareQuota is %v GiB, %d to %d are allowed.", quota, m.minGiB, m.maxGiB)
	}
	return behaviour.Invalid("InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format: shareQuota is %v GiB, %d to %d are allowed.", quota,
		m.minGiB, m.maxGiB)
}

// checkTotals refuses a share that exceeds the limits of its account. Deleted shares count until their retention ends.
func (m billing) checkTotals(c *behaviour.Call) error {
	shares, total := m.others(c, quotaPath)
	if c.Old == nil && m.shares > 0 && shares >= m.shares {
		return behaviour.Conflict("TotalSharesCountExceedsAccountLimit",
			"The total number of shares exceeds the limit of the account: it has %d shares, %d are allowed.", shares, m.shares)
	}
	quota, _ := behaviour.Int(c.Doc, quotaPath)
	if was, _ := behaviour.Int(c.Old, quotaPath); m.totalGiB > 0 && quota > was && total+quota > m.totalGiB {
		return behaviour.Conflict("TotalSharesProvisionedCapacityExceedsAccountLimit",
			"The total provisioned capacity of the shares has exceeded the account maximum capacity limit: %d GiB and %d GiB of other "+
				"shares, %d GiB are allowed.", quota, total, m.totalGiB)
	}
	return nil
}

// others returns the number of the other shares of the account and the sum of their values at a path.
func (m billing) others(c *behaviour.Call, path string) (shares, sum int) {
	add := func(doc behaviour.Object) {
		shares++
		n, _ := behaviour.Int(doc, path)
		sum += n
	}
	service := c.ID.Parent()
	for id, doc := range c.List(service, c.Type.Name) {
		if !id.Equal(c.ID) {
			add(doc)
		}
	}
	files, _ := c.Get(service)
	for _, doc := range behaviour.Objects(files, deletedField) {
		if m.totalGiB > 0 && remaining(files, doc, c.Now()) >= 0 {
			add(doc)
		}
	}
	return shares, sum
}

// fillPerformance fills in what is provisioned. Other models than provisioned v2 ignore the values.
func fillPerformance(c *behaviour.Call, model billing, _ behaviour.Object) error {
	for _, value := range []struct {
		path, name, what string
		limits           *performance
	}{
		{"properties.provisionedIops", "Iops", "IOPS", model.iops},
		{"properties.provisionedBandwidthMibps", "Bandwidth", "MiB/s", model.bandwidth},
	} {
		if value.limits == nil {
			behaviour.Remove(c.Doc, value.path)
			continue
		}
		if was := behaviour.At(c.Old, value.path); was != nil {
			behaviour.Default(c.Doc, value.path, was)
		}
		quota, _ := behaviour.Int(c.Doc, quotaPath)
		behaviour.Default(c.Doc, value.path, value.limits.recommended(quota))
		given, whole := behaviour.Int(c.Doc, value.path)
		if !whole || given < value.limits.least || given > value.limits.most {
			return behaviour.Invalid("FileShareProvisioned"+value.name+"Invalid",
				"The file share provisioned %s is invalid: %v %s, %d to %d are allowed.", strings.ToLower(value.name),
				behaviour.At(c.Doc, value.path), value.what, value.limits.least, value.limits.most)
		}
		behaviour.Set(c.Doc, value.path, given)
		was, _ := behaviour.Int(c.Old, value.path)
		if _, sum := model.others(c, value.path); given > was && sum+given > value.limits.most {
			return behaviour.Conflict("TotalSharesProvisioned"+value.name+"ExceedsAccountLimit",
				"The total provisioned %s of the shares has exceeded the account limit: %d %s and %d of other shares, %d are allowed.",
				strings.ToLower(value.name), given, value.what, sum, value.limits.most)
		}
	}
	return nil
}
