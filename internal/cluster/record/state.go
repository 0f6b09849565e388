// Package record has what Azure records of a cluster: its deployments, its definition, a change that has begun, and its
// resources. Layer L3.
//
// Azure itself keeps the state. Each unit is a nested deployment that records the hash of its template. The deployment of the
// cluster records the definition. So any machine can continue where another machine stopped. Azure forgets deployments, so a
// template spec has the definition and an open change, too.
package record

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/naming"
)

// Azure is the ARM client.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Store is the Azure that keeps the state of clusters.
type Store struct{ Azure Azure }

// The types of resources that kaz reads.
const (
	// DeploymentType is the type of deployments.
	DeploymentType = "Microsoft.Resources/deployments"
	// TagsType is the type of the tags of a resource.
	TagsType = "Microsoft.Resources/tags"
	// MachineType is the type of machines.
	MachineType = "Microsoft.Compute/virtualMachines"
	// ScaleSetType is the type of scale sets.
	ScaleSetType = "Microsoft.Compute/virtualMachineScaleSets"

	// NICType is the type of network interfaces.
	NICType = "Microsoft.Network/networkInterfaces"

	resourceType = "Microsoft.Resources/resources"
)

// The tags of a scale set during an upgrade.
const (
	// RolloutTag has the version of an upgrade and the number of nodes before it: "1.37.1=3".
	RolloutTag = "kaz_rollout"
	// PreviousTag has the version that the model had before.
	PreviousTag = "kaz_previous"
)

// DeploymentID is the id of a deployment of a resource group.
func DeploymentID(group azure.ID, name string) azure.ID { return group.Resource(DeploymentType, name) }

// Deployment is what kaz reads of a deployment.
type Deployment struct {
	ID         azure.ID `json:"id"`
	Name       string   `json:"name"`
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
		Timestamp         string `json:"timestamp"`
		Duration          string `json:"duration"`
		CorrelationID     string `json:"correlationId"`
		Parameters        map[string]struct {
			Value json.RawMessage `json:"value"`
		} `json:"parameters"`
		Outputs map[string]struct {
			Value json.RawMessage `json:"value"`
		} `json:"outputs"`
	} `json:"properties"`
}

// Running reports whether a deployment has not ended.
func (d *Deployment) Running() bool { return d != nil && isRunning(d.Properties.ProvisioningState) }

// isRunning reports whether a deployment with a state has not ended.
func isRunning(state string) bool {
	return !slices.Contains([]string{"Succeeded", "Failed", "Canceled", Absent, Forgotten, ""}, state)
}

// Began is when a deployment began, zero if Azure does not say it. The timestamp is of the last change of its state, until which the
// duration counts, such as PT2M35.1S.
func (d *Deployment) Began() time.Time {
	if d == nil {
		return time.Time{}
	}
	changed, err := time.Parse(time.RFC3339, d.Properties.Timestamp)
	if err != nil {
		return time.Time{}
	}
	return changed.Add(-d.lasted())
}

// Took is how long a deployment took that succeeded, 0 for another one and if Azure does not say it.
func (d *Deployment) Took() time.Duration {
	if d == nil || d.Properties.ProvisioningState != "Succeeded" {
		return 0
	}
	return d.lasted()
}

// lasted is the duration until the last change of the state, 0 if Azure does not say it.
func (d *Deployment) lasted() time.Duration {
	lasted, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(d.Properties.Duration, "PT")))
	if err != nil {
		return 0
	}
	return lasted
}

// Hash is the hash of the template that a nested deployment was made from.
func (d Deployment) Hash() string {
	var text string
	if json.Unmarshal(d.Properties.Outputs[emit.HashOutput].Value, &text) != nil {
		return ""
	}
	return text
}

// Resource is what kaz reads of a resource in a list.
type Resource struct {
	ID   azure.ID          `json:"id"`
	Type string            `json:"type"`
	Tags map[string]string `json:"tags"`
}

// State is what Azure has of a cluster.
type State struct {
	Group *azure.ID
	Tags  map[string]string
	// Main is the deployment of the cluster, nil for none.
	Main *Deployment
	// Definition is the one that was deployed last, nil if it is not known.
	Definition *definition.Definition
	// Kept is what the template spec of the cluster says, the zero value for none.
	Kept Definitions
	// Units are the deployments of units, and Resources the resources by their ids in lower case.
	Units     map[string]Deployment
	Resources map[string]Resource
}

