package testkit

import (
	"context"
	"maps"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// Surroundings are all of the cluster's resource group: what [Azure.Snapshot] has, the
// instances of every scale set, and the machines, interfaces and endpoints that are
// somebody else's.
func (a *Azure) Surroundings() map[string]string {
	a.t.Helper()
	var sets []azure.ID
	for _, set := range List[compute.ScaleSet](a, Group, compute.ScaleSets) {
		if set.Properties.OrchestrationMode == Uniform {
			sets = append(sets, set.ID)
		}
	}
	all := Snapshot(a.t, a.Door.Fresh(), Group, sets...)
	for _, fullType := range []string{compute.VirtualMachines, network.Interfaces, "Microsoft.Network/privateEndpoints"} {
		maps.Copy(all, a.documents(azure.Query{Scope: Group, Type: fullType}))
	}
	return all
}

func (a *Azure) documents(q azure.Query) map[string]string {
	a.t.Helper()
	docs, err := a.Door.Fresh().List(context.WithoutCancel(a.t.Context()), q)
	if err != nil {
		a.t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range docs {
		all[string(d.ID())] = withoutEtags(a.t, d)
	}
	return all
}
