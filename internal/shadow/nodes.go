package shadow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/plan/routes"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/reconcile"
)

// Cluster reads the Nodes that kaz manages.
type Cluster struct {
	Kubernetes kubernetes.Interface
	// Selector is the label selector of the managed Nodes, "" for all.
	Selector string
	// Managed reports whether kaz manages the routes of a Node.
	Managed func(*corev1.Node) bool
}

func (c Cluster) nodes(ctx context.Context) ([]corev1.Node, error) {
	return List(ctx, "Nodes", c.Selector, func(l *corev1.NodeList) []corev1.Node { return l.Items }, c.Kubernetes.CoreV1().Nodes().List)
}

// Nodes decides what the node controllers would change at Nodes: what machines says of them, and what they have.
func Nodes(c Cluster, machines framework.InstancesV2) Source {
	return Source{"nodes", func(ctx context.Context) ([]plan.Verdict, error) {
		nodes, err := c.nodes(ctx)
		if err != nil {
			return nil, err
		}
		var all []plan.Verdict
		for _, n := range nodes {
			v, err := nodeVerdict(ctx, &n, machines)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}}
}

func nodeVerdict(ctx context.Context, n *corev1.Node, machines framework.InstancesV2) (plan.Verdict, error) {
	v := plan.Verdict{Object: n.Name}
	m, err := machines.InstanceMetadata(ctx, n)
	switch {
	case errors.Is(err, framework.InstanceNotFound):
		v.Writes = []string{"delete the Node: Azure has no such machine"}
		return v, nil
	case err != nil:
		return v, err
	}
	v.Writes = nodeWrites(n, m)
	return v, nil
}

// nodeWrites says what the node controllers would change at a Node. Addresses are compared without their order.
func nodeWrites(n *corev1.Node, m *framework.InstanceMetadata) (all []string) {
	if n.Spec.ProviderID != m.ProviderID {
		all = append(all, fmt.Sprintf("providerID is %q, and kaz gives %q", n.Spec.ProviderID, m.ProviderID))
	}
	want := maps.Clone(m.AdditionalLabels)
	if want == nil {
		want = map[string]string{}
	}
	for label, value := range map[string]string{
		corev1.LabelInstanceTypeStable: m.InstanceType, corev1.LabelTopologyZone: m.Zone, corev1.LabelTopologyRegion: m.Region,
	} {
		if value != "" {
			want[label] = value
		}
	}
	for _, label := range slices.Sorted(maps.Keys(want)) {
		if has, ok := n.Labels[label]; !ok || has != want[label] {
			all = append(all, fmt.Sprintf("label %s is %q, and kaz sets %q", label, has, want[label]))
		}
	}
	if len(m.NodeAddresses) > 0 {
		if has, wants := addresses(n.Status.Addresses), addresses(m.NodeAddresses); !slices.Equal(has, wants) {
			all = append(all, fmt.Sprintf("addresses are %s, and kaz sets %s", strings.Join(has, ", "), strings.Join(wants, ", ")))
		}
	}
	return all
}

func addresses(all []corev1.NodeAddress) []string {
	var texts []string
	for _, a := range all {
		texts = append(texts, string(a.Type)+" "+a.Address)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Routes decides what the route controller would change in the route table, for each Node with a range of pods.
func Routes(c Cluster, config routes.Config, client azure.Reader) Source {
	return Source{"routes", func(ctx context.Context) ([]plan.Verdict, error) {
		nodes, err := c.nodes(ctx)
		if err != nil {
			return nil, err
		}
		in := routes.Input{Config: config}
		for i := range nodes {
			in.Nodes = append(in.Nodes, routes.NodeOf(&nodes[i], !c.Managed(&nodes[i])))
		}
		if in.Have, err = reconcile.Take(ctx, client, reconcile.Needs{Resources: routes.Needs(in)}); err != nil {
			return nil, err
		}
		known, err := routes.Known(in)
		if err != nil {
			return nil, err
		}
		return routeVerdicts(in.Nodes, known), nil
	}}
}

func routeVerdicts(nodes []routes.Node, known []routes.Route) []plan.Verdict {
	var all []plan.Verdict
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
		if len(n.CIDRs) == 0 || n.Unmanaged {
			continue
		}
		v := plan.Verdict{Object: n.Name}
		for _, cidr := range n.CIDRs {
			if !slices.ContainsFunc(known, func(r routes.Route) bool { return r.Node == n.Name && r.CIDR == cidr }) {
				v.Writes = append(v.Writes, "create or change the route to "+cidr)
			}
		}
		all = append(all, v)
	}
	for _, r := range known {
		if !there[r.Node] {
			all = append(all, plan.Verdict{Object: r.Node, Writes: []string{
				fmt.Sprintf("remove the route %s to %s, if --cluster-cidr has it: there is no such Node", r.Name, r.CIDR),
			}})
		}
	}
	return all
}