// Read reads the state of a cluster: its resource group, with the resources and deployments in it. It reads the same of the
// groups in others, which have parts of the cluster.
func (st Store) Read(ctx context.Context, n naming.Names, others ...azure.ID) (State, error) {
	s := State{Units: map[string]Deployment{}, Resources: map[string]Resource{}}
	group := n.Group()
	doc, err := st.Azure.Get(ctx, group)
	if azure.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var r Resource
	if err := json.Unmarshal(doc, &r); err != nil {
		return s, fmt.Errorf("resource group %s: %w", group, err)
	}
	s.Group, s.Tags = &group, r.Tags
	for _, g := range append([]azure.ID{group}, others...) {
		if err := st.readGroup(ctx, &s, n, g); err != nil {
			return s, err
		}
	}
	if err := st.confirmMembers(ctx, n, &s); err != nil {
		return s, err
	}
	if s.Kept, err = st.readDefinitions(ctx, n); err != nil {
		return s, err
	}
	return s, s.readDefinition()
}

func (st Store) readGroup(ctx context.Context, s *State, n naming.Names, group azure.ID) error {
	deployments, err := st.Azure.List(ctx, azure.Query{Scope: group, Type: DeploymentType})
	if err != nil {
		return err
	}
	for _, doc := range deployments {
		var d Deployment
		if err := json.Unmarshal(doc, &d); err != nil {
			return fmt.Errorf("a deployment of %s: %w", group, err)
		}
		unit, isUnit := strings.CutPrefix(d.Name, n.Cluster+"-")
		switch {
		case d.Name == n.Deployment() && group.Equal(n.Group()):
			s.Main = &d
		case d.Name == n.Change(): // of a cluster with the name kaz it begins like a unit
		case isUnit:
			s.Units[unit] = d
		}
	}
	resources, err := st.Azure.List(ctx, azure.Query{Scope: group, Type: resourceType})
	if err != nil {
		return err
	}
	for _, doc := range resources {
		var r Resource
		if err := json.Unmarshal(doc, &r); err != nil {
			return fmt.Errorf("a resource of %s: %w", group, err)
		}
		s.Resources[r.ID.Key()] = r
	}
	return nil
}

// readDefinition reads the definition that the deployment records. If Azure has forgotten the deployment, it is that of the template spec.
func (s *State) readDefinition() error {
	s.Definition = s.Kept.Definition
	if s.Main == nil {
		return nil
	}
	text := s.Main.Properties.Parameters[emit.DefinitionParameter].Value
	if len(text) == 0 {
		return nil
	}
	var d definition.Definition
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("the definition in deployment %s: %w", s.Main.ID, err)
	}
	if d.Cluster.Metadata.Name != "" {
		s.Definition = &d
	}
	return nil
}

// Has reports whether a resource of the cluster's groups is there.
func (s State) Has(id azure.ID) bool {
	_, there := s.Resources[id.Key()]
	return there
}

