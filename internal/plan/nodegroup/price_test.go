package nodegroup_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/plan/nodegroup"
)

// TestReadRates checks which of Azure's prices count.
func TestReadRates(t *testing.T) {
	const plain, hour, onDemand = "Virtual Machines Dsv5 Series", "1 Hour", "Consumption"
	item := func(change func(*nodegroup.PriceItem)) nodegroup.PriceItem {
		i := nodegroup.PriceItem{
			Size: "Standard_D2s_v5", Region: "westeurope", Product: plain, SKU: "D2s v5", Type: onDemand, UnitOfMeasure: hour, RetailPrice: .01,
		}
		change(&i)
		return i
	}
	items := []nodegroup.PriceItem{
		item(func(i *nodegroup.PriceItem) { i.RetailPrice = .10 }),
		item(func(i *nodegroup.PriceItem) { i.RetailPrice, i.SKU = .02, "D2s v5 Spot" }),
		item(func(i *nodegroup.PriceItem) { i.RetailPrice, i.Product = .20, plain+" Windows" }),
		// These do not count, and are cheaper.
		item(func(i *nodegroup.PriceItem) { i.SKU = "D2s v5 Low Priority" }),
		item(func(i *nodegroup.PriceItem) { i.Type = "Reservation" }),
		item(func(i *nodegroup.PriceItem) { i.Type = "DevTestConsumption" }),
		item(func(i *nodegroup.PriceItem) { i.UnitOfMeasure = "1 Month" }),
		item(func(i *nodegroup.PriceItem) { i.Product = "Dsv5 Series CloudServices" }),
		item(func(i *nodegroup.PriceItem) { i.Region = "northeurope" }),
		item(func(i *nodegroup.PriceItem) { i.Size = "Standard_D4s_v5" }),
		item(func(i *nodegroup.PriceItem) { i.RetailPrice = 0 }),
	}
	rates := nodegroup.ReadRates(items, "westeurope", "standard_d2s_V5")
	for offer, want := range map[nodegroup.Offer]float64{{}: .10, {Spot: true}: .02, {Windows: true}: .20} {
		if price, known := rates.Price(offer, 2*time.Hour); !known || price != 2*want {
			t.Errorf("%+v for two hours: %v, %v, want %v", offer, price, known, 2*want)
		}
	}
	if price, known := rates.Price(nodegroup.Offer{Windows: true, Spot: true}, time.Hour); known {
		t.Errorf("an offer that is not there costs %v", price)
	}
}

// TestUnits checks that what pods cost is in proportion to what they request, with GPUs at their own price.
func TestUnits(t *testing.T) {
	const gib = 1 << 30
	plain := nodegroup.Priced{Size: nodegroup.Size{Name: "Standard_D2s_v5", VCPUs: 2, MemoryBytes: 8 * gib}, Hourly: .12}
	dear := nodegroup.Priced{Size: nodegroup.Size{Name: "Standard_D2_v1", VCPUs: 2, MemoryBytes: 8 * gib}, Hourly: 1}
	gpus := nodegroup.Priced{Size: nodegroup.Size{Name: "Standard_NC24", VCPUs: 20, MemoryBytes: 80 * gib, GPUs: 4}, Hourly: 5.2}
	pod := func(requests corev1.ResourceList) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	}
	whole := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")}
	device := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	for name, c := range map[string]struct {
		sizes []nodegroup.Priced
		pod   *corev1.Pod
		want  float64
	}{
		"the cheapest size counts":        {[]nodegroup.Priced{dear, plain, gpus}, pod(whole), .12},
		"without others the dear one":     {[]nodegroup.Priced{dear}, pod(whole), 1},
		"a GPU costs what is left":        {[]nodegroup.Priced{gpus, plain}, pod(device), 2 * (5.2 - 1.2) / 4},
		"nothing is requested":            {[]nodegroup.Priced{plain}, pod(nil), 0},
		"GPUs alone have no price so far": {[]nodegroup.Priced{gpus}, pod(device), 0},
	} {
		units, known := nodegroup.UnitsOf(c.sizes)
		if have := units.Price(c.pod, time.Hour); !known || math.Abs(have-c.want) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", name, have, known, c.want)
		}
	}
	if _, known := nodegroup.UnitsOf(nil); known {
		t.Error("prices of nothing")
	}
}

// TestPodRequests checks that a pod costs what the scheduler reserves for it.
func TestPodRequests(t *testing.T) {
	container := func(cpu string, policy ...corev1.ContainerRestartPolicy) corev1.Container {
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
		if len(policy) > 0 {
			c.RestartPolicy = &policy[0]
		}
		return c
	}
	overhead := corev1.ResourceList{"cpu": resource.MustParse("250m")}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want float64
	}{
		"containers":   {corev1.PodSpec{Containers: []corev1.Container{container("1"), container("2")}}, 3},
		"a large step": {corev1.PodSpec{InitContainers: []corev1.Container{container("5")}, Containers: []corev1.Container{container("1")}}, 5},
		"a sidecar": {corev1.PodSpec{
			InitContainers: []corev1.Container{container("1", corev1.ContainerRestartPolicyAlways), container("3")},
			Containers:     []corev1.Container{container("2")}, Overhead: overhead,
		}, 4.25},
	} {
		units := nodegroup.Units{CPU: 1}
		if have := units.Price(&corev1.Pod{Spec: c.spec}, time.Hour); have != c.want {
			t.Errorf("%s: %v CPUs, want %v", name, have, c.want)
		}
	}
}
