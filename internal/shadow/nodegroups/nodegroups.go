// Package nodegroups compares the node groups that kaz's provider would show to cluster-autoscaler with those of the cluster-autoscaler
// in charge. Layer L3.
package nodegroups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"kaz/internal/autoscale"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Source decides about all scale sets that the selection of c wants as node groups. c must not be able to write.
func Source(client kubernetes.Interface, c autoscale.Config) shadow.Source {
	return shadow.Source{Kind: "node groups", Decide: func(ctx context.Context) ([]plan.Verdict, error) {
		charge, known, err := inCharge(ctx, client)
		if err != nil {
			return nil, err
		}
		nodes, err := shadow.List(ctx, "Nodes", "", func(l *corev1.NodeList) []corev1.Node { return l.Items }, client.CoreV1().Nodes().List)
		if err != nil {
			return nil, err
		}
		views, err := autoscale.Survey(ctx, c, nodes)
		if err != nil {
			return nil, err
		}
		return verdicts(views, charge, known), nil
	}}
}

// Status is the part of the status of cluster-autoscaler that says what it knows of a node group.
type Status struct {
	Name   string `json:"name"`
	Health struct {
		Target int `json:"cloudProviderTarget"`
		Min    int `json:"minSize"`
		Max    int `json:"maxSize"`
	} `json:"health"`
}

// The ConfigMap in kube-system in which cluster-autoscaler reports its status, and its key.
const (
	statusName = "cluster-autoscaler-status"
	statusKey  = "status"
)

// inCharge reads the node groups of the cluster-autoscaler in charge. known is false if it reports none.
func inCharge(ctx context.Context, client kubernetes.Interface) (groups []Status, known bool, err error) {
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, statusName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ConfigMap %s/%s: %w", metav1.NamespaceSystem, statusName, err)
	}
	var status struct {
		NodeGroups []Status `json:"nodeGroups"`
	}
	if err := yaml.Unmarshal([]byte(m.Data[statusKey]), &status); err != nil {
		return nil, false, fmt.Errorf("ConfigMap %s/%s: %s is not as cluster-autoscaler of 1.30 and later writes it: %w",
			metav1.NamespaceSystem, statusName, statusKey, err)
	}
	return status.NodeGroups, true, nil
}

// verdicts compares what kaz would show with what is in charge.
func verdicts(views []autoscale.View, charge []Status, known bool) (all []plan.Verdict) {
	for _, view := range views {
		v := plan.Verdict{Object: view.ScaleSet, Refused: view.Ignored}
		i := slices.IndexFunc(charge, func(s Status) bool { return strings.EqualFold(s.Name, view.ScaleSet) })
		switch {
		case view.Ignored != "":
		case i >= 0:
			v.Writes = changes(view, charge[i])
		case known:
			v.Writes = append(v.Writes, fmt.Sprintf("it becomes a node group, from %d to %d", view.Min, view.Max))
		}
		v.Writes = append(v.Writes, removals(view)...)
		all = append(all, v)
	}
	for _, s := range charge {
		if !slices.ContainsFunc(views, func(v autoscale.View) bool { return strings.EqualFold(s.Name, v.ScaleSet) }) {
			all = append(all, plan.Verdict{Object: s.Name, Writes: []string{"it is no node group any more: no flag selects it"}})
		}
	}
	return all
}

// changes says in what kaz's node group differs from that of the cluster-autoscaler in charge.
func changes(v autoscale.View, now Status) (all []string) {
	for _, size := range []struct {
		what     string
		now, kaz int
	}{
		{"least size", now.Health.Min, v.Min}, {"greatest size", now.Health.Max, v.Max}, {"target size", now.Health.Target, v.Target},
	} {
		if size.now != size.kaz {
			all = append(all, fmt.Sprintf("its %s is %d, and kaz shows %d", size.what, size.now, size.kaz))
		}
	}
	return all
}

// removals says which instances cluster-autoscaler removes when it sees them as kaz shows them.
func removals(v autoscale.View) (all []string) {
	for _, i := range v.Instances {
		switch {
		case i.Code != "":
			all = append(all, fmt.Sprintf("cluster-autoscaler removes %s, which Azure did not make: %s", i.ID, i.Code))
		case i.State == autoscale.StateRunning && i.Node == "":
			all = append(all, fmt.Sprintf("cluster-autoscaler removes %s after its --max-node-provision-time: it is no Node", i.ID))
		}
	}
	return all
}
