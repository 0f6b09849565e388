package nodegroup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// Size is a size of machines, as the resource SKUs API of Microsoft.Compute describes it for one region.
type Size struct {
	Name, Family string
	VCPUs        int64
	MemoryBytes  int64
	GPUs         int64
	Arm          bool
	DataDisks    int64
	// LocalBytes is the size of the cache or local disk that an ephemeral OS disk can be on, whichever is larger.
	LocalBytes int64
	// Unavailable says why the subscription cannot use the size in the region, "" if it can. UnavailableZones are the zones
	// in which the subscription cannot use it.
	Unavailable      string
	UnavailableZones []string
}

// ReadSize reads an entry of the resource SKUs API. Entries that are not machine sizes are left out.
func ReadSize(doc azure.Document) (Size, bool, error) {
	var sku struct {
		ResourceType, Name, Family string
		Capabilities               []struct{ Name, Value string }
		Restrictions               []struct {
			Type, ReasonCode string
			RestrictionInfo  struct{ Zones []string }
		}
	}
	if err := json.Unmarshal(doc, &sku); err != nil {
		return Size{}, false, fmt.Errorf("read a resource SKU: %w", err)
	}
	if !strings.EqualFold(sku.ResourceType, "virtualMachines") {
		return Size{}, false, nil
	}
	s := Size{Name: sku.Name, Family: sku.Family}
	for _, c := range sku.Capabilities {
		s.read(c.Name, c.Value)
	}
	for _, r := range sku.Restrictions {
		if strings.EqualFold(r.Type, "Location") {
			s.Unavailable = r.ReasonCode
		} else {
			s.UnavailableZones = append(s.UnavailableZones, r.RestrictionInfo.Zones...)
		}
	}
	return s, true, nil
}

// read reads one capability. A value that is no number counts as absent.
func (s *Size) read(name, value string) {
	const gib, mib = 1 << 30, 1 << 20
	number, _ := strconv.ParseFloat(value, 64)
	switch strings.ToLower(name) {
	case "vcpus":
		s.VCPUs = max(s.VCPUs, int64(number))
	case "memorygb":
		s.MemoryBytes = int64(number * gib)
	case "gpus":
		s.GPUs = int64(number)
	case "maxdatadiskcount":
		s.DataDisks = int64(number)
	case "cachediskbytes", "cacheddiskbytes":
		s.LocalBytes = max(s.LocalBytes, int64(number))
	case "maxresourcevolumemb":
		s.LocalBytes = max(s.LocalBytes, int64(number)*mib)
	case "cpuarchitecturetype":
		s.Arm = strings.EqualFold(value, "Arm64")
	}
}

// Usages is how much of its quotas a subscription uses in a region.
type Usages map[string]Usage

// Usage is the use of one quota.
type Usage struct{ Used, Limit int64 }

// Exceeded reports whether more do not fit. A negative limit means that there is none.
func (u Usage) Exceeded(more int64) bool { return u.Limit >= 0 && u.Used+more > u.Limit }

// ReadUsages reads the list of usages of a region.
func ReadUsages(docs []azure.Document) (Usages, error) {
	all := Usages{}
	for _, doc := range docs {
		var u struct {
			CurrentValue, Limit int64
			Name                struct{ Value string }
		}
		if err := json.Unmarshal(doc, &u); err != nil {
			return nil, fmt.Errorf("read a usage: %w", err)
		}
		all[strings.ToLower(u.Name.Value)] = Usage{u.CurrentValue, u.Limit}
	}
	return all, nil
}

// Room returns how many of n machines of a size the quotas have room for, and why not more. A quota that Azure does not
// list has room.
func (u Usages) Room(size Size, spot bool, n int) (int, *Failure) {
	fits, full := n, ""
	for _, name := range quotas(size, spot) {
		quota, listed := u[strings.ToLower(name)]
		if !listed || size.VCPUs == 0 {
			continue
		}
		if room := int(max(quota.Limit-quota.Used, 0) / size.VCPUs); room < fits {
			fits = room
			full = fmt.Sprintf("the quota %s is %d vCPUs, of which %d are used; a machine of the size %s needs %d",
				name, quota.Limit, quota.Used, size.Name, size.VCPUs)
		}
	}
	if fits == n {
		return n, nil
	}
	return fits, &Failure{Code: "QuotaExceeded", Message: full, Class: OutOfResources}
}

// quotas returns the quotas that count the cores of a size.
func quotas(size Size, spot bool) []string {
	if spot {
		return []string{"lowPriorityCores"}
	}
	return []string{size.Family, "cores"}
}

// With returns the usages with n more machines of a size.
func (u Usages) With(size Size, spot bool, n int) Usages {
	more := maps.Clone(u)
	for _, name := range quotas(size, spot) {
		if quota, listed := more[strings.ToLower(name)]; listed {
			quota.Used += size.VCPUs * int64(n)
			more[strings.ToLower(name)] = quota
		}
	}
	return more
}

// Offered returns why a subscription cannot have machines of the size in a region with zones, nil if it can.
func (s Size) Offered(zones []string) *Failure {
	reason := s.Unavailable
	offered := func(zone string) bool { return !slices.Contains(s.UnavailableZones, zone) }
	if reason == "" && len(zones) > 0 && !slices.ContainsFunc(zones, offered) {
		reason = "restricted in the zones " + strings.Join(zones, ", ")
	}
	if reason == "" {
		return nil
	}
	return &Failure{
		Code: "SkuNotAvailable", Class: OutOfResources,
		Message: fmt.Sprintf("the subscription cannot have machines of the size %s here: %s", s.Name, reason),
	}
}
