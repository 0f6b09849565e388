package loadbalancer_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// sharedLists are the lists in which others have elements beside those of the cluster,
// below the properties of a document, by its type.
var sharedLists = map[string][][]string{
	"Microsoft.Network/loadBalancers": {{"frontendIPConfigurations"}, {"backendAddressPools"}, {"loadBalancingRules"}, {"probes"},
		{"outboundRules"}, {"inboundNatRules"}, {"inboundNatPools"}},
	"Microsoft.Network/networkSecurityGroups":                   {{"securityRules"}},
	"Microsoft.Network/networkInterfaces":                       configurationLists,
	"Microsoft.Compute/virtualMachineScaleSets":                 under("virtualMachineProfile", "networkProfile"),
	"Microsoft.Compute/virtualMachineScaleSets/virtualMachines": under("networkProfileConfiguration"),
}

var configurationLists = [][]string{{"ipConfigurations", "[]", "properties", "loadBalancerBackendAddressPools"}, {"ipConfigurations"}}

// under are the lists of a profile of network interfaces.
func under(path ...string) [][]string {
	list := slices.Concat(path, []string{"networkInterfaceConfigurations"})
	all := make([][]string, 0, len(configurationLists)+1)
	for _, inner := range configurationLists {
		all = append(all, slices.Concat(list, []string{"[]", "properties"}, inner))
	}
	return append(all, list)
}

// addNeighbours adds an element to each list at a path, and returns their texts.
func addNeighbours(o object, path []string, at string) (added []string) {
	switch {
	case len(path) == 1 && path[0] != "loadBalancerBackendAddressPools":
		return addNeighbour(o, path[0], fmt.Sprintf(`{"name":"neighbour","odd":1.50,"properties":{"of":%q,"priority":100}}`, at))
	case len(path) == 1:
		return addNeighbour(o, path[0], fmt.Sprintf(`{"id":"/subscriptions/s/neighbour/%s","odd":1.50}`, at))
	case path[1] == "[]":
		for i, deeper := range children(o, path[0]) {
			added = append(added, addNeighbours(deeper, path[2:], fmt.Sprint(at, path[0], i))...)
		}
		return added
	}
	return addNeighbours(sub(o, path[0]), path[1:], at+path[0])
}

func addNeighbour(o object, list, element string) []string {
	all, _ := o[list].([]any)
	o[list] = append(all, parse(element))
	return []string{string(text(parse(element)))}
}

// TestANeighbourThatWasForgottenStays checks that a planner deletes no neighbour that it never saw. Whatever else is in
// the lists of the shared documents is there afterwards, byte for byte.
func TestANeighbourThatWasForgottenStays(t *testing.T) {
	updates := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w, c, conf := newSubscription(3), cluster{}, genConfig(t)
		w.trusting = true
		addOwn(w)
		alone := w.addAlone("alone", "10.0.0.9", "rg/nic")
		commit := func() loadbalancer.Input {
			in := genCommit(t, conf)
			in.Nodes = append(in.Nodes, alone)
			return c.know(in)
		}
		for range rapid.IntRange(0, 2).Draw(t, "commits before") {
			settle(t, w, commit())
		}
		in := commit()
		in.Have = w.snapshot()
		graph, _, err := loadbalancer.Desired(in)
		if err != nil {
			t.Fatal(err)
		}
		neighbours := map[string][]string{}
		for key, doc := range w.docs {
			for kind, lists := range sharedLists {
				if !azure.ID(key).Is(kind) {
					continue
				}
				for _, path := range lists {
					neighbours[key] = append(neighbours[key], addNeighbours(sub(doc, "properties"), path, "")...)
				}
				doc["tags"] = object{"neighbour": "stays"}
			}
		}
		p, err := plan.Diff(w.snapshot(), graph)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			if s.Op != plan.Update {
				continue
			}
			updates[s.ID.Type()]++
			body := text(parse(string(s.Body))) // members in one order
			for _, element := range neighbours[s.ID.Key()] {
				if !bytes.Contains(body, []byte(element)) {
					t.Errorf("%s loses %s:\n%s", s.ID, element, s)
				}
			}
		}
	})
	for kind := range sharedLists {
		if updates[kind] == 0 {
			t.Errorf("no %s was updated", kind)
		}
	}
}