// confirmMembers reads the machines of members that have a deployment and are in no list. Names of new machines follow from those that
// exist.
func (st Store) confirmMembers(ctx context.Context, n naming.Names, s *State) error {
	for unit := range s.Units {
		id := n.Group().Resource(MachineType, n.With(unit))
		if _, _, member := naming.MemberSlot(unit); !member || s.Has(id) {
			continue
		}
		live, err := st.Find(ctx, id)
		if err == nil && live != nil {
			err = s.Add(live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Exists reads whether a resource is there.
func (st Store) Exists(ctx context.Context, id azure.ID) (bool, error) {
	live, err := st.Find(ctx, id)
	return live != nil, err
}

// Find reads a resource, nil if Azure says that there is none.
func (st Store) Find(ctx context.Context, id azure.ID) (map[string]any, error) {
	doc, err := st.Azure.Get(ctx, id)
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("whether %s exists: %w", id, err)
	}
	var live map[string]any
	if err := json.Unmarshal(doc, &live); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if text, _ := live["id"].(string); !azure.ID(text).Equal(id) {
		return nil, fmt.Errorf("whether %s exists: the answer has the id %q", id, text)
	}
	return live, nil
}

// Rewrite writes what change makes of a resource, nil for nothing. The resource is read first, unless live has it. If another program wrote
// since the read, Rewrite begins anew. Types without etags cannot tell, so only the time between read and write is short.
func (st Store) Rewrite(ctx context.Context, id azure.ID, live map[string]any,
	change func(live map[string]any) (map[string]any, error)) error {
	const attempts = 5
	var last error
	for i := range attempts {
		if i > 0 || live == nil {
			var err error
			if live, err = st.Find(ctx, id); err != nil {
				return err
			}
		}
		if live == nil {
			return fmt.Errorf("%s was removed in the meantime: try again", id)
		}
		etag, _ := live["etag"].(string)
		next, err := change(live)
		if err != nil || next == nil {
			return err
		}
		body, err := json.Marshal(next)
		if err != nil {
			return err
		}
		_, last = azure.Do(ctx, st.Azure, azure.Request{Verb: azure.Put, ID: id, Body: body, IfMatch: etag, Unseen: true})
		if azure.KindOf(last) != azure.Changed {
			return last
		}
	}
	return fmt.Errorf("other programs changed it %d times in the meantime: try again: %w", attempts, last)
}

// Add adds a resource that a list did not have.
func (s State) Add(live map[string]any) error {
	text, err := json.Marshal(map[string]any{"id": live["id"], "type": live["type"], "tags": live["tags"]})
	if err != nil {
		return err
	}
	var r Resource
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("resource %v: %w", live["id"], err)
	}
	s.Resources[r.ID.Key()] = r
	return nil
}

// Generations are those of the newest members that exist, by index.
func (s State) Generations() map[int]int {
	all := map[int]int{}
	for _, r := range s.Resources {
		index, generation, ok := naming.MemberSlot(r.Tags[naming.UnitTag])
		if !ok || !strings.EqualFold(r.Type, MachineType) {
			continue
		}
		if had, has := all[index]; !has || had < generation {
			all[index] = generation
		}
	}
	return all
}

// Members are the members of the control plane of which something is left.
func (s State) Members(n naming.Names) []string {
	all := map[string]bool{}
	add := func(unit string) {
		if _, _, ok := naming.MemberSlot(unit); ok {
			all[unit] = true
		}
	}
	for unit := range s.Units {
		add(unit)
	}
	for _, r := range s.Resources {
		if r.Tags[naming.ClusterTag] == n.Cluster {
			add(r.Tags[naming.UnitTag])
		}
	}
	var names []string
	for unit := range all {
		names = append(names, unit)
	}
	slices.Sort(names)
	return names
}

// Machines are the names of the cluster's machines and scale sets in the lists.
func (s State) Machines(n naming.Names) []string {
	var all []string
	for _, r := range s.Resources {
		machine := strings.EqualFold(r.Type, MachineType) || strings.EqualFold(r.Type, ScaleSetType)
		if machine && strings.EqualFold(r.Tags[naming.ClusterTag], n.Cluster) {
			all = append(all, r.ID.Name())
		}
	}
	slices.Sort(all)
	return all
}

// Place is where a cluster is of which the definition is not at hand.
type Place struct{ Subscription, Group, Name string }

// Deployment is the deployment of the cluster.
func (p Place) Deployment() azure.ID {
	n := p.Names()
	return DeploymentID(n.Group(), n.Deployment())
}

// Names are the names of the cluster that do not depend on its definition.
func (p Place) Names() naming.Names {
	var c definition.Cluster
	c.Metadata.Name = p.Name
	c.Spec.Azure.SubscriptionID, c.Spec.Azure.ResourceGroup.Name = p.Subscription, p.Group
	return naming.Of(c)
}

// Recorded is the plan of a cluster from the definition that its deployment records. It is false if there is none.
func (st Store) Recorded(ctx context.Context, n naming.Names) (cluster.Plan, bool, error) {
	s, err := st.Read(ctx, n)
	if err != nil || s.Definition == nil {
		return cluster.Plan{}, false, err
	}
	p, err := cluster.New(*s.Definition)
	return p, err == nil, err
}
