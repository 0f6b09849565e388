package storage

import (
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure"
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
	burst           burst
	// nfs says that shares can have the protocol NFS.
	nfs bool
	// tier is the only access tier, "" if users select it.
	tier string
}

// burst has how far a share of provisioned v2 goes beyond its IOPS for a while: to a multiple of them, at least to a floor.
type burst struct{ floor, most int }

const (
	burstScale   = 3
	burstSeconds = 3600
)

// of returns the IOPS of a burst, and the credits that a share collects for bursts.
func (b burst) of(iops int) (burstIOPS, credits int) {
	burstIOPS = max(iops, min(max(burstScale*iops, b.floor), b.most))
	return burstIOPS, (burstIOPS - iops) * burstSeconds
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
			bandwidth: &performance{least: 100, most: 10340, base: 100, perGiB: 10}, burst: burst{10000, 102400}, nfs: true,
			tier: "Premium"}, true
	case strings.HasPrefix(sku, "StandardV2"):
		return billing{minGiB: 32, maxGiB: hugeShare, defaultGiB: 1024, shares: manyShares, totalGiB: 16 * hugeShare,
			iops:      &performance{least: 500, most: 50000, base: 1000, perGiB: 20},
			bandwidth: &performance{least: 60, most: 5120, base: 60, perGiB: 2}, burst: burst{5000, 50000},
			tier: "TransactionOptimized"}, true
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

// decreases has the values of a share of provisioned v2 that can go down once a day, with the fields that say when they can do so next.
var decreases = map[string]string{
	quotaPath:                              "properties.nextAllowedQuotaDowngradeTime",
	"properties.provisionedIops":           "properties.nextAllowedProvisionedIopsDowngradeTime",
	"properties.provisionedBandwidthMibps": "properties.nextAllowedProvisionedBandwidthDowngradeTime",
}

// fillDecreases writes when the values of a share of provisioned v2 may go down: a day after it was made, or after they went down.
func fillDecreases(c *behaviour.Call, model billing, _ behaviour.Object) error {
	const day = 24 * time.Hour
	for path, next := range decreases {
		if model.iops == nil {
			continue
		}
		allowed := behaviour.Text(c.Old, next)
		was, _ := behaviour.Int(c.Old, path)
		if is, _ := behaviour.Int(c.Doc, path); c.Old == nil || is < was {
			allowed = c.Now().Add(day).UTC().Format(http.TimeFormat)
		}
		behaviour.Set(c.Doc, next, allowed)
	}
	return nil
}

// showBurst shows how far a share of provisioned v2 can go beyond its IOPS.
func showBurst(c *behaviour.Call, view behaviour.Object) {
	account, _ := c.Get(accountOf(azure.ID(behaviour.Text(view, "id"))))
	if model, ok := modelOf(account); ok && model.iops != nil {
		iops, _ := behaviour.Int(view, "properties.provisionedIops")
		burstIOPS, credits := model.burst.of(iops)
		behaviour.Set(view, "properties.includedBurstIops", burstIOPS)
		behaviour.Set(view, "properties.maxBurstCreditsForIops", credits)
	}
}

// fileUsages is the view of a file service that says what its shares use and may use. Only accounts of provisioned v2 have it.
func fileUsages(c *behaviour.Call) (any, error) {
	account, _ := c.Get(accountOf(c.ID))
	model, ok := modelOf(account)
	if !ok || model.iops == nil {
		return behaviour.Object{"value": []any{}}, nil
	}
	limits := func(least bool) behaviour.Object {
		all := behaviour.Object{"maxProvisionedStorageGiB": model.maxGiB, "maxProvisionedIOPS": model.iops.most,
			"maxProvisionedBandwidthMiBPerSec": model.bandwidth.most}
		if least {
			all["minProvisionedStorageGiB"], all["minProvisionedIOPS"] = model.minGiB, model.iops.least
			all["minProvisionedBandwidthMiBPerSec"] = model.bandwidth.least
		}
		return all
	}
	whole := limits(false)
	whole["maxFileShares"], whole["maxProvisionedStorageGiB"] = model.shares, model.totalGiB
	var live []behaviour.Object
	for _, share := range c.List(c.ID, ShareType) {
		live = append(live, share)
	}
	const hundred = 100.0
	return behaviour.Object{"value": []any{behaviour.Object{
		"id": string(c.ID) + "/usages/default", "name": "default", "type": ShareType[:len(ShareType)-len("shares")] + "usages",
		"properties": behaviour.Object{
			"storageAccountLimits": whole, "fileShareLimits": limits(true),
			"fileShareRecommendations": behaviour.Object{
				"baseIOPS": model.iops.base, "ioScalar": float64(model.iops.perGiB) / hundred,
				"baseBandwidthMiBPerSec": model.bandwidth.base, "bandwidthScalar": float64(model.bandwidth.perGiB) / hundred},
			"burstingConstants": behaviour.Object{"burstFloorIOPS": model.burst.floor, "burstIOScalar": burstScale,
				"burstTimeframeSeconds": burstSeconds},
			"storageAccountUsage": behaviour.Object{"liveShares": used(live),
				"softDeletedShares": used(behaviour.Objects(c.Old, deletedField))},
		}}}}, nil
}

// used sums up what shares use.
func used(shares []behaviour.Object) behaviour.Object {
	sum := func(path string) (all int) {
		for _, share := range shares {
			n, _ := behaviour.Int(share, path)
			all += n
		}
		return all
	}
	return behaviour.Object{"fileShareCount": len(shares), "provisionedStorageGiB": sum(quotaPath),
		"provisionedIOPS": sum("properties.provisionedIops"), "provisionedBandwidthMiBPerSec": sum("properties.provisionedBandwidthMibps")}
}
