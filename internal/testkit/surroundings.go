package testkit

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// Surroundings returns everything in the cluster's resource group: what [Azure.Snapshot] returns, the
// instances of every scale set, and machines, interfaces and endpoints of others. It bypasses the
// cache of Client.
func (a *Azure) Surroundings() map[string]string {
	a.t.Helper()
	from := a.OtherClient()
	var sets []azure.ID
	for _, d := range a.documents(from, compute.ScaleSets) {
		set, err := azure.Decode[compute.ScaleSet](d)
		if err != nil {
			a.t.Fatal(err)
		}
		if set.Properties.OrchestrationMode == Uniform {
			sets = append(sets, set.ID)
		}
	}
	all := Snapshot(a.t, from, Group, sets...)
	for _, fullType := range []string{compute.VirtualMachines, network.Interfaces, "Microsoft.Network/privateEndpoints"} {
		for _, d := range a.documents(from, fullType) {
			all[string(d.ID())] = withoutEtags(a.t, d)
		}
	}
	return all
}

// documents returns all documents of a type in the cluster's resource group.
func (a *Azure) documents(from azure.Reader, fullType string) []azure.Document {
	a.t.Helper()
	docs, err := from.List(context.WithoutCancel(a.t.Context()), azure.Query{Scope: Group, Type: fullType})
	if err != nil {
		a.t.Fatal(err)
	}
	return docs
}
