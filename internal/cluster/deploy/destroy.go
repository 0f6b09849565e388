package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
)

// Removal is what destroy would remove.
type Removal struct {
	// Group says that the whole resource group goes, because kaz made it.
	Group bool
	// Resources are the resources, in the order in which they go. Without Group each of them has the tag of the cluster or is a
	// role assignment of it.
	Resources []azure.ID
	// Kept are resources of the group that have no tag of the cluster. With Group they go, too.
	Kept []azure.ID
}

// Removal finds what destroy would remove.
func (d Deployer) Removal(ctx context.Context, p cluster.Plan) (Removal, error) {
	s, err := d.Read(ctx, p.Names, p.Groups()...)
	if err != nil || s.Group == nil {
		return Removal{}, err
	}
	var r Removal
	own := p.Definition.Cluster.Spec.Azure.ResourceGroup.Lifecycle == "Owned"
	r.Group = own && s.Tags[naming.ClusterTag] == p.Names.Cluster && s.Tags[naming.LifecycleTag] == "Owned"
	listed := r.planned(p, s)
	for _, key := range slices.Sorted(maps.Keys(s.Resources)) {
		there := s.Resources[key]
		switch mine := there.Tags[naming.ClusterTag] == p.Names.Cluster; {
		case listed[key] || there.ID.Under(record.SpecID(p.Names)): // the last to go, with what Destroy needs to go on
		case mine && !r.Group: // of a pool, or of an extension, that the definition no longer has
			r.Resources = append([]azure.ID{there.ID}, r.Resources...)
		case !mine && there.ID.Under(*s.Group):
			r.Kept = append(r.Kept, there.ID)
		}
	}
	return r, nil
}

// planned adds the existing resources of the plan, and its role assignments even if they are not listed. A resource comes
// before the resources that it needs. planned returns the keys of the resources with the tag of the cluster.
func (r *Removal) planned(p cluster.Plan, s record.State) map[string]bool {
	listed := map[string]bool{}
	for _, u := range slices.Backward(p.Graph.Units) {
		for _, res := range slices.Backward(u.Resources) {
			id := emit.ID(p.Names, res.Resource, u.Unit)
			if r.Group && id.Under(*s.Group) {
				continue
			}
			there, has := s.Resources[id.Key()]
			switch {
			case has && there.Tags[naming.ClusterTag] == p.Names.Cluster:
				r.Resources = append(r.Resources, id)
				listed[id.Key()] = true
			case res.Type == "Microsoft.Authorization/roleAssignments":
				r.Resources = append(r.Resources, p.AssignmentScope(res.Resource, u.Unit).Resource(res.Type, id.Name()))
			}
		}
	}
	return listed
}

// Destroy removes what Removal found. Role assignments go first, because their scopes are removed, too. If a resource is
// still used by another one, Destroy tries it again after the others.
func (d Deployer) Destroy(ctx context.Context, p cluster.Plan, r Removal) error {
	rest := slices.Clone(r.Resources)
	slices.SortStableFunc(rest, func(a, b azure.ID) int { return rank(a) - rank(b) })
	for len(rest) > 0 {
		var used []azure.ID
		var last error
		for _, id := range rest {
			d.Sayf("delete %s %s", id.Type(), id.Name())
			_, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Delete, ID: id})
			switch kind := azure.KindOf(err); {
			case err == nil || azure.IsNotFound(err):
			case kind == azure.InUse || kind == azure.Busy || kind == azure.Invalid:
				used, last = append(used, id), err
			default:
				return err
			}
		}
		if len(used) == len(rest) {
			return fmt.Errorf("%d resources cannot be deleted because others use them: %w", len(used), last)
		}
		rest = used
	}
	if !r.Group {
		return d.forget(ctx, p)
	}
	d.Sayf("delete resource group %s", p.Names.Group().Name())
	_, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Delete, ID: p.Names.Group()})
	return err
}

// Purge removes the key vault that kaz made for good, after [Engine.Destroy]. Until then Azure keeps the vault and its name.
// So no cluster of the same name and group can be made.
func (d Deployer) Purge(ctx context.Context, p cluster.Plan) error {
	spec := p.Definition.Cluster.Spec
	if spec.KeyVault.ID != "" {
		return nil
	}
	d.Sayf("purge key vault %s", p.Names.Vault())
	at := azure.SubscriptionID(spec.Azure.SubscriptionID).Resource("Microsoft.KeyVault/locations", spec.Azure.Location)
	_, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Post, ID: at.Child("deletedVaults", p.Names.Vault()), Action: "purge"})
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}

func rank(id azure.ID) int {
	if strings.EqualFold(id.Type(), "Microsoft.Authorization/roleAssignments") {
		return 0
	}
	return 1
}

// forget removes the deployments of a cluster in a resource group that stays, so that a later cluster of this name is new.
func (d Deployer) forget(ctx context.Context, p cluster.Plan) error {
	s, err := d.Read(ctx, p.Names, p.Groups()...)
	if err != nil {
		return err
	}
	for unit, u := range s.Units {
		if p.Graph.Unit(unit) == nil && !strings.HasPrefix(unit, "pool-") && !strings.HasPrefix(unit, "extension-") {
			continue
		}
		if _, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Delete, ID: u.ID}); err != nil {
			return err
		}
	}
	last := []azure.ID{record.DeploymentID(p.Names.Group(), p.Names.Deployment()), record.DeploymentID(p.Names.Group(), p.Names.Change()),
		record.VersionID(p.Names, record.ChangeVersion), record.VersionID(p.Names, record.DefinitionVersion), record.SpecID(p.Names)}
	return d.Delete(ctx, last...)
}
