package autoscale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// View is what a provider knows of one scale set: what the next loop of cluster-autoscaler sees, and what it means.
type View struct {
	// Source is where the view comes from: [SourceProvider] or [SourceAzure], or the name of a provider.
	Source   string `json:"source"`
	ScaleSet string `json:"scaleSet"`
	// Ignored says why the scale set is no node group. Then the other fields are empty.
	Ignored  string   `json:"ignored,omitempty"`
	ID       string   `json:"id,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Size     string   `json:"size,omitempty"`
	Spot     bool     `json:"spot,omitempty"`
	Zones    []string `json:"zones,omitempty"`
	Min      int      `json:"min,omitempty"`
	Max      int      `json:"max,omitempty"`
	Target   int      `json:"target,omitempty"`
	Capacity int      `json:"capacity,omitempty"`
	// Asked is the number of machines that do not exist and that the capacity counts or a request asks for.
	Asked     int            `json:"asked,omitempty"`
	Instances []ViewInstance `json:"instances,omitempty"`
	Next      *ViewNext      `json:"next,omitempty"`
	// Waits are what must happen next, and Problems what does not happen by itself.
	Waits    []string `json:"waits,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// ReadAge is how old the list of instances is, and LoopAge how long ago a loop of cluster-autoscaler began, in seconds.
	// LoopAge is absent if none began.
	ReadAge float64  `json:"readAgeSeconds"`
	LoopAge *float64 `json:"loopAgeSeconds,omitempty"`
}

// Sources of views. Only a provider that runs knows the requests under way and the machines that Azure refused.
const (
	SourceProvider = "the provider"
	SourceAzure    = "Azure"
)

