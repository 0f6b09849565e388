package nodegroup

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PriceItem is an entry of Azure's retail prices: what a meter costs in a region.
// Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
type PriceItem struct {
	Size          string  `json:"armSkuName"`
	Region        string  `json:"armRegionName"`
	Product       string  `json:"productName"`
	SKU           string  `json:"skuName"`
	Type          string  `json:"type"`
	UnitOfMeasure string  `json:"unitOfMeasure"`
	RetailPrice   float64 `json:"retailPrice"`
}

// Offer is one way to have a machine.
type Offer struct{ Windows, Spot bool }

// Rates are what one machine of a size costs in an hour, by the way to have it. All rates have one currency.
type Rates map[Offer]float64

// ReadRates returns the rates of a size in a region. Reservations, the outdated low priority, and units other than the hour are
// left out. Of several meters of one offer the cheapest counts.
func ReadRates(items []PriceItem, region, size string) Rates {
	rates := Rates{}
	for _, i := range items {
		if !strings.EqualFold(i.Size, size) || !strings.EqualFold(i.Region, region) || i.RetailPrice <= 0 ||
			!strings.EqualFold(i.Type, "Consumption") || !strings.EqualFold(i.UnitOfMeasure, "1 Hour") ||
			strings.HasSuffix(i.SKU, " Low Priority") || strings.Contains(i.Product, "CloudServices") {
			continue
		}
		offer := Offer{Windows: strings.HasSuffix(i.Product, " Windows"), Spot: strings.HasSuffix(i.SKU, " Spot")}
		if have, known := rates[offer]; !known || i.RetailPrice < have {
			rates[offer] = i.RetailPrice
		}
	}
	return rates
}

// Price returns what a machine costs in a time, and whether that is known.
func (r Rates) Price(o Offer, during time.Duration) (float64, bool) {
	hourly, known := r[o]
	return hourly * during.Hours(), known
}

// Machine is what a node's labels say of its machine.
func Machine(labels map[string]string) (size string, o Offer) {
	first := func(keys ...string) string {
		for _, key := range keys {
			if v := labels[key]; v != "" {
				return v
			}
		}
		return ""
	}
	return first(corev1.LabelInstanceTypeStable, corev1.LabelInstanceType), Offer{
		Windows: strings.EqualFold(first(corev1.LabelOSStable, "beta.kubernetes.io/os"), "windows"),
		Spot:    strings.EqualFold(labels[spotLabel], "spot"),
	}
}

// Offer returns the way in which the group has its machines.
func (g Group) Offer() Offer {
	return Offer{Windows: windows(g.set.Properties.VirtualMachineProfile), Spot: g.Spot}
}

// gibPerCPU is how many GiB of memory count as much as one vCPU. Azure has no prices of resources, so it is a convention.
// The price of a pod is the same in all options of an expander. The convention only changes how much unused resources count
// in the choice.
const gibPerCPU = 8

// Units are what resources cost in an hour.
type Units struct {
	CPU, GiB float64
	// Devices are the prices of GPUs and other devices, by their resource.
	Devices map[corev1.ResourceName]float64
}

// Priced is a size with the price of one machine in an hour.
type Priced struct {
	Size
	Hourly float64
}

// UnitsOf returns what resources cost at the cheapest of the sizes that have them. ok is false if no size has a price.
func UnitsOf(sizes []Priced) (u Units, ok bool) {
	priced := slices.DeleteFunc(slices.Clone(sizes), func(s Priced) bool { return s.Hourly <= 0 || s.weight() == 0 })
	plain := slices.DeleteFunc(slices.Clone(priced), func(s Priced) bool { return deviceOf(s.Size) != "" })
	u.Devices = map[corev1.ResourceName]float64{}
	switch {
	case len(plain) > 0:
		u.GiB = perGiB(plain)
	case len(priced) > 0: // nothing tells the devices from the rest of the machine
		u.GiB = perGiB(priced)
	}
	u.CPU = u.GiB * gibPerCPU
	if len(plain) == 0 {
		return u, len(priced) > 0
	}
	for _, s := range priced {
		device := deviceOf(s.Size)
		if device == "" {
			continue
		}
		each := max(s.Hourly-u.GiB*s.weight(), 0) / float64(max(s.GPUs, 1))
		if have, known := u.Devices[device]; !known || each < have {
			u.Devices[device] = each
		}
	}
	return u, true
}

// weight returns the cores and the memory of a size, in GiB.
func (s Size) weight() float64 { return float64(s.VCPUs)*gibPerCPU + float64(s.MemoryBytes)/(1<<30) }

// perGiB returns the price of a GiB at the size that has the cheapest GiB.
func perGiB(sizes []Priced) float64 {
	least := math.Inf(1)
	for _, s := range sizes {
		least = min(least, s.Hourly/s.weight())
	}
	return least
}

// Price returns what the resources that a pod requests cost in a time.
func (u Units) Price(pod *corev1.Pod, during time.Duration) float64 {
	hourly := 0.0
	for name, quantity := range requests(pod) {
		switch n := quantity.AsApproximateFloat64(); name {
		case corev1.ResourceCPU:
			hourly += u.CPU * n
		case corev1.ResourceMemory:
			hourly += u.GiB * n / (1 << 30)
		default:
			hourly += u.Devices[name] * n
		}
	}
	return hourly * during.Hours()
}

// requests returns what the scheduler reserves for a pod: for each resource the largest step of the pod, and the overhead.
// The last step is the containers with the init containers that go on beside them. Each step before is an init container
// with those that go on beside it.
func requests(pod *corev1.Pod) corev1.ResourceList {
	steady, most := corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(steady, c.Resources.Requests)
			raise(most, steady)
			continue
		}
		step := steady.DeepCopy()
		add(step, c.Resources.Requests)
		raise(most, step)
	}
	for _, c := range pod.Spec.Containers {
		add(steady, c.Resources.Requests)
	}
	raise(most, steady)
	add(most, pod.Spec.Overhead)
	return most
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name].DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

// raise makes each quantity at least as large as another.
func raise(to, other corev1.ResourceList) {
	for name, quantity := range other {
		if have, ok := to[name]; !ok || quantity.Cmp(have) > 0 {
			to[name] = quantity.DeepCopy()
		}
	}
}
