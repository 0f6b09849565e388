package probe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/machinesize"
	"kaz/internal/plan/rights"
	"kaz/internal/verify/bench"
)

func apiProbes() []Probe {
	const area = "api"
	skus := []string{"Microsoft.Compute/skus/read"}
	return []Probe{
		{
			Name: "api-versions", Area: area, Minutes: 1, Rights: []string{"Microsoft.Resources/subscriptions/providers/read"},
			Run:   apiVersions,
			Tries: "read which API versions the resource providers have, and compare those that kaz uses",
		},
		{
			Name: "date", Area: area, Minutes: 1, Run: date,
			Tries: "read the group and an absent resource; want a Date that is at most 5 minutes from the clock of this machine",
		},
		{
			Name: "absent-twice", Area: area, Minutes: 1, Rights: all(routesType), Run: absentTwice,
			Tries: "create resources and read each at once, alone and in its list; want that none is absent",
		},
		{
			Name: "sizes-nvme", Area: area, Minutes: 1, Rights: skus, Run: sizesNVMe,
			Tries: "compare the disk controllers of all sizes of the location with what kaz takes from their names",
		},
		{
			Name: "sizes-cache", Area: area, Minutes: 1, Rights: skus, Run: sizesCache,
			Tries: "compare the cache of all sizes of the location with kaz's table for ephemeral OS disks",
		},
		{
			Name: "sizes-network", Area: area, Minutes: 1, Rights: skus, Run: sizesNetwork,
			Tries: "compare accelerated networking of all sizes of the location with kaz's table",
		},
	}
}

