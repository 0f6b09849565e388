// Package engine carries out what kaz cluster plans. It checks that Azure will take a cluster before it writes anything. It
// deploys the cluster, shows its state and removes it. The plan is internal/cluster. Layer L3.
//
// Azure itself keeps the state. Each unit is a nested deployment that records the hash of its template. The deployment of the
// cluster records the definition. So any machine can continue where another machine stopped. Azure forgets deployments, so a
// template spec has the definition and an open change, too.
package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/workload"
)

// Azure is the ARM client.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Engine works on one cluster.
type Engine struct {
	Azure Azure
	// Say gets a line for each event, for people.
	Say func(line string)
	// Poll is the time between two looks at a running deployment, by default 5 s.
	Poll time.Duration
	// Now is the time, by default that of the machine.
	Now func() time.Time
	// Workload is the inside of the cluster, nil if its API server is not used.
	Workload *workload.Cluster
	// Etcd is the etcd of the cluster. Without it the control plane cannot change.
	Etcd Etcd
	// Backups are the backups of etcd. Without them the cluster cannot be restored.
	Backups Backups
	// Unsigned lets a restore take a backup of which nothing proves that the cluster made it.
	Unsigned bool
	// Lock keeps other processes from changing the cluster. Without it nothing does. Holder is the name of this process for
	// the others.
	Lock   lock.Lease
	Holder string
	// Unlocked lets a process without the right to the lock change the cluster without it.
	Unlocked bool
	// Patience bounds how long the steps of a change may take.
	Patience Patience
	// Planes are the data planes of Azure.
	Planes dataplane.Client
}

// Patience bounds how long the steps of a change may take.
type Patience struct {
	// Join is how long a new machine may take until its node is ready, by default 15 minutes.
	Join time.Duration
	// Voter is how long etcd may take to count a new member after its node is ready, by default 2 minutes.
	Voter time.Duration
	// Etcd is how long the other members of etcd may give no answer after a member has died, by default a minute.
	Etcd time.Duration
	// Drain bounds the drain of a node, by default 30 minutes.
	Drain workload.DrainOptions
	// Settle is the time in which connections to a member may end after its load balancer stops sending new ones, by default a
	// minute.
	Settle time.Duration
}

func (e *Engine) say(format string, args ...any) {
	if e.Say != nil {
		e.Say(fmt.Sprintf(format, args...))
	}
}

// guard keeps others from changing the cluster.
func (e *Engine) guard() lock.Guard {
	return lock.Guard{Lease: e.Lock, Holder: e.Holder, Say: e.say, Every: e.every(), WithoutRight: e.Unlocked}
}

// Alone does something to the cluster while no other process changes it.
func (e *Engine) Alone(ctx context.Context, do func(context.Context) error) error {
	return e.guard().Do(ctx, do)
}

// every is the time between two looks at a deployment.
func (e *Engine) every() time.Duration { return cmp.Or(e.Poll, 5*time.Second) }

func (e *Engine) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// The types that the engine reads.
const (
	// DeploymentType is the type of deployments.
	DeploymentType = "Microsoft.Resources/deployments"
	resourceType   = "Microsoft.Resources/resources"
	tagsType       = "Microsoft.Resources/tags"
)

// deploymentID is the id of a deployment of a resource group.
func deploymentID(group azure.ID, name string) azure.ID { return group.Resource(DeploymentType, name) }