// ViewInstance is an instance of a node group.
type ViewInstance struct {
	ID    string `json:"id"`
	Node  string `json:"node,omitempty"`
	State string `json:"state"`
	// Placeholder says that the instance stands for a machine that Azure did not make.
	Placeholder bool   `json:"placeholder,omitempty"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
}

// ViewNext is what an increase of the group would meet.
type ViewNext struct {
	// Room is how many more machines the limits, the quotas and the region allow. Code and Message say why the quotas or the
	// region allow less than the limits.
	Room    int    `json:"room"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Allocatable, Labels and Taints are those of the node that cluster-autoscaler expects. From is the node that it is
	// like, or "size".
	From        string            `json:"from,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []string          `json:"taints,omitempty"`
}

// ErrNoScaleSet says that the resource group has no scale set with a name.
var ErrNoScaleSet = errors.New("there is no such scale set")

// View returns what the provider knows of a scale set.
func (p *Provider) View(ctx context.Context, name string) (View, error) {
	if !p.Ready() {
		return View{}, errors.New("the scale sets have not been read yet")
	}
	g := p.group(name)
	if g == nil {
		return p.ignoredView(name)
	}
	spec, seen := g.example()
	nodes := p.seen()
	v := View{
		Source: SourceProvider, ScaleSet: spec.Name, ID: string(spec.Set), Mode: "Uniform", Size: spec.Size(), Spot: spec.Spot,
		Zones: spec.Zones(), Min: spec.Min, Max: spec.Max, Warnings: slices.Clone(spec.Warnings),
		LoopAge: p.loopAge(),
	}
	if spec.Flexible {
		v.Mode = "Flexible"
	}
	g.known.change(func(l *ledger) { l.view(&v, nodes, time.Now()) })
	v.Next = p.next(ctx, spec, seen, &v)
	return v, nil
}

// Look reads a scale set from Azure as a provider that just started, with the nodes of a cluster. It changes nothing.
func Look(ctx context.Context, c Config, nodes []corev1.Node, name string) (View, error) {
	p := New(c)
	defer p.Close()
	if err := p.lookAround(ctx); err != nil {
		return View{}, err
	}
	return p.look(ctx, nodes, name)
}

// Survey reads all scale sets that are to be node groups, in the order of their names, as [Look] reads one.
func Survey(ctx context.Context, c Config, nodes []corev1.Node) (all []View, err error) {
	p := New(c)
	defer p.Close()
	if err := p.lookAround(ctx); err != nil {
		return nil, err
	}
	wanted, err := p.wanted(ctx)
	if err != nil {
		return nil, fmt.Errorf("list scale sets: %w", err)
	}
	for _, name := range wanted {
		v, err := p.look(ctx, nodes, name)
		if errors.Is(err, ErrNoScaleSet) { // it came or went between two lists
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// wanted returns the names of the scale sets that are to be node groups, whether they are or not.
func (p *Provider) wanted(ctx context.Context) (names []string, err error) {
	sets, err := azure.ListAs[azure.Resource[struct{}]](ctx, p.Azure, azure.Query{Scope: p.ResourceGroup, Type: compute.ScaleSets})
	for _, s := range sets {
		if p.Selection.Wants(s.Name, s.Tags) {
			names = append(names, s.Name)
		}
	}
	names = append(names, p.Selection.Missing(func(name string) bool {
		return slices.ContainsFunc(names, func(has string) bool { return strings.EqualFold(has, name) })
	})...)
	slices.Sort(names)
	return names, err
}

// lookAround reads the scale sets, and the sizes of machines.
func (p *Provider) lookAround(ctx context.Context) error {
	if err := p.catalogue.readSizes(ctx); err != nil {
		return fmt.Errorf("read the sizes of machines: %w", err)
	}
	if err := p.list(ctx); err != nil {
		return fmt.Errorf("list scale sets: %w", err)
	}
	return nil
}

// look reads the instances of a scale set.
func (p *Provider) look(ctx context.Context, nodes []corev1.Node, name string) (View, error) {
	observe := func() {
		for i := range nodes {
			p.Observe(&nodes[i])
		}
	}
	observe()
	if g := p.group(name); g != nil {
		p.inspect(ctx, g)
		observe() // the machines of a Flexible scale set are known by its list
	}
	v, err := p.View(ctx, name)
	v.Source = SourceAzure
	return v, err
}

func (p *Provider) ignoredView(name string) (View, error) {
	all := p.Ignored()
	for set, why := range all {
		if strings.EqualFold(set, name) {
			return View{Source: SourceProvider, ScaleSet: set, Ignored: why}, nil
		}
	}
	names := slices.Collect(maps.Keys(all))
	for _, g := range p.all() {
		names = append(names, g.name)
	}
	slices.Sort(names)
	return View{}, fmt.Errorf("%q in resource group %s: %w; there are: %s", name, p.ResourceGroup.Name(), ErrNoScaleSet,
		strings.Join(names, ", "))
}

func (p *Provider) loopAge() *float64 {
	return ask(&p.roster, func(r *roster) *float64 {
		if r.loop == 0 {
			return nil
		}
		age := time.Since(r.began).Seconds()
		return &age
	})
}

// view adds the group's sizes and instances.
func (l *ledger) view(v *View, nodes map[string]seenNode, now time.Time) {
	a := l.account()
	v.Target, v.Capacity, v.ReadAge = a.Target(), a.Capacity, l.age(now).Seconds()
	count := map[string]int{}
	failures := map[string]string{}
	for _, s := range l.shown(nodes) {
		i := viewInstance(s)
		v.Instances = append(v.Instances, i)
		switch {
		case i.Code != "":
			count[i.Code]++
			failures[i.Code] = i.Message
		case i.State == StateRunning && i.Node == "":
			count["joins"]++
		default:
			count[i.State]++
		}
	}
	counted := len(l.refused) - uncounted(l.refused)
	v.Asked = l.queued + l.sending + max(a.Missing()-a.Waived-counted, 0)
	for _, wait := range []struct {
		n    int
		text string
	}{
		{v.Asked, "machines to be made: %d"},
		{count[stateCreating], "machines that Azure makes: %d"},
		{count["joins"], "machines to become nodes: %d"},
		{count[stateDeleting], "machines to be deleted or deallocated: %d"},
		{l.waived, "machines to be taken off the capacity, because Azure did not make them: %d"},
	} {
		if wait.n > 0 {
			v.Waits = append(v.Waits, fmt.Sprintf(wait.text, wait.n))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(failures)) {
		v.Problems = append(v.Problems, fmt.Sprintf("machines that do not come: %d: %s: %s", count[code], code, failures[code]))
	}
	if l.err != nil {
		v.Problems = append(v.Problems, fmt.Sprintf("the instances cannot be read: %v", l.err))
	}
	if l.status.Doubt != "" {
		v.Problems = append(v.Problems, l.status.Doubt)
	}
}

// The states of instances in a view. StateRunning is that of a machine that exists.
const (
	StateRunning     = "running"
	stateCreating    = "creating"
	stateDeleting    = "deleting"
	stateDeallocated = "deallocated"
)

func viewInstance(s shown) ViewInstance {
	v := ViewInstance{ID: s.providerID, Node: s.node, Placeholder: s.placeholder}
	switch {
	case s.Deallocated:
		v.State = stateDeallocated
	case s.State == nodegroup.Creating:
		v.State = stateCreating
	case s.State == nodegroup.Deleting:
		v.State = stateDeleting
	default:
		v.State = StateRunning
	}
	if s.Failure != nil {
		v.Code, v.Message = s.Failure.Code, s.Failure.Message
	}
	return v
}

// next returns what an increase of the group would meet, and adds the warnings of its tags.
func (p *Provider) next(ctx context.Context, spec nodegroup.Group, seen *corev1.Node, v *View) *ViewNext {
	n := &ViewNext{Room: max(v.Max-v.Target, 0)}
	var refused *nodegroup.Failure
	if n.Room, refused = p.catalogue.room(ctx, spec, n.Room); refused != nil {
		n.Code, n.Message = refused.Code, refused.Message
	}
	size, known := p.catalogue.size(spec.Size())
	node, warnings, err := spec.Template(size, known, seen)
	v.Warnings = append(v.Warnings, warnings...)
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
		return n
	}
	n.From, n.Labels, n.Allocatable = "size", node.Labels, map[string]string{}
	if seen != nil {
		n.From = "node " + seen.Name
	}
	for name, quantity := range node.Status.Allocatable {
		n.Allocatable[string(name)] = quantity.String()
	}
	for _, t := range node.Spec.Taints {
		n.Taints = append(n.Taints, t.ToString())
	}
	return n
}

// ViewPath is the path at which a provider serves its view of a scale set, with its name at the end.
const ViewPath = "/debug/nodegroups/"

// ServeView answers with the view of the scale set that the path names.
func (p *Provider) ServeView(w http.ResponseWriter, r *http.Request) {
	v, err := p.View(r.Context(), r.PathValue("name"))
	switch {
	case errors.Is(err, ErrNoScaleSet):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			p.Log.Warn("the view of a scale set was not sent", "scale_set", v.ScaleSet, "error", err)
		}
	}
}
