package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
)

// listed lists documents, and notes those on which an operation runs or failed.
func listed[T any](ctx context.Context, g *gatherer, q azure.Query) ([]T, error) {
	docs, err := g.Azure.List(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(docs))
	for i, doc := range docs {
		var has struct {
			Properties struct{ ProvisioningState string }
		}
		if err := errors.Join(json.Unmarshal(doc, &has), json.Unmarshal(doc, &all[i])); err != nil {
			return nil, fmt.Errorf("read %s: %w", doc.ID(), err)
		}
		g.note(doc.ID(), has.Properties.ProvisioningState)
	}
	return all, nil
}

// note notes the state of the last operation on a resource. A resource can be in several lists.
func (g *gatherer) note(id azure.ID, state string) {
	known := slices.ContainsFunc(g.facts.Operations, func(o plan.Operation) bool { return o.ID.Equal(id) })
	if state != "" && !strings.EqualFold(state, "Succeeded") && !known {
		g.facts.Operations = append(g.facts.Operations, plan.Operation{ID: id, State: state})
	}
}

// machines lists the scale sets of the group, the machines of each, and the machines without one.
func (g *gatherer) machines(ctx context.Context) error {
	sets, err := listed[azure.Resource[compute.ScaleSetModel]](ctx, g, azure.Query{Scope: g.Group, Type: compute.ScaleSets})
	if err != nil {
		return err
	}
	if len(sets) > mostSets {
		return fmt.Errorf("there are %d scale sets: at most %d are read", len(sets), mostSets)
	}
	g.facts.ScaleSets = sets
	found := map[string]plan.Machine{}
	add := func(q azure.Query, set azure.ID) error {
		vms, err := listed[azure.Resource[compute.Instance]](ctx, g, q)
		for _, vm := range vms {
			if key := vm.ID.Key(); found[key].Set == "" {
				p := vm.Properties
				off := p.InstanceView != nil && nodes.Shutdown(p.ProvisioningState, nodes.PowerState(p.InstanceView)) ||
					strings.EqualFold(p.ProvisioningState, "Deleting")
				found[key] = plan.Machine{ID: vm.ID, Set: set, Off: off}
			}
		}
		return err
	}
	for _, set := range sets {
		q := azure.Query{Scope: set.ID, Type: compute.ScaleSetInstances, Expand: "instanceView"}
		if strings.EqualFold(set.Properties.OrchestrationMode, "Flexible") {
			q = azure.Query{Scope: g.Group, Type: compute.VirtualMachines, Expand: "instanceView",
				Filter: "'virtualMachineScaleSet/id' eq '" + string(set.ID) + "'"}
		}
		if err := add(q, set.ID); err != nil {
			return err
		}
	}
	if err := add(azure.Query{Scope: g.Group, Type: compute.VirtualMachines}, ""); err != nil {
		return err
	}
	g.facts.Machines = slices.SortedFunc(maps.Values(found), func(a, b plan.Machine) int { return strings.Compare(a.ID.Key(), b.ID.Key()) })
	return nil
}

func (g *gatherer) loadBalancers(ctx context.Context) (err error) {
	g.facts.LoadBalancers, err = listed[azure.Resource[network.LoadBalancer]](ctx, g,
		azure.Query{Scope: g.LoadBalancers, Type: network.LoadBalancers})
	return err
}

// publicIPs lists the public IPs of the group, and reads those of frontends that are elsewhere. An absent one stays unknown.
func (g *gatherer) publicIPs(ctx context.Context) error {
	all, err := listed[azure.Resource[network.PublicIPAddress]](ctx, g,
		azure.Query{Scope: g.PublicIPs, Type: network.PublicIPAddresses})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, ip := range all {
		known[ip.ID.Key()] = true
	}
	further := 0
	for _, lb := range g.facts.LoadBalancers {
		for _, fe := range lb.Properties.FrontendIPConfigurations {
			id := fe.Properties.PublicIPAddress.To()
			if id == "" || known[id.Key()] || id.Under(g.PublicIPs) || further == mostIPs {
				continue
			}
			known[id.Key()] = true
			further++
			doc, err := g.Azure.Get(ctx, id)
			if azure.IsNotFound(err) || azure.KindOf(err) == azure.Denied {
				continue
			}
			if err != nil {
				return err
			}
			ip, err := azure.Decode[network.PublicIPAddress](doc)
			if err != nil {
				return err
			}
			all = append(all, ip)
		}
	}
	g.facts.PublicIPs = all
	return nil
}

func (g *gatherer) disks(ctx context.Context) error {
	docs, err := listed[azure.Document](ctx, g, azure.Query{Scope: g.Group, Type: compute.Disks})
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var d struct {
			ID         azure.ID
			Tags       azure.Tags
			Properties struct{ TimeCreated time.Time }
		}
		if err := json.Unmarshal(doc, &d); err != nil {
			return fmt.Errorf("read a disk: %w", err)
		}
		holders, err := nodes.Holders(doc)
		if err != nil {
			return err
		}
		g.facts.Disks = append(g.facts.Disks, plan.Disk{
			ID: d.ID, Ours: disk.Ours(d.Tags), Owner: disk.OwnerOfDisk(d.Tags), Created: d.Properties.TimeCreated, Holders: holders,
		})
	}
	return nil
}

// usages lists the quotas of machines and of the network.
func (g *gatherer) usages(ctx context.Context) error {
	for _, provider := range []string{"Microsoft.Compute", "Microsoft.Network"} {
		scope := azure.SubscriptionID(g.Group.Subscription())
		if provider == "Microsoft.Network" {
			scope = azure.SubscriptionID(g.LoadBalancers.Subscription())
		}
		docs, err := g.Azure.List(ctx, azure.Query{
			Scope: scope + azure.ID("/providers/"+provider+"/locations/"+g.Location), Type: provider + "/locations/usages",
		})
		if err != nil {
			return err
		}
		usages, err := nodegroup.ReadUsages(docs)
		if err != nil {
			return err
		}
		for name, u := range usages {
			g.facts.Usages = append(g.facts.Usages, plan.Usage{
				Name: strings.TrimPrefix(provider, "Microsoft.") + " " + name, Usage: u,
			})
		}
	}
	return nil
}