// deployment is what the engine reads of a deployment.
type deployment struct {
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

func (d *deployment) running() bool {
	return d != nil && !slices.Contains([]string{"Succeeded", "Failed", "Canceled", ""}, d.Properties.ProvisioningState)
}

// hash is the hash of the template that a nested deployment was made from.
func (d deployment) hash() string {
	var text string
	if json.Unmarshal(d.Properties.Outputs[emit.HashOutput].Value, &text) != nil {
		return ""
	}
	return text
}

// resource is what the engine reads of a resource in a list.
type resource struct {
	ID   azure.ID          `json:"id"`
	Type string            `json:"type"`
	Tags map[string]string `json:"tags"`
}

// State is what Azure has of a cluster.
type State struct {
	Group *azure.ID
	Tags  map[string]string
	// Main is the deployment of the cluster, nil for none.
	Main *deployment
	// Definition is the one that was deployed last, nil if it is not known.
	Definition *definition.Definition
	// kept is what the template spec of the cluster says, the zero value for none.
	kept      definitions
	units     map[string]deployment
	resources map[string]resource
}

// Read reads the state of a cluster: its resource group, with the resources and deployments in it. It reads the same of the
// groups in others, which have parts of the cluster.
func (e *Engine) Read(ctx context.Context, n naming.Names, others ...azure.ID) (State, error) {
	s := State{units: map[string]deployment{}, resources: map[string]resource{}}
	group := n.Group()
	doc, err := e.Azure.Get(ctx, group)
	if azure.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	var r resource
	if err := json.Unmarshal(doc, &r); err != nil {
		return s, fmt.Errorf("resource group %s: %w", group, err)
	}
	s.Group, s.Tags = &group, r.Tags
	for _, g := range append([]azure.ID{group}, others...) {
		if err := e.readGroup(ctx, &s, n, g); err != nil {
			return s, err
		}
	}
	if err := e.confirmMembers(ctx, n, &s); err != nil {
		return s, err
	}
	if s.kept, err = e.readDefinitions(ctx, n); err != nil {
		return s, err
	}
	return s, s.readDefinition()
}

func (e *Engine) readGroup(ctx context.Context, s *State, n naming.Names, group azure.ID) error {
	deployments, err := e.Azure.List(ctx, azure.Query{Scope: group, Type: DeploymentType})
	if err != nil {
		return err
	}
	for _, doc := range deployments {
		var d deployment
		if err := json.Unmarshal(doc, &d); err != nil {
			return fmt.Errorf("a deployment of %s: %w", group, err)
		}
		unit, isUnit := strings.CutPrefix(d.Name, n.Cluster+"-")
		switch {
		case d.Name == n.Deployment() && group.Equal(n.Group()):
			s.Main = &d
		case d.Name == n.Change(): // of a cluster with the name kaz it begins like a unit
		case isUnit:
			s.units[unit] = d
		}
	}
	resources, err := e.Azure.List(ctx, azure.Query{Scope: group, Type: resourceType})
	if err != nil {
		return err
	}
	for _, doc := range resources {
		var r resource
		if err := json.Unmarshal(doc, &r); err != nil {
			return fmt.Errorf("a resource of %s: %w", group, err)
		}
		s.resources[r.ID.Key()] = r
	}
	return nil
}

// readDefinition reads the definition that the deployment records. If Azure has forgotten the deployment, it is that of the template spec.
func (s *State) readDefinition() error {
	s.Definition = s.kept.Definition
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
	_, there := s.resources[id.Key()]
	return there
}

// succeeded reports whether a unit was deployed with its current template.
func (s State) succeeded(unit, hash string) bool {
	d, has := s.units[unit]
	return has && d.Properties.ProvisioningState == "Succeeded" && d.hash() == hash
}

// done reports whether a unit is deployed with its current template and its resources are there.
func (s State) done(p cluster.Plan, unit, hash string) bool {
	return s.succeeded(unit, hash) && len(s.unlisted(p, unit)) == 0
}

// unlisted are the resources of a unit that the lists lack.
func (s State) unlisted(p cluster.Plan, unit string) []azure.ID {
	var all []azure.ID
	u := p.Graph.Unit(unit)
	for _, r := range u.Resources {
		if strings.Count(r.Type, "/") > 1 || !readable(r.Resource) {
			continue // not in the list of resources
		}
		if id := emit.ID(p.Names, r.Resource, u.Unit); !s.Has(id) {
			all = append(all, id)
		}
	}
	return all
}

// others are the further resource groups of a plan.
func others(p cluster.Plan) []azure.ID {
	var all []azure.ID
	for _, u := range p.Graph.Units {
		if u.Unit.Group != "" && !slices.Contains(all, u.Unit.Group) {
			all = append(all, u.Unit.Group)
		}
	}
	return all
}