// usedTypes are the types that kaz writes, by their rights, and some more.
func usedTypes() []string {
	features := slices.Concat(rights.Features(), rights.ClusterFeatures(), rights.DiskFeatures(), rights.FileFeatures(),
		rights.GatewayFeatures(), rights.NodeGroupFeatures(), rights.DNSFeatures())
	used := []string{ // of the cluster engine, which has no table of rights
		deploymentType, specType, specType + "/versions", vaultType, vaultType + "/secrets", accountType, machineType, gatewayType,
		"Microsoft.ManagedIdentity/userAssignedIdentities", "Microsoft.Authorization/roleAssignments",
	}
	for _, need := range rights.Needed(features...) {
		fullType, writes := strings.CutSuffix(need.Action, "/write")
		if writes && !strings.HasPrefix(fullType, "Microsoft.Resources/subscriptions") {
			used = append(used, fullType)
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

func apiVersions(ctx context.Context, b *bench.Bench) {
	offered := map[string][]string{}
	var asked []string
	compared := 0
	for _, fullType := range usedTypes() {
		namespace, _, _ := strings.Cut(fullType, "/")
		if !slices.Contains(asked, namespace) {
			asked = append(asked, namespace)
			offer(b.Get(ctx, azure.SubscriptionID(b.Subscription)+azure.ID("/providers/"+namespace)), namespace, offered)
		}
		versions, listed := offered[strings.ToLower(fullType)]
		if !listed {
			continue
		}
		compared++
		if version := b.Versions(fullType); !slices.Contains(versions, version) {
			b.Agree(false, "%s has no API version %s", fullType, version)
		}
	}
	const few = 20
	b.Agree(compared > few, "%d types that kaz writes were compared", compared)
}

// offer notes the versions of the types of a provider.
func offer(doc azure.Document, namespace string, offered map[string][]string) {
	types, _ := bench.At(doc, "resourceTypes").(list)
	for _, x := range types {
		t, _ := x.(object)
		name, _ := t["resourceType"].(string)
		versions, _ := t["apiVersions"].(list)
		key := strings.ToLower(namespace + "/" + name)
		for _, v := range versions {
			text, _ := v.(string)
			offered[key] = append(offered[key], text)
		}
	}
}

func date(ctx context.Context, b *bench.Bench) {
	mark := b.Mark()
	b.Get(ctx, b.GroupID())
	b.Look(ctx, b.ID(routesType, "absent"))
	for _, e := range b.Since(mark) {
		at, err := http.ParseTime(e.AnswerHeader.Get("Date"))
		const most = 5 * time.Minute
		off := time.Since(at).Abs()
		b.Agree(err == nil && off < most, "an answer %d has the Date %q", e.Status, e.AnswerHeader.Get("Date"))
	}
}

func absentTwice(ctx context.Context, b *bench.Bench) {
	const count = 5
	absent, unlisted := 0, 0
	for i := range count {
		id := b.ID(routesType, "t"+strconv.Itoa(i))
		made := b.Try(ctx, azure.Put, id, at(b, object{})) // it reads the resource at its end
		if made.Failed && made.Status >= http.StatusMultipleChoices {
			b.Fail(fmt.Errorf("PUT of %s: %s", kind(id), made))
		}
		if made.Failed || b.Look(ctx, id).Failed {
			absent++
		}
		listed := slices.ContainsFunc(b.List(ctx, b.GroupID(), routesType), func(d azure.Document) bool { return d.ID().Equal(id) })
		if !listed {
			unlisted++
		}
	}
	b.Agree(absent == 0 && unlisted == 0, "of %d resources, %d were absent and %d were not in the list after their creation", count,
		absent, unlisted)
}

// size is a size of machines as the catalogue of a location has it.
type size struct {
	name         string
	capabilities map[string]string
}

func sizes(ctx context.Context, b *bench.Bench) (all []size) {
	docs := b.Filtered(ctx, azure.SubscriptionID(b.Subscription), "Microsoft.Compute/skus", "location eq '"+b.Location+"'")
	for _, d := range docs {
		if bench.Text(d, "resourceType") != "virtualMachines" {
			continue
		}
		s := size{bench.Text(d, "name"), map[string]string{}}
		capabilities, _ := bench.At(d, "capabilities").(list)
		for _, x := range capabilities {
			c, _ := x.(object)
			name, _ := c["name"].(string)
			s.capabilities[name], _ = c["value"].(string)
		}
		all = append(all, s)
	}
	return all
}

// compare notes the sizes for which a capability differs, and how many were compared.
func compare(b *bench.Bench, all []size, what string, differs func(size) (known bool, difference string)) {
	compared := 0
	var wrong []string
	for _, s := range all {
		known, difference := differs(s)
		if known {
			compared++
		}
		if difference != "" {
			wrong = append(wrong, s.name+": "+difference)
		}
	}
	for _, line := range wrong {
		b.Agree(false, "%s", line)
	}
	b.Agree(compared > 0, "%s: %d sizes were compared, %d differ", what, compared, len(wrong))
}

func sizesNVMe(ctx context.Context, b *bench.Bench) {
	compare(b, sizes(ctx, b), "disk controllers", func(s size) (bool, string) {
		controllers := s.capabilities["DiskControllerTypes"]
		if controllers == "" {
			return false, ""
		}
		only := strings.EqualFold(controllers, "NVMe")
		if only != machinesize.NVMeOnly(s.name) {
			return true, "DiskControllerTypes " + controllers
		}
		return true, ""
	})
}

func sizesCache(ctx context.Context, b *bench.Bench) {
	compare(b, sizes(ctx, b), "caches", func(s size) (bool, string) {
		bytes, err := strconv.ParseInt(s.capabilities["CachedDiskBytes"], 10, 64)
		table, known := machinesize.Find(s.name)
		if err != nil || !known {
			return false, ""
		}
		const gib = 1 << 30
		if int(bytes/gib) != table.CacheGiB {
			return true, "CachedDiskBytes are " + strconv.Itoa(int(bytes/gib)) + " GiB; the table has " + strconv.Itoa(table.CacheGiB)
		}
		return true, ""
	})
}

func sizesNetwork(ctx context.Context, b *bench.Bench) {
	compare(b, sizes(ctx, b), "accelerated networking", func(s size) (bool, string) {
		accelerated := s.capabilities["AcceleratedNetworkingEnabled"]
		table, known := machinesize.Find(s.name)
		if accelerated == "" || !known {
			return false, ""
		}
		if strings.EqualFold(accelerated, "true") != table.Accelerated {
			return true, "AcceleratedNetworkingEnabled is " + accelerated
		}
		return true, ""
	})
}
