package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// manyAddresses is a snapshot of n public IPs, as Azure returns them, and the graph that wants them as they are.
func manyAddresses(tb testing.TB, n int) (plan.Snapshot, plan.Graph) {
	tb.Helper()
	docs := make([]azure.Document, n)
	var g plan.Graph
	for i := range docs {
		name := fmt.Sprintf("address-%d", i)
		id := group.Resource(network.PublicIPAddresses, name)
		docs[i] = azure.Document(strings.NewReplacer("\"ID\"", `"`+string(id)+`"`, "LB",
			string(group.Resource(network.LoadBalancers, "kubernetes")), "NAME", name, "HOST", fmt.Sprint(i%250)).Replace(`{
			"name":"NAME","id":"ID","etag":"W/\"0123\"","type":"Microsoft.Network/publicIPAddresses","location":"westeurope",
			"zones":["1","2","3"],"sku":{"name":"Standard","tier":"Regional"},
			"tags":{"k8s-azure-cluster-name":"kubernetes","k8s-azure-service":"default/NAME","team":"web"},
			"properties":{"provisioningState":"Succeeded","resourceGuid":"0e1f","ipAddress":"198.18.1.HOST","publicIPAddressVersion":"IPv4",
			"publicIPAllocationMethod":"Static","idleTimeoutInMinutes":4,"ipTags":[],
			"ddosSettings":{"protectionMode":"VirtualNetworkInherited"},
			"ipConfiguration":{"id":"LB/frontendIPConfigurations/NAME"}}}`))
		if err := g.Add(plan.Wanted(azure.Resource[network.PublicIPAddress]{
			ID: id, Location: "westeurope", SKU: &azure.SKU{Name: "Standard"}, Zones: []string{"1", "2", "3"},
			Tags:       azure.Tags{"k8s-azure-cluster-name": "kubernetes", "k8s-azure-service": "default/" + name},
			Properties: network.PublicIPAddress{PublicIPAllocationMethod: "Static", PublicIPAddressVersion: "IPv4"},
		}, "address of "+name)); err != nil {
			tb.Fatal(err)
		}
	}
	return plan.NewSnapshot(docs...), g
}

// BenchmarkDiffOfNoChange compares 10,000 documents without a difference. The aim is less than 300 ms.
func BenchmarkDiffOfNoChange(b *testing.B) {
	have, want := manyAddresses(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if p, err := plan.Diff(have, want); err != nil || !p.Empty() {
			b.Fatal(err, len(p.Steps))
		}
	}
}

// BenchmarkDiffOfAll creates 10,000 documents.
func BenchmarkDiffOfAll(b *testing.B) {
	_, want := manyAddresses(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if p, err := plan.Diff(plan.Snapshot{}, want); err != nil || len(p.Steps) != 10_000 {
			b.Fatal(err, len(p.Steps))
		}
	}
}

// BenchmarkSnapshotWith replaces 1,000 of 10,000 documents one by one.
func BenchmarkSnapshotWith(b *testing.B) {
	have, _ := manyAddresses(b, 10_000)
	docs := have.List(group, network.PublicIPAddresses)[:1000]
	b.ReportAllocs()
	for b.Loop() {
		next := have
		for _, d := range docs {
			next = next.With(d)
		}
		if next.Len() != 10_000 {
			b.Fatal(next.Len())
		}
	}
}
